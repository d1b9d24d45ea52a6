//! Who watches what comes from afar: while somebody does, its senders are asked for blocks of a tenth of a second.
//!
//! A request counts for a few seconds, so that a page that is closed needs to say nothing. One for profiles that says
//! `watch` counts for the senders that are called as the hosts that it asks about, by the whole name or by what
//! stands behind its last colon; any other one for the collectors of the cluster whose recording it asks about.

use std::collections::{BTreeMap, BTreeSet};
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
pub(crate) struct Watching(Arc<Mutex<Watched>>);

/// What is watched, and until when that counts.
#[derive(Debug, Default)]
struct Watched {
    hosts: BTreeMap<Vec<String>, Instant>,
    clusters: BTreeMap<String, Instant>,
    /// All clusters beside each other.
    all_clusters: Option<Instant>,
}

/// The clock of who watches.
#[expect(clippy::disallowed_methods, reason = "what a request counts for ends by the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

impl Watching {
    /// Somebody watches profiles of these hosts, of all when there are none.
    pub(crate) fn note(&self, now: Instant, hosts: &[String]) {
        let choices = &mut self.current(now).hosts;
        if choices.len() < CHOICES_MAX || choices.contains_key(hosts) {
            choices.insert(hosts.to_vec(), now + LASTS);
        }
    }

    /// Somebody watches a cluster.
    pub(crate) fn note_cluster(&self, now: Instant, name: &str) {
        self.current(now).clusters.insert(name.to_owned(), now + LASTS);
    }

    /// Somebody watches all clusters.
    pub(crate) fn note_all_clusters(&self, now: Instant) {
        self.current(now).all_clusters = Some(now + LASTS);
    }

    /// Whether anybody watches any profile.
    pub(crate) fn is_any(&self, now: Instant) -> bool {
        !self.current(now).hosts.is_empty()
    }

    /// How often blocks of a sender, which may measure a cluster, are wanted, ms; 0 for what it finds best.
    pub(crate) fn paces(&self, now: Instant) -> impl Fn(&str, Option<&str>) -> u32 + use<> {
        let current = self.current(now);
        let choices: Vec<_> = current.hosts.keys().cloned().collect();
        let clusters: BTreeSet<_> = current.clusters.keys().cloned().collect();
        let are_all = current.all_clusters.is_some();
        move |sender, cluster| {
            let host = sender.rsplit(':').next().unwrap_or(sender);
            let fits = |of: &String| glob::matches(of, sender) || glob::matches(of, host);
            let is_watched = match cluster {
                Some(name) => are_all || clusters.contains(name),
                None => choices.iter().any(|hosts| hosts.is_empty() || hosts.iter().any(fits)),
            };
            if is_watched { WATCHED_MS } else { 0 }
        }
    }

    /// What still counts.
    fn current(&self, now: Instant) -> MutexGuard<'_, Watched> {
        let mut watched = self.0.lock().expect("nothing that holds it can panic");
        watched.hosts.retain(|_, until| *until > now);
        watched.clusters.retain(|_, until| *until > now);
        watched.all_clusters = watched.all_clusters.filter(|until| *until > now);
        watched
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
        let names = ["node10", "west:node11", "node2", "node1:x"];
        assert_eq!(names.map(|name| pace(name, None)), [100, 100, 0, 100]);
        watching.note(at(2), &[]);
        assert_eq!(watching.paces(at(4))("node2", None), 100);
        assert_eq!(watching.paces(at(4))("west:c", Some("west")), 0);
        assert!(!watching.is_any(at(5)));
        assert_eq!(watching.paces(at(5))("node10", None), 0);
        for number in 0..2 * CHOICES_MAX {
            watching.note(at(5), &[format!("node{number}")]);
        }
        assert_eq!(watching.current(at(5)).hosts.len(), CHOICES_MAX);
    }

    #[test]
    fn collectors_of_a_watched_cluster_are_asked_for_more_as_long_as_somebody_watches() {
        let (watching, begin) = (Watching::default(), now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let paces = |now: Instant| {
            let pace = watching.paces(now);
            [("west:a", "west"), ("east:a", "east")].map(|(name, of)| pace(name, Some(of)))
        };
        watching.note_cluster(begin, "west");
        assert_eq!([paces(at(2)), paces(at(3))], [[100, 0], [0, 0]]);
        assert_eq!(watching.paces(at(2))("west", None), 0);
        assert!(!watching.is_any(at(2)));
        watching.note_all_clusters(at(4));
        assert_eq!([paces(at(6)), paces(at(7))], [[100, 100], [0, 0]]);
    }
}
