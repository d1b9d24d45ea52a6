//! Flame graphs of profiles: samples as trees of callers, with the names of functions.
//!
//! Functions are looked up in the files of this machine by build ID. One thread does that for all requests,
//! since who looks names up keeps what he found: each (build ID, offset) is looked up once as long as the
//! server runs. The requests that wait for it are those that read files, and bounded with them.

pub(crate) mod answer;

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use meikyo_profile::flame::{Flame, FlameError, FlameOptions, flame};
use meikyo_profile::symbols::Symbols;
use meikyo_recording::Recording;

/// A tree that somebody wants.
#[derive(Debug)]
struct Question {
    recording: Recording,
    options: FlameOptions,
    answer: Sender<Result<Flame, FlameError>>,
}

/// Who makes trees.
#[derive(Debug, Default)]
pub(crate) struct Flames {
    /// To the thread, which begins with the first question.
    thread: Mutex<Option<Sender<Question>>>,
}

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoFlame {
    #[error(transparent)]
    Flame(#[from] FlameError),
    /// The system gives no thread.
    #[error("cannot start the thread that resolves function names")]
    Thread(#[source] std::io::Error),
    /// The thread has ended in the middle of it.
    #[error("resolving function names failed; the server's output says why")]
    Ended,
}

impl Flames {
    /// The tree of a recording's samples. Blocks until it is this question's turn and it is made.
    ///
    /// # Errors
    /// When there is no such tree, or the thread that makes it ends.
    pub(crate) fn tree(
        &self,
        recording: &Recording,
        options: FlameOptions,
    ) -> Result<Flame, NoFlame> {
        let (answer, tree) = channel();
        let question = Question { recording: recording.clone(), options, answer };
        self.ask(question)?;
        Ok(tree.recv().map_err(|_| NoFlame::Ended)??)
    }

    fn ask(&self, question: Question) -> Result<(), NoFlame> {
        let mut thread = self.thread.lock().expect("nothing that holds the thread's end can panic");
        let unsent = match thread.as_ref() {
            // A panic can have ended it, which its own question was told; the next one has a new thread.
            Some(thread) => match thread.send(question) {
                Ok(()) => return Ok(()),
                Err(unsent) => unsent.0,
            },
            None => question,
        };
        let (to, questions) = channel();
        let named = std::thread::Builder::new().name("functions".into());
        named.spawn(move || answer_all(&questions)).map_err(NoFlame::Thread)?;
        to.send(unsent).map_err(|_| NoFlame::Ended)?;
        *thread = Some(to);
        Ok(())
    }
}

/// Answers until nobody can ask any more.
fn answer_all(questions: &Receiver<Question>) {
    meikyo_recording::lower_priority();
    let mut symbols = Symbols::of_this_host();
    while let Ok(Question { recording, options, answer }) = questions.recv() {
        // Whoever does not wait any more needs no answer.
        drop(answer.send(flame(&recording, &mut symbols, &options)));
    }
}
