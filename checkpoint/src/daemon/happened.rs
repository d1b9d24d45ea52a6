//! What a daemon tells whoever records it: checkpoints as they begin and end, hosts that are lost, what is rebuilt.
//!
//! What concerns the whole group is told by one host: the one that coordinates the generation, or the first that lives where
//! that one is dead. Everything else is told by the host that it happened on.

use meikyo_units::{Nanos, SimTime};

use super::Daemon;
use super::control::Cost;
use crate::charter::{Generation, Opened, Reached};
use crate::member::Event;

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A generation is being written.
    Opened,
    /// This host's part of it is on its disk.
    Prepared,
    /// It is whole.
    Committed,
    /// It is given up.
    Aborted,
    /// A host is held dead.
    HostLost,
    /// What this host lacked of a generation is on its disk again.
    Rebuilt,
    /// A block on this host's disk is not what was stored.
    Damaged,
    /// More hosts lack a generation than parity makes up for.
    Lost,
    /// The program on this host runs and no longer saves.
    Stalled,
    /// This host's image is on the file system that all hosts share.
    Drained,
    /// It could not be written there.
    NotDrained,
    /// A generation is not kept any more.
    Freed,
    /// A spare has taken the place of a host that was lost.
    Replaced,
    /// All hosts have what they need to bring the program back.
    Ready,
    /// The program runs again.
    RunsAgain,
}

impl What {
    /// As it stands in a recording.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "checkpoint_opened",
            Self::Prepared => "checkpoint_prepared",
            Self::Committed => "checkpoint_committed",
            Self::Aborted => "checkpoint_aborted",
            Self::HostLost => "checkpoint_host_lost",
            Self::Rebuilt => "checkpoint_rebuilt",
            Self::Damaged => "checkpoint_damaged",
            Self::Lost => "checkpoint_lost",
            Self::Stalled => "checkpoint_stalled",
            Self::Drained => "checkpoint_drained",
            Self::NotDrained => "checkpoint_not_drained",
            Self::Freed => "checkpoint_freed",
            Self::Replaced => "checkpoint_replaced",
            Self::Ready => "checkpoint_ready",
            Self::RunsAgain => "checkpoint_runs_again",
        }
    }
}

/// Something that happened just now.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    /// Which of the things that are told.
    pub what: What,
    /// The generation that it is about.
    pub generation: Option<Generation>,
    /// How far the program had come in it.
    pub reached: Option<Reached>,
    /// What it cost this host, where that is known.
    pub cost: Option<Cost>,
    /// How long it took: from its begin to its end for the whole group, or this host's own work.
    pub span: Option<Nanos>,
    /// For a person.
    pub text: String,
}

/// Who is told; it must not wait for anything, since the daemon waits for it.
pub type Observer = Box<dyn FnMut(Happened)>;

/// What is watched to notice what happens to a generation.
#[derive(Debug, Default)]
pub(super) struct Watched {
    open: Option<(Opened, SimTime)>,
    /// Why the generation was given up that this host coordinated last.
    reason: Option<(Generation, String)>,
    /// What was committed last, in which start of the program, when, and how long after the one before.
    newest: Option<(Generation, u64, SimTime)>,
    every: Option<Nanos>,
}

impl Watched {
    /// How long after the one before the newest generation was committed.
    pub(super) const fn every(&self) -> Option<Nanos> {
        self.every
    }

    fn committed(&mut self, generation: Generation, run: u64, now: SimTime) {
        if self.newest.is_some_and(|(newest, ..)| newest == generation) {
            return;
        }
        let before = self.newest.replace((generation, run, now));
        let same = before.filter(|(_, before, _)| *before == run);
        self.every = same.map(|(_, _, then)| now.since(then));
    }
}

impl Daemon {
    pub(super) fn tell(&mut self, what: What, generation: Option<Generation>, text: String) {
        let (reached, cost, span) = (None, None, None);
        (self.observer)(Happened { what, generation, reached, cost, span, text });
    }

    /// Notices what the group has agreed on since the last time.
    pub(super) fn watch(&mut self) {
        let now = self.now();
        let Some(charter) = self.member.charter() else { return };
        if let Some(commit) = charter.newest().cloned() {
            self.watched.committed(commit.generation, commit.reached.run, now);
            self.drain(&commit);
        }
        let Some(charter) = self.member.charter() else { return };
        let open = charter.open;
        let before = self.watched.open;
        if before.map(|(open, _)| open) == open {
            return;
        }
        self.watched.open = open.map(|open| (open, now));
        let (me, commits) = (self.options.place, charter.commits.clone());
        let has_committed =
            |generation| commits.iter().any(|commit| commit.generation == generation);
        if let Some((ended, _)) = before
            && !has_committed(ended.generation)
        {
            self.level_gave_up(ended.level);
        }
        if let Some((ended, since)) = before
            && self.tells_of(ended.coordinator)
        {
            let (generation, span) = (ended.generation, now.since(since));
            let is_committed = has_committed(generation);
            let reason = self.watched.reason.take().filter(|(of, _)| *of == generation);
            let (what, text) = if is_committed {
                (What::Committed, format!("step {} is safe", ended.reached.step))
            } else {
                let why = reason.map_or_else(String::new, |(_, why)| format!(": {why}"));
                (What::Aborted, format!("step {} is given up{why}", ended.reached.step))
            };
            let cost = self.cost.clone().filter(|cost| cost.generation == generation.0);
            let (generation, reached, span) = (Some(generation), Some(ended.reached), Some(span));
            (self.observer)(Happened { what, generation, reached, cost, span, text });
        }
        if let Some(open) = open.filter(|open| open.coordinator == me) {
            let (generation, reached) = (Some(open.generation), Some(open.reached));
            let text = format!("step {} is being saved", open.reached.step);
            let (what, cost, span) = (What::Opened, None, None);
            (self.observer)(Happened { what, generation, reached, cost, span, text });
        }
    }

    /// Whether this host tells what concerns all, of a generation that another coordinates.
    fn tells_of(&self, coordinator: usize) -> bool {
        let detection = self.member.detection();
        let me = self.options.place;
        coordinator == me
            || detection.is_dead(coordinator) && (0..me).all(|place| detection.is_dead(place))
    }

    /// Tells what a member wanted to be told.
    pub(super) fn observe(&mut self, event: &Event) {
        let text = event.to_string();
        match event {
            Event::Aborted(generation, reason) => {
                self.watched.reason = Some((*generation, reason.to_string()));
            }
            Event::Died(place) if self.tells_of(*place) => {
                let text = format!("{} is dead", self.names_of(&[*place]));
                self.tell(What::HostLost, None, text);
            }
            Event::Damaged(generation) => self.tell(What::Damaged, Some(*generation), text),
            Event::Lost(generation, _) => self.tell(What::Lost, Some(*generation), text),
            _ => {}
        }
    }

    /// Tells of a job of this host that ended well.
    pub(super) fn observe_job(&mut self, what: What, cost: Cost) {
        let text = match what {
            What::Rebuilt => format!("{} octets came from other hosts", cost.received_bytes),
            _ => format!("{} octets went to other hosts", cost.sent_bytes),
        };
        let (generation, span) = (Generation(cost.generation), Nanos::from_secs_f64(cost.seconds));
        let reached = self.member.charter().and_then(|charter| {
            let open = charter.open.filter(|open| open.generation == generation);
            open.map(|open| open.reached)
                .or_else(|| charter.commit_of(generation).map(|commit| commit.reached))
        });
        let (generation, cost, span) = (Some(generation), Some(cost), Some(span));
        (self.observer)(Happened { what, generation, reached, cost, span, text });
    }

    /// Tells of a program that no longer saves.
    pub(super) fn watch_progress(&mut self) {
        let now = self.now();
        if let Some(since) = self.progress.stalled(now) {
            let seconds = since.as_secs_f64();
            let text = format!("the program runs and has saved nothing for {seconds:.0} s");
            self.trouble = Some(text.clone());
            self.tell(What::Stalled, None, text);
        }
    }
}
