//! Who watches profiles as they come: while somebody does, senders are asked for blocks of a tenth of a second.
//!
//! A request that says `watch` counts for a few seconds, so that a page that is closed needs to say nothing. It
//! counts for the senders that are called as the hosts that it asks about, by the whole name or by what stands
//! behind its last colon.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use meikyo_units::glob;

/// For how long a request counts.
const LASTS: Duration = Duration::from_secs(3);

/// Different choices of hosts that are watched at once; further ones see what comes each second.
const CHOICES_MAX: usize = 64;

/// What blocks are of while they are watched, ms.
pub(crate) const WATCHED_MS: u32 = 100;

/// Who watches, shared by those who ask and those who act on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watching(Arc<Mutex<BTreeMap<Vec<String>, Instant>>>);

/// The clock of who watches.
#[expect(clippy::disallowed_methods, reason = "what a request counts for ends by the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

impl Watching {
    /// Somebody watches these hosts, all when there are none.
    pub(crate) fn note(&self, now: Instant, hosts: &[String]) {
        let mut choices = self.current(now);
        if choices.len() < CHOICES_MAX || choices.contains_key(hosts) {
            choices.insert(hosts.to_vec(), now + LASTS);
        }
    }

    /// Whether anybody watches anything.
    pub(crate) fn is_any(&self, now: Instant) -> bool {
        !self.current(now).is_empty()
    }

    /// How often blocks of a sender are wanted, ms; 0 for what it finds best.
    pub(crate) fn paces(&self, now: Instant) -> impl Fn(&str) -> u32 + use<> {
        let choices: Vec<_> = self.current(now).keys().cloned().collect();
        move |sender| {
            let host = sender.rsplit(':').next().unwrap_or(sender);
            let fits = |of: &String| glob::matches(of, sender) || glob::matches(of, host);
            let is_watched = choices.iter().any(|hosts| hosts.is_empty() || hosts.iter().any(fits));
            if is_watched { WATCHED_MS } else { 0 }
        }
    }

    /// Those that still count.
    fn current(&self, now: Instant) -> MutexGuard<'_, BTreeMap<Vec<String>, Instant>> {
        let mut choices = self.0.lock().expect("nothing that holds it can panic");
        choices.retain(|_, until| *until > now);
        choices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_of_watched_hosts_are_asked_for_more_as_long_as_somebody_watches() {
        let (watching, begin) = (Watching::default(), now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert!(!watching.is_any(begin));
        watching.note(begin, &["node00[1]".to_owned(), "node1*".to_owned()]);
        let pace = watching.paces(at(2));
        assert_eq!(["node10", "west:node11", "node2", "node1:x"].map(pace), [100, 100, 0, 100]);
        watching.note(at(2), &[]);
        assert_eq!(watching.paces(at(4))("node2"), 100);
        assert!(!watching.is_any(at(5)));
        assert_eq!(watching.paces(at(5))("node10"), 0);
        for number in 0..2 * CHOICES_MAX {
            watching.note(at(5), &[format!("node{number}")]);
        }
        assert_eq!(watching.current(at(5)).len(), CHOICES_MAX);
    }
}
