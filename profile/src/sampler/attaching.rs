//! Events for the threads of processes, which come and go meanwhile.
//!
//! A thread that begins while events are opened may have inherited some of its creator's, or none. So
//! the threads are listed again until nothing is new, each gets events of its own, and of a thread
//! that has its own the samples of inherited ones are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::{OpenSamplerError, refused};
use crate::existing::threads_of;
use crate::perf_event::{Event, EventOptions, Subject};
use crate::records::Record;

/// How often threads are listed at most: those that threads with events begin have inherited them, so
/// that only who passes on from thread to thread faster than events are opened is still new then.
const PASSES_MAX: usize = 8;

/// Descriptors beside those of events: files, the recording that is written.
const OTHER_DESCRIPTORS: u64 = 64;

/// Whose samples an event's are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Owners {
    /// The thread that each event was opened for.
    of_events: BTreeMap<u64, u32>,
    /// By thread, the one whose events count for it: itself, or the ancestor that it has them from.
    of_threads: BTreeMap<u32, u32>,
    ended: Vec<u32>,
}

impl Owners {
    fn new(of_events: BTreeMap<u64, u32>) -> Self {
        let of_threads = of_events.values().map(|&tid| (tid, tid)).collect();
        Self { of_events, of_threads, ended: Vec::new() }
    }

    /// Whether a record counts; a sample does not that another event has taken for its thread too.
    pub(super) fn takes(&mut self, record: &Record<'_>) -> bool {
        match *record {
            Record::Sample { ids, event: Some(event), .. } => {
                let expected = self.of_threads.get(&ids.tid);
                expected.is_none_or(|owner| self.of_events.get(&event) == Some(owner))
            }
            Record::Fork { ids, parent, .. } => {
                // A thread that has its own events was listed, whenever it began.
                if let Some(&owner) = self.of_threads.get(&parent.tid) {
                    self.of_threads.entry(ids.tid).or_insert(owner);
                }
                true
            }
            Record::Exit { ids, .. } => {
                self.ended.push(ids.tid);
                true
            }
            _ => true,
        }
    }

    /// Forgets the threads that have ended, once the rings of all CPUs are drained.
    pub(super) fn forget_ended(&mut self) {
        for tid in self.ended.drain(..) {
            self.of_threads.remove(&tid);
        }
    }
}

/// Opens events for all threads of some processes: those of each CPU, and whose they are where that
/// matters.
pub(super) fn attach(
    pids: &[u32],
    cpus: &[u32],
    options: &EventOptions,
) -> Result<(Vec<Vec<Event>>, Option<Owners>), OpenSamplerError> {
    let mut of_cpus: Vec<Vec<Event>> = cpus.iter().map(|_| Vec::new()).collect();
    let (mut known, mut threads) = (BTreeSet::new(), Vec::new());
    let mut can_have_inherited = false;
    for _ in 0..PASSES_MAX {
        let there: BTreeSet<u32> = pids.iter().flat_map(|&pid| threads_of(pid)).collect();
        let new: Vec<u32> = there.difference(&known).copied().collect();
        if new.is_empty() {
            break;
        }
        known.extend(&new);
        allow_descriptors(known.len() * cpus.len());
        let are_first = threads.is_empty();
        for tid in new {
            let opened = cpus.iter().map(|&cpu| of_thread(tid, cpu, options));
            let opened: Result<Vec<Event>, OpenThreadError> = opened.collect();
            match opened {
                Ok(events) => {
                    for (of_cpu, event) in of_cpus.iter_mut().zip(events) {
                        of_cpu.push(event);
                    }
                    threads.push(tid);
                    can_have_inherited |= !are_first;
                }
                Err(OpenThreadError::Ended) => {}
                Err(OpenThreadError::TooMany) => return Err(too_many(known.len(), cpus.len())),
                Err(OpenThreadError::Other(error)) => return Err(error),
            }
        }
    }
    if threads.is_empty() {
        return Err(OpenSamplerError::Processes { pids: pids.to_vec() });
    }
    let owners = can_have_inherited.then(|| owners(&of_cpus, &threads, cpus)).transpose()?;
    Ok((of_cpus, owners))
}

/// Why a thread has no event.
#[derive(Debug)]
enum OpenThreadError {
    Ended,
    TooMany,
    Other(OpenSamplerError),
}

fn of_thread(tid: u32, cpu: u32, options: &EventOptions) -> Result<Event, OpenThreadError> {
    let subject = Subject::Thread(tid);
    Event::open(subject, cpu, options).map_err(|source| match source.raw_os_error() {
        Some(libc::ESRCH) => OpenThreadError::Ended,
        Some(libc::EMFILE) => OpenThreadError::TooMany,
        _ => OpenThreadError::Other(refused(source, cpu, subject, options)),
    })
}

fn owners(
    of_cpus: &[Vec<Event>],
    threads: &[u32],
    cpus: &[u32],
) -> Result<Owners, OpenSamplerError> {
    let mut of_events = BTreeMap::new();
    for (events, &cpu) in of_cpus.iter().zip(cpus) {
        for (event, &tid) in events.iter().zip(threads) {
            let doing = "read the number of an event";
            let id = event.id();
            let id = id.map_err(|source| OpenSamplerError::System { doing, cpu, source })?;
            of_events.insert(id, tid);
        }
    }
    Ok(Owners::new(of_events))
}

/// Lets this process open that many events, as far as the hard limit goes.
pub(super) fn allow_descriptors(events: usize) {
    let needed = events as u64 + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
        // Where it is refused, opening says what is lacking.
        setrlimit(Resource::Nofile, raised).unwrap_or_default();
    }
}

fn too_many(subjects: usize, cpus: usize) -> OpenSamplerError {
    let needed = (subjects * cpus) as u64 + OTHER_DESCRIPTORS;
    // Without a limit of its own the process meets that of the system.
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    OpenSamplerError::Descriptors { subjects, cpus, needed, limit }
}

/// Directories but those that are below another of them, each once.
pub(super) fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    // Whole names are compared: a directory comes right before those below it.
    paths.sort_unstable();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !kept.last().is_some_and(|last| path.starts_with(last)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{self, Carried, Ids};

    #[test]
    fn groups_below_others_and_twice_are_left_out() {
        let paths = ["/b", "/a/x/y", "/a/x", "/a-b", "/a/x", "/a/xy"].map(PathBuf::from);
        let expected = ["/a/x", "/a/xy", "/a-b", "/b"].map(PathBuf::from);
        assert_eq!(outermost(paths.to_vec()), expected);
    }

    #[test]
    fn samples_of_inherited_events_do_not_count_beside_those_of_own_ones() {
        // Thread 1 was listed first; 2 began meanwhile, so that it has inherited from 1 as well.
        let mut owners = Owners::new(BTreeMap::from([(10, 1), (11, 1), (20, 2), (21, 2)]));
        let carried = Carried { callers: false, user: false, cgroup: false, event: true };
        let mut counts = |tid: u64, event: u64| {
            let words = [9_u64 | 40 << 48, 0, tid << 32, 0, event];
            let octets: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            owners.takes(&records::read(&octets, carried).unwrap())
        };
        assert_eq!([counts(1, 10), counts(1, 11)], [true, true]);
        assert_eq!([counts(2, 10), counts(2, 21)], [false, true]);
        // What is known of nobody counts, until it is known whose it is.
        assert_eq!([counts(3, 10), counts(3, 20)], [true, true]);
        let (ids, parent) = (Ids { pid: 1, tid: 3 }, Ids { pid: 1, tid: 2 });
        assert!(owners.takes(&Record::Fork { time: 0, ids, parent }));
        let mut counts = |tid: u64, event: u64| {
            let words = [9_u64 | 40 << 48, 0, tid << 32, 0, event];
            let octets: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            owners.takes(&records::read(&octets, carried).unwrap())
        };
        assert_eq!([counts(3, 10), counts(3, 20)], [false, true]);
        assert!(owners.takes(&Record::Exit { time: 0, ids }));
        owners.forget_ended();
        assert_eq!(owners.of_threads, BTreeMap::from([(1, 1), (2, 2)]));
    }
}
