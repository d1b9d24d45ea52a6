//! What is known of all clusters, asked for again and again by a thread of its own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use meikyo_console::failure::Failure;
use meikyo_transport::shell::Target;
use meikyo_units::{Nanos, WallTime};

use super::Cluster;
use super::local::Local;
use super::remote::Remote;

/// How often the clusters are looked at.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);

/// Where clusters are.
#[derive(Debug)]
pub(in crate::top) enum Source {
    /// Below a directory of this machine.
    Local(Local),
    /// At a receiver that is asked.
    Remote(Remote),
}

impl Source {
    /// The clusters below a directory.
    pub(in crate::top) fn below(dir: &std::path::Path) -> Self {
        Self::Local(Local::new(dir))
    }

    /// The clusters that a receiver serves.
    pub(in crate::top) fn at(target: Target) -> Self {
        Self::Remote(Remote::new(target))
    }

    /// What is known of all of them now; an error is for people.
    pub(in crate::top) fn look(&mut self) -> Found {
        let asked = WallTime::now();
        let clusters = match self {
            Self::Local(local) => local.look(asked),
            Self::Remote(remote) => remote.look(),
        };
        Found { asked, clusters }
    }
}

/// What came of a look.
#[derive(Debug)]
pub(in crate::top) struct Found {
    /// When it was begun.
    pub(in crate::top) asked: WallTime,
    pub(in crate::top) clusters: Result<Vec<Cluster>, String>,
}

/// The thread; it ends behind its look when this is dropped.
#[derive(Debug)]
pub(in crate::top) struct Gathering {
    found: Receiver<Found>,
    _goes_on: SyncSender<()>,
}

impl Gathering {
    /// Begins to look.
    pub(in crate::top) fn start(mut source: Source) -> Result<Self, Failure> {
        // The view takes what there is before each repaint; where it does not, the thread waits.
        let (tell, found) = sync_channel(1);
        let (goes_on, ended) = sync_channel::<()>(1);
        std::thread::Builder::new().name("clusters".to_owned()).spawn(move || {
            meikyo_recording::lower_priority();
            while tell.send(source.look()).is_ok() {
                let waited = ended.recv_timeout(LOOK_EVERY.to_std());
                if waited != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Self { found, _goes_on: goes_on })
    }

    /// What was found since the last time, if anything was.
    pub(in crate::top) fn take(&self) -> Option<Found> {
        self.found.try_recv().ok()
    }
}
