//! Whether the other hosts of a group live: probes, probes by way of others, and suspicion.
//!
//! A host that was not heard of for a period is probed; if it does not answer, others are asked to
//! probe it, so that one broken path kills nobody (SWIM: A. Das, I. Gupta, A. Motivala, 2002). If they
//! hear nothing either it is suspected, and only when the suspicion has lasted is it held dead. Any
//! word from it makes it live again. Whoever stood still itself blames nobody for it (Lifeguard:
//! A. Dadgar, J. Phillips, J. Currey, 2017).
//!
//! The core sends nothing: [`Detection::poll`] says what is to be sent.

use meikyo_units::{Nanos, SimTime};

/// Others that are asked to probe at once.
const RELAYS_MAX: usize = 3;

/// How patient a group is. A death is known after at most `2 period + 2 timeout + suspicion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A host that was not heard of for so long is probed.
    pub period: Nanos,
    /// An answer is waited for so long.
    pub timeout: Nanos,
    /// A suspicion lasts so long before it is a fact.
    pub suspicion: Nanos,
}

impl Patience {
    /// A death is known within 0.9 s.
    pub const DEFAULT: Self = Self {
        period: Nanos::from_millis(100),
        timeout: Nanos::from_millis(150),
        suspicion: Nanos::from_millis(400),
    };
}

/// What is known of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It answers.
    Alive,
    /// It does not answer, directly or by way of others.
    Suspected,
    /// It has not answered for longer than a suspicion lasts.
    Dead,
}

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// A probe to this place.
    Direct(usize),
    /// A wish to `relay` that it probe `target`.
    By {
        /// Who is asked.
        relay: usize,
        /// Who is to be probed.
        target: usize,
    },
}

#[derive(Debug, Clone, Copy)]
struct Peer {
    heard: SimTime,
    probed: Option<SimTime>,
    relayed: bool,
    suspected: Option<SimTime>,
    health: Health,
}

/// What one host knows of the others.
#[derive(Debug, Clone)]
pub struct Detection {
    me: usize,
    patience: Patience,
    peers: Vec<Peer>,
    polled: SimTime,
}

impl Detection {
    /// Everybody is held alive at first.
    pub fn new(now: SimTime, me: usize, hosts: usize, patience: Patience) -> Self {
        let peer = Peer {
            heard: now,
            probed: None,
            relayed: false,
            suspected: None,
            health: Health::Alive,
        };
        Self { me, patience, peers: vec![peer; hosts], polled: now }
    }

    /// What is known of a place; a host holds itself alive.
    pub fn health(&self, place: usize) -> Health {
        if place == self.me { Health::Alive } else { self.peers[place].health }
    }

    /// Whether a place is held dead.
    pub fn is_dead(&self, place: usize) -> bool {
        self.health(place) == Health::Dead
    }

    /// Something came from a place, or somebody vouches for it.
    pub fn heard(&mut self, now: SimTime, place: usize) {
        self.peers[place] = Peer {
            heard: now,
            probed: None,
            relayed: false,
            suspected: None,
            health: Health::Alive,
        };
    }

    /// When something may be to be done next.
    pub fn next_poll(&self) -> SimTime {
        // A quarter of a timeout is as exact as any of the spans has to be.
        self.polled + Nanos::new(self.patience.timeout.get().min(self.patience.period.get()) / 4)
    }

    /// What is to be sent now.
    pub fn poll(&mut self, now: SimTime) -> Vec<Probe> {
        let gap = now.since(self.polled);
        if gap > self.patience.timeout {
            self.forgive(gap);
        }
        self.polled = now;
        let Patience { period, timeout, suspicion } = self.patience;
        let mut probes = Vec::new();
        for place in 0..self.peers.len() {
            if place == self.me {
                continue;
            }
            let relays: Vec<usize> = self.relays(place).collect();
            let peer = &mut self.peers[place];
            let Some(probed) = peer.probed else {
                if now.since(peer.heard) >= period {
                    peer.probed = Some(now);
                    probes.push(Probe::Direct(place));
                }
                continue;
            };
            let waited = now.since(probed);
            if waited >= timeout && !peer.relayed {
                peer.relayed = true;
                probes.push(Probe::Direct(place));
                probes.extend(relays.into_iter().map(|relay| Probe::By { relay, target: place }));
            }
            if waited >= timeout * 2 {
                peer.suspected.get_or_insert(now);
                // Asked again and again: a dead host that comes back is to be heard of.
                peer.probed = Some(now.max(probed + timeout));
                peer.relayed = false;
                probes.push(Probe::Direct(place));
            }
            if let Some(since) = peer.suspected {
                let is_over = now.since(since) >= suspicion;
                peer.health = if is_over { Health::Dead } else { Health::Suspected };
            }
        }
        probes
    }

    fn relays(&self, target: usize) -> impl Iterator<Item = usize> {
        let hosts = self.peers.len();
        (1..hosts)
            .map(move |distance| (target + distance) % hosts)
            .filter(|&place| place != self.me && self.health(place) == Health::Alive)
            .take(RELAYS_MAX)
    }

    /// This host stood still for `gap`: that nobody was heard of meanwhile means nothing.
    fn forgive(&mut self, gap: Nanos) {
        for peer in &mut self.peers {
            peer.heard = peer.heard + gap;
            peer.probed = peer.probed.map(|probed| probed + gap);
            peer.suspected = peer.suspected.map(|suspected| suspected + gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    /// Polls every 10 ms for `ms`; `answers` says which probes are answered, at once.
    fn run(
        detection: &mut Detection,
        from: SimTime,
        ms: u64,
        answers: impl Fn(Probe) -> bool,
    ) -> Vec<(u64, Health)> {
        let mut seen = Vec::new();
        for step in 1..=ms / 10 {
            let now = from + MS * (step * 10);
            for probe in detection.poll(now) {
                let (Probe::Direct(target) | Probe::By { target, .. }) = probe;
                if answers(probe) {
                    detection.heard(now, target);
                }
            }
            let health = detection.health(1);
            if seen.last().is_none_or(|&(_, last)| last != health) {
                seen.push((step * 10, health));
            }
        }
        seen
    }

    #[test]
    fn a_dead_host_is_suspected_and_then_known_and_lives_again_when_it_answers() {
        let mut detection = Detection::new(SimTime::START, 0, 4, Patience::DEFAULT);
        let seen = run(&mut detection, SimTime::START, 2_000, |probe| match probe {
            Probe::Direct(target) | Probe::By { target, .. } => target != 1,
        });
        let states: Vec<Health> = seen.iter().map(|&(_, health)| health).collect();
        assert_eq!(states, [Health::Alive, Health::Suspected, Health::Dead]);
        assert!(seen[2].0 <= 900, "{seen:?}");
        assert_eq!(detection.health(2), Health::Alive);
        detection.heard(SimTime::START + MS * 2_000, 1);
        assert_eq!(detection.health(1), Health::Alive);
    }

    #[test]
    fn a_broken_path_kills_nobody_whom_others_hear() {
        let mut detection = Detection::new(SimTime::START, 0, 4, Patience::DEFAULT);
        let seen = run(&mut detection, SimTime::START, 20_000, |probe| probe != Probe::Direct(1));
        assert_eq!(seen, [(10, Health::Alive)]);
    }

    #[test]
    fn who_stood_still_blames_nobody() {
        let mut detection = Detection::new(SimTime::START, 0, 3, Patience::DEFAULT);
        run(&mut detection, SimTime::START, 500, |_| true);
        // Stopped for 30 s, in which nothing was handled; then all answer at once.
        let resumed = SimTime::START + MS * 30_500;
        let seen = run(&mut detection, resumed, 1_000, |_| true);
        assert_eq!(seen, [(10, Health::Alive)]);
    }
}
