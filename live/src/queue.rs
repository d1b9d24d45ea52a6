//! The steps that wait for one viewer: bounded, so that nobody has to wait for him.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use meikyo_units::Nanos;

use crate::frames::Step;

/// What a viewer may be behind before the oldest that waits for him is dropped.
pub(crate) const BEHIND_MAX: Nanos = Nanos::from_secs(2);

/// Steps that wait for one viewer.
///
/// The follower never waits: when the newest step is too far ahead of the oldest that waits, the
/// oldest are dropped whole and counted, and the viewer goes on with what is new. A viewer either
/// looks when it suits him ([`Queue::drain`]), or leaves the waker of his task
/// ([`Queue::poll_arrived`]), whatever runtime it belongs to.
#[derive(Debug)]
pub struct Queue {
    /// What the oldest may be behind, ns of the recording's time.
    behind_max: i64,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    steps: VecDeque<Arc<Step>>,
    /// Since the viewer took steps last.
    dropped: u64,
    ended: bool,
    /// The viewer's task while it waits.
    task: Option<Waker>,
}

impl Default for Queue {
    fn default() -> Self {
        Self::with_room(BEHIND_MAX)
    }
}

impl Queue {
    /// A queue for a recording that is played so much faster than life that `behind_max` of its
    /// time are [`BEHIND_MAX`] of a viewer's.
    pub(crate) fn with_room(behind_max: Nanos) -> Self {
        let behind_max = i64::try_from(behind_max.get()).expect("room is far below 292 years");
        Self { behind_max, waiting: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("nothing that holds the steps can panic")
    }

    /// Puts a step in; drops what is too old. How many were dropped.
    pub(crate) fn push(&self, step: Arc<Step>) -> u64 {
        let mut waiting = self.lock();
        let least = step.newest.saturating_sub(self.behind_max);
        let mut dropped = 0;
        while waiting.steps.front().is_some_and(|oldest| oldest.newest < least) {
            waiting.steps.pop_front();
            dropped += 1;
        }
        waiting.steps.push_back(step);
        waiting.dropped += dropped;
        let task = waiting.task.take();
        drop(waiting);
        task.into_iter().for_each(Waker::wake);
        dropped
    }

    /// Takes everything that waits, and how many were dropped since the last time.
    pub fn drain(&self) -> (Vec<Arc<Step>>, u64) {
        let mut waiting = self.lock();
        let dropped = std::mem::take(&mut waiting.dropped);
        (waiting.steps.drain(..).collect(), dropped)
    }

    /// Ready when there is a step to take or nothing more will come; else the task of `context` is
    /// woken then. A queue is one viewer's: of several tasks only the last is woken.
    pub fn poll_arrived(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.lock();
        if waiting.ended || !waiting.steps.is_empty() {
            return Poll::Ready(());
        }
        waiting.task = Some(context.waker().clone());
        Poll::Pending
    }

    /// Says that nothing more will come.
    pub(crate) fn end(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        let task = waiting.task.take();
        drop(waiting);
        task.into_iter().for_each(Waker::wake);
    }

    /// Whether nothing more will come than what waits.
    pub fn has_ended(&self) -> bool {
        self.lock().ended
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[test]
    fn a_viewer_who_does_not_take_loses_the_oldest_and_it_is_counted() {
        let queue = Queue::default();
        let step = |tenths: i64| Arc::new(Step { newest: tenths * 100_000_000, ..Step::default() });
        let dropped: u64 = (0..100).map(|tenths| queue.push(step(tenths))).sum();
        // 2 s of steps at 10 Hz, both ends included.
        assert_eq!(dropped, 79);
        let (steps, told) = queue.drain();
        assert_eq!((steps.len(), told), (21, 79));
        assert_eq!(steps[0].newest, 7_900_000_000);
        assert_eq!(queue.drain().1, 0);
        assert!(!queue.has_ended());
        queue.end();
        assert!(queue.has_ended());
    }
    #[test]
    fn a_task_that_waits_is_woken_by_a_step_and_by_the_end() {
        #[derive(Default)]
        struct Woken(AtomicUsize);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let (queue, mut context) = (Queue::default(), Context::from_waker(&waker));
        let count = || woken.0.load(Ordering::Relaxed);
        assert!(queue.poll_arrived(&mut context).is_pending());
        queue.push(Arc::default());
        assert_eq!(count(), 1);
        // Nobody has waited since: nobody is woken, and the steps are there at once.
        queue.push(Arc::default());
        assert_eq!(count(), 1);
        assert!(queue.poll_arrived(&mut context).is_ready());
        assert_eq!(queue.drain().0.len(), 2);
        assert!(queue.poll_arrived(&mut context).is_pending());
        queue.end();
        assert_eq!(count(), 2);
        assert!(queue.poll_arrived(&mut context).is_ready());
    }
}
