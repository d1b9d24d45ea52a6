//! Pieces of work that do not depend on each other, on as many threads as are wanted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A thread that panics ends the scope in which they all run.
const NO_PANIC: &str = "no thread panicked while it told of its piece";

/// As many threads as there are cores.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What comes of each piece, in the order of the pieces; `told` hears how many are done.
///
/// # Panics
/// If `work` does.
pub fn each<T: Sync, R: Send>(
    pieces: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
    told: impl Fn(usize) + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let none: Vec<Option<R>> = pieces.iter().map(|_| None).collect();
    let done = Mutex::new((none, 0));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(pieces.len()) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(piece) = pieces.get(at)
                {
                    let outcome = work(piece);
                    let mut done = done.lock().expect(NO_PANIC);
                    done.0[at] = Some(outcome);
                    done.1 += 1;
                    told(done.1);
                }
            });
        }
    });
    let (done, _) = done.into_inner().expect(NO_PANIC);
    done.into_iter().map(|outcome| outcome.expect("every piece was worked on")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn outcomes_come_in_the_order_of_their_pieces_whoever_is_done_first() {
        let heard = Mutex::new(Vec::new());
        // The first piece is done only when the second one is worked on.
        let both = Barrier::new(2);
        let work = |piece: &usize| {
            if *piece < 2 {
                both.wait();
            }
            piece * 10
        };
        let outcomes = each(&[0, 1, 2, 3, 4], 2, work, |done| heard.lock().unwrap().push(done));
        assert_eq!(outcomes, [0, 10, 20, 30, 40]);
        assert_eq!(heard.into_inner().unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(each(&[0_u8; 0], 4, |_| (), |_| ()), []);
    }
}
