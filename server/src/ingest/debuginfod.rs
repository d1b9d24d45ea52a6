//! A debuginfod of the site: functions of files that no host can tell of.
//!
//! Hosts are asked first ([`super::files`]). A file of which a host has told that it has no functions, since it was
//! stripped, and one of which no host has told anything after [`GRACE`], because it is gone, is asked for at the
//! debuginfod by its build ID, once. A thread does so, one file after the other and at low priority, so that rows
//! are taken meanwhile. Two things are asked for: `buildid/ID/executable`, of which only the begin is read, which
//! says where in the file its addresses lie, and `buildid/ID/debuginfo` with the symbols. Nothing of them is kept
//! but the functions, which become rows as those of hosts do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use meikyo_profile::symbols::{functions_of_debug_info, told};
use meikyo_recording::PackedRows;
use meikyo_units::{Nanos, WallTime, in_one_line};

use super::{Event, Inbox};
use crate::onward::{Fetched, HttpTarget, TargetError};
use crate::watching;

/// How long hosts are given to tell of a file.
const GRACE: Duration = Duration::from_secs(10);

/// What is heard of files that may wait for the thread; of more the next host that maps the file is waited for.
const WAITING_MAX: usize = 4_096;

/// Files that are remembered; then it begins anew.
const KNOWN_MAX: usize = 200_000;

/// Octets of a file's debug information that are taken, and how long that may take.
const DEBUG_INFO_MAX: u64 = 2 << 30;
const SPAN_MAX: Nanos = Nanos::from_secs(120);

/// Octets of the begin of an executable: its headers.
const HEAD_MAX: u64 = 64 << 10;

/// What rows of its files call it.
const HOST: &str = "debuginfod";

/// Where a debuginfod is.
#[derive(Debug, Clone)]
pub struct Debuginfod {
    url: String,
    roots: PathBuf,
}

impl Debuginfod {
    /// The one at a URL such as `http://127.0.0.1:8002`; `roots` vouch for one behind `https`, and `http` is for
    /// loopback.
    ///
    /// # Errors
    /// When the URL is none, or the certificates cannot be used.
    pub fn new(url: &str, roots: &Path) -> Result<Self, TargetError> {
        let of = Self { url: url.trim_end_matches('/').to_owned(), roots: roots.into() };
        of.target("00", "debuginfo").map_err(|error| match error {
            TargetError::Address { .. } => TargetError::Address { url: url.to_owned() },
            other => other,
        })?;
        Ok(of)
    }

    fn target(&self, build_id: &str, what: &str) -> Result<HttpTarget, TargetError> {
        HttpTarget::new(&format!("{}/buildid/{build_id}/{what}", self.url), None, &self.roots)
    }
}

/// What is heard of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// A host was asked for its functions; rows of the stream are to have them.
    Asked { build_id: String, stream: String },
    /// A host has told of it.
    Told { build_id: String, has_functions: bool },
}

/// Tells the thread what is heard; the thread ends when the last one of these is dropped.
#[derive(Debug, Clone)]
pub(super) struct Listener(SyncSender<Heard>);

impl Listener {
    pub(super) fn hear(&self, heard: Heard) {
        match self.0.try_send(heard) {
            // Without room, or when the thread has ended, the next mapping is waited for.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

/// Begins the thread that asks; what is found goes to the inbox. Files are held in `dir` while they are read.
pub(super) fn start(of: Debuginfod, dir: &Path, inbox: Inbox) -> io::Result<Listener> {
    let (to, heard) = sync_channel(WAITING_MAX);
    let dir: PathBuf = dir.into();
    std::thread::Builder::new().name("debuginfod".into()).spawn(move || {
        meikyo_recording::lower_priority();
        run(&heard, watching::now, |build_id, stream| match found(&of, build_id, &dir) {
            Ok(blocks) => {
                for rows in blocks {
                    let stream = stream.to_owned();
                    inbox.tell_blocking(Event::Found { stream, rows });
                }
            }
            Err(error) => {
                let error = in_one_line(&error);
                tracing::warn!(error, build_id, "the debuginfod was asked in vain");
            }
        });
    })?;
    Ok(Listener(to))
}

/// Listens until nobody tells anything any more, and asks for files that are due.
fn run(heard: &Receiver<Heard>, now: impl Fn() -> Instant, mut ask: impl FnMut(&str, &str)) {
    let mut waiting = Waiting::default();
    loop {
        match heard.recv_timeout(GRACE / 20) {
            Ok(heard) => waiting.hear(now(), heard),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some((build_id, stream)) = waiting.due(now()) {
            ask(&build_id, &stream);
        }
    }
}

/// Files that hosts were asked for.
#[derive(Debug, Default)]
struct Waiting {
    /// When it is due to ask the debuginfod, and for rows of which stream.
    due: BTreeMap<String, (Instant, String)>,
    /// Files that are not asked for any more: they are told of, or were asked for.
    done: BTreeSet<String>,
}

impl Waiting {
    fn hear(&mut self, now: Instant, heard: Heard) {
        if self.done.len() + self.due.len() >= KNOWN_MAX {
            self.done.clear();
            self.due.clear();
        }
        match heard {
            Heard::Asked { build_id, stream } => {
                if !self.done.contains(&build_id) {
                    self.due.entry(build_id).or_insert((now + GRACE, stream));
                }
            }
            Heard::Told { build_id, has_functions: true } => {
                self.due.remove(&build_id);
                self.done.insert(build_id);
            }
            Heard::Told { build_id, has_functions: false } => {
                if let Some((due, _)) = self.due.get_mut(&build_id) {
                    *due = now;
                }
            }
        }
    }

    /// A file that is due, which is not asked for again.
    fn due(&mut self, now: Instant) -> Option<(String, String)> {
        let (build_id, _) = self.due.iter().find(|(_, (due, _))| *due <= now)?;
        let build_id = build_id.clone();
        let (_, stream) = self.due.remove(&build_id)?;
        self.done.insert(build_id.clone());
        Some((build_id, stream))
    }
}

/// Why nothing was got.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("its address cannot be used")]
    Target(#[from] TargetError),
    #[error("cannot get {what}")]
    Fetch { what: &'static str, source: io::Error },
    #[error("its debug information is longer than {DEBUG_INFO_MAX} octets")]
    TooLong,
    #[error("cannot pack its functions")]
    Pack(#[from] meikyo_recording::PackError),
}

/// The functions of a file as rows; none where the debuginfod does not have it.
fn found(of: &Debuginfod, build_id: &str, dir: &Path) -> Result<Vec<PackedRows>, AskError> {
    let failed = |what| move |source| AskError::Fetch { what, source };
    let mut head = Vec::new();
    let target = of.target(build_id, "executable")?;
    let executable = target.fetch(HEAD_MAX, SPAN_MAX, &mut head).map_err(failed("its headers"))?;
    if executable == Fetched::NotThere {
        return Ok(Vec::new());
    }
    let what = "its debug information";
    let (file, path) = scratch(dir).map_err(failed(what))?;
    let target = of.target(build_id, "debuginfo")?;
    match target.fetch(DEBUG_INFO_MAX, SPAN_MAX, &mut &file).map_err(failed(what))? {
        Fetched::Whole => {}
        Fetched::Cut => return Err(AskError::TooLong),
        Fetched::NotThere => return Ok(Vec::new()),
    }
    let functions = functions_of_debug_info(&path, &head);
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    Ok(told((HOST, WallTime::now().as_nanos()), build_id, &functions)?)
}

/// A file without a name, and a path of it that lasts as long as the file is open.
fn scratch(dir: &Path) -> io::Result<(File, PathBuf)> {
    let named = dir.join(".debuginfod");
    let mut options = fs::OpenOptions::new();
    let file = options.create(true).truncate(true).read(true).write(true).open(&named)?;
    fs::remove_file(&named)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(build_id: &str) -> Heard {
        Heard::Asked { build_id: build_id.into(), stream: "s".into() }
    }

    fn told_of(build_id: &str, has_functions: bool) -> Heard {
        Heard::Told { build_id: build_id.into(), has_functions }
    }

    #[test]
    fn a_file_is_asked_for_once_and_only_when_no_host_tells_its_functions() {
        let (mut waiting, begin) = (Waiting::default(), watching::now());
        for build_id in ["aa", "bb", "cc"] {
            waiting.hear(begin, asked(build_id));
        }
        let file = |build_id: &str| Some((build_id.to_owned(), "s".to_owned()));
        waiting.hear(begin, told_of("bb", true));
        assert_eq!(waiting.due(begin), None);
        // A host says that it has no functions.
        waiting.hear(begin, told_of("cc", false));
        assert_eq!([waiting.due(begin), waiting.due(begin)], [file("cc"), None]);
        let later = begin + GRACE;
        for build_id in ["aa", "bb", "cc"] {
            waiting.hear(later, asked(build_id));
        }
        assert_eq!([waiting.due(later), waiting.due(later + GRACE)], [file("aa"), None]);
        // Of what nobody was asked for, nothing is asked either.
        waiting.hear(later, told_of("dd", false));
        assert_eq!(waiting.due(later + GRACE), None);
    }

    #[test]
    fn an_address_is_a_server_and_whoever_is_far_needs_tls() {
        let of = |url| Debuginfod::new(url, Path::new("/none")).map_err(|error| error.to_string());
        assert!(of("http://127.0.0.1:8002").is_ok() && of("http://127.0.0.1:8002/").is_ok());
        for wrong in ["", "127.0.0.1:8002", "ftp://x"] {
            assert!(of(wrong).unwrap_err().contains(&format!("`{wrong}`")), "{wrong}");
        }
        assert!(of("http://192.0.2.1:8002").unwrap_err().contains("not loopback"));
    }
}
