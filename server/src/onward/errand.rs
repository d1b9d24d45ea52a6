//! A thread that works for a neighbour until nobody wants that any more.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::Line;

/// The thread. When this is dropped, what it waits for ends, a request under way is cut, and it is waited for.
#[derive(Debug)]
pub(crate) struct Errand {
    name: &'static str,
    line: Option<Line>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Errand {
    /// Begins `work`, which ends soon after what it is given to wait on is disconnected; `line` is what it makes its
    /// requests on.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn begin(
        name: &'static str,
        line: Option<Line>,
        work: impl FnOnce(&Receiver<()>) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            meikyo_recording::lower_priority();
            work(&stopped);
        })?;
        Ok(Self { name, line, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(line) = &self.line {
            line.cut();
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(thread = self.name, "the thread has panicked");
        }
    }
}
