//! Turns of requests that read files: few read at once, some wait, further ones are told to come again.

use axum::http::StatusCode;
use meikyo_units::Nanos;
use tokio::sync::Semaphore;

use crate::errors::ApiError;

/// Requests that read files at once; each may hold some tens of megabytes.
const READERS_MAX: usize = 3;
/// Requests that read or wait for their turn to read.
const WAITING_MAX: usize = 256;

/// Who reads, and who waits for it.
#[derive(Debug)]
pub(crate) struct Turns {
    reading: Semaphore,
    waiting: Semaphore,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self { reading: Semaphore::new(READERS_MAX), waiting: Semaphore::new(WAITING_MAX) }
    }

    /// Does `work` on a thread that may block, when it is its turn.
    ///
    /// # Errors
    /// What `work` returns; 503 when too many wait.
    pub(crate) async fn take<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let busy = || {
            let text =
                format!("more than {WAITING_MAX} requests are waiting; ask again in a second");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text, "").retry_after(Nanos::SECOND)
        };
        let _waiting = self.waiting.try_acquire().map_err(|_| busy())?;
        let _turn = self.reading.acquire().await.map_err(|_| busy())?;
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| ApiError::internal(&error))?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Condvar, Mutex};

    use axum::response::IntoResponse as _;

    use super::*;

    /// Readers who stay until they are let go, and how many of them there were at once.
    #[derive(Default)]
    struct Readers {
        here: AtomicUsize,
        most: AtomicUsize,
        let_go: (Mutex<bool>, Condvar),
    }

    impl Readers {
        fn read(&self) {
            let here = self.here.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(here, Ordering::SeqCst);
            let free = self.let_go.0.lock().unwrap();
            drop(self.let_go.1.wait_while(free, |free| !*free).unwrap());
            self.here.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn three_read_while_others_wait_and_who_comes_then_is_told_to_come_again() {
        let (turns, readers) = (Arc::new(Turns::new()), Arc::new(Readers::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut all = tokio::task::JoinSet::new();
            for _ in 0..WAITING_MAX {
                let (turns, readers) = (Arc::clone(&turns), Arc::clone(&readers));
                all.spawn(async move {
                    let read = move || {
                        readers.read();
                        Ok(())
                    };
                    turns.take(read).await.is_ok()
                });
            }
            // On one thread, who yields often enough lets everybody else begin.
            for _ in 0..WAITING_MAX {
                tokio::task::yield_now().await;
            }
            let refused = turns.take(|| Ok(())).await.unwrap_err().into_response();
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
            while readers.here.load(Ordering::SeqCst) < READERS_MAX {
                std::thread::yield_now();
            }
            *readers.let_go.0.lock().unwrap() = true;
            readers.let_go.1.notify_all();
            assert_eq!(all.join_all().await, vec![true; WAITING_MAX]);
        });
        assert_eq!(readers.most.load(Ordering::SeqCst), READERS_MAX);
    }
}
