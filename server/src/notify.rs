//! Alerts told to people elsewhere: as JSON to a web hook, and by mail.
//!
//! A thread for each reads the alerts of every recording as they are raised, seen and cleared
//! ([`meikyo_recording::alerts`]). What is to be said is decided without IO ([`mod@standing`]): alerts of one
//! rule are told together, once more while they last, and when they are over. The recording is the queue: what
//! cannot be told now is told later, as it stands then, and what was told is noted beside the recording, so
//! that nothing is told twice after a restart. An alert that came and went untold is counted.

mod mail;
mod standing;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};

use meikyo_recording::{Recording, alerts};
use meikyo_units::{Nanos, WallTime};

use crate::onward::{Content, Errand, HttpTarget, Line, Posted, Recordings, recordings};
pub use mail::{MailError, MailTarget};
use standing::{Notice, Standing};

/// How often it is looked what was raised.
const LOOK_EVERY: Nanos = Nanos::SECOND;

/// How long is waited before a message is tried again, at first and at most.
const AGAIN_AFTER: Nanos = Nanos::SECOND;
const AGAIN_AFTER_MAX: Nanos = Nanos::from_secs(60);

/// Who is told.
#[derive(Debug, Clone)]
pub enum Recipient {
    /// A web hook, which JSON is posted to.
    Hook(HttpTarget),
    /// People with mailboxes.
    Mail(MailTarget),
}

impl Recipient {
    /// What it is called in metrics and files.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Hook(_) => "alert_webhook",
            Self::Mail(_) => "alert_mail",
        }
    }
}

/// Whom alerts are told to, and how.
#[derive(Debug, Clone)]
pub struct NotifyOptions {
    /// Who is told.
    pub to: Recipient,
    /// How long is waited for more of the same rule before it is told.
    pub group_wait: Nanos,
    /// After how long what lasts is told again.
    pub repeat_every: Nanos,
}

/// What was told so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NotifyCounts {
    /// Messages that were taken.
    pub(crate) messages: u64,
    /// Messages that were refused for good and are not sent again.
    pub(crate) refused: u64,
    /// Tries that failed.
    pub(crate) failed: u64,
    /// Alerts that came and went before they could be told.
    pub(crate) untold_alerts: u64,
    /// Whether the newest try failed.
    pub(crate) is_failing: bool,
}

/// The counts, shared with who asks for them.
pub(crate) type SharedNotifyCounts = Arc<Mutex<NotifyCounts>>;

/// The thread that tells; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Notifier {
    counts: SharedNotifyCounts,
    _thread: Errand,
}

impl Notifier {
    /// Tells of the alerts of recordings.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(from: Vec<Recordings>, options: &NotifyOptions) -> std::io::Result<Self> {
        let counts = SharedNotifyCounts::default();
        let line = match &options.to {
            Recipient::Hook(target) => Some(Line::new(target.clone())),
            Recipient::Mail(_) => None,
        };
        let mut work = Work {
            from,
            options: options.clone(),
            line: line.clone(),
            counts: Arc::clone(&counts),
            standings: BTreeMap::new(),
            again_after: AGAIN_AFTER,
        };
        let name = options.to.name();
        let thread = Errand::begin(name, line, move |stopped| work.run(stopped))?;
        Ok(Self { counts, _thread: thread })
    }

    pub(crate) fn counts(&self) -> SharedNotifyCounts {
        Arc::clone(&self.counts)
    }
}

struct Work {
    from: Vec<Recordings>,
    options: NotifyOptions,
    line: Option<Line>,
    counts: SharedNotifyCounts,
    standings: BTreeMap<PathBuf, Standing>,
    again_after: Nanos,
}

impl Work {
    fn run(&mut self, stopped: &Receiver<()>) {
        loop {
            let is_well = self.look();
            let wait = if is_well {
                self.again_after = AGAIN_AFTER;
                LOOK_EVERY
            } else {
                let wait = self.again_after;
                self.again_after = (wait + wait).min(AGAIN_AFTER_MAX);
                wait
            };
            if stopped.recv_timeout(wait.to_std()) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Tells what there is to tell; whether all of it could be told.
    fn look(&mut self) -> bool {
        let dirs: Vec<PathBuf> =
            self.from.iter().flat_map(recordings).map(|(dir, _)| dir).collect();
        let mut is_well = true;
        for dir in dirs {
            // What cannot be read is told by whoever reads the recording.
            let Ok((found, _)) = Recording::open(&dir).and_then(|of| alerts::read(&of)) else {
                continue;
            };
            let now = WallTime::now();
            let file = dir.join(format!("{}-told.json", self.options.to.name()));
            let standing =
                self.standings.entry(dir.clone()).or_insert_with(|| Standing::read(&file, now));
            let (wait, repeat) = (self.options.group_wait, self.options.repeat_every);
            let (notices, untold) = standing.look(now, &found, wait, repeat);
            self.counts
                .lock()
                .expect("whoever holds the counts only copies or adds")
                .untold_alerts += untold;
            let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            let mut has_told = false;
            for notice in notices {
                match tell(&self.options.to, self.line.as_ref(), &name, &notice) {
                    Ok(is_taken) => {
                        standing.told(now, &notice);
                        has_told = true;
                        let mut counts = self
                            .counts
                            .lock()
                            .expect("whoever holds the counts only copies or adds");
                        counts.messages += u64::from(is_taken);
                        counts.refused += u64::from(!is_taken);
                        counts.is_failing = false;
                    }
                    Err(error) => {
                        is_well = false;
                        let mut counts = self
                            .counts
                            .lock()
                            .expect("whoever holds the counts only copies or adds");
                        counts.failed += 1;
                        if !std::mem::replace(&mut counts.is_failing, true) {
                            tracing::warn!(%error, "alerts cannot be told; it is tried again");
                        }
                        break;
                    }
                }
            }
            if has_told && let Err(error) = standing.write(&file) {
                // After a restart it is told again.
                tracing::warn!(%error, "what was told of alerts cannot be written down");
            }
        }
        is_well
    }
}

/// Tells one notice; whether it was taken, and not refused for good.
fn tell(
    to: &Recipient,
    line: Option<&Line>,
    recording: &str,
    notice: &Notice,
) -> std::io::Result<bool> {
    match to {
        Recipient::Mail(target) => target.send(&notice.subject(recording), &notice.text(recording)),
        Recipient::Hook(_) => {
            let Some(line) = line else { return Ok(false) };
            let body = serde_json::to_vec(&notice.document(recording))?;
            Ok(line.post(&body, Content::Json, 1)? == Posted::Taken)
        }
    }
}
