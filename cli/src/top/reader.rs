//! The thread that reads the past, so that keys are answered while it does.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use meikyo_live::{Past, Step, Watch};
use meikyo_recording::ReadError;
use meikyo_units::{WallTime, in_one_line};

/// What is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// Counts the places that were looked at; what belongs to an earlier one is not wanted any more.
    pub(super) epoch: u64,
    /// Where to begin anew; `None` goes on behind the last piece.
    pub(super) from: Option<WallTime>,
    /// Up to there, exclusive.
    pub(super) to: WallTime,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) epoch: u64,
    pub(super) to: WallTime,
    /// The steps, or why there are none.
    pub(super) steps: Result<Vec<Step>, String>,
}

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    jobs: Sender<Job>,
    pieces: Receiver<Piece>,
}

impl Reader {
    pub(super) fn start(watch: &Arc<Watch>) -> io::Result<Self> {
        let (jobs, to_do) = channel();
        let (done, pieces) = channel();
        let watch = Arc::clone(watch);
        std::thread::Builder::new().name("read the past".into()).spawn(move || {
            meikyo_recording::lower_priority();
            read(&watch, &to_do, &done);
        })?;
        Ok(Self { jobs, pieces })
    }

    /// Asks for a piece. There is at most one that nobody has taken, of the newest epoch.
    /// Whether the thread is there to do it.
    pub(super) fn ask(&self, job: Job) -> bool {
        self.jobs.send(job).is_ok()
    }

    /// A piece that is there by now.
    pub(super) fn try_piece(&self) -> Option<Piece> {
        self.pieces.try_recv().ok()
    }
}

fn read(watch: &Watch, jobs: &Receiver<Job>, done: &Sender<Piece>) {
    let mut past: Option<Past> = None;
    while let Ok(mut job) = jobs.recv() {
        // Whoever leafs quickly is not kept waiting by where he was.
        while let Ok(newer) = jobs.try_recv() {
            job = newer;
        }
        let steps = piece(watch, &mut past, job).map_err(|error| in_one_line(&error));
        if done.send(Piece { epoch: job.epoch, to: job.to, steps }).is_err() {
            return;
        }
    }
}

fn piece(watch: &Watch, past: &mut Option<Past>, job: Job) -> Result<Vec<Step>, ReadError> {
    if let Some(from) = job.from {
        *past = Some(watch.past(from)?);
    }
    past.as_mut().map_or_else(|| Ok(Vec::new()), |past| past.read(job.to))
}
