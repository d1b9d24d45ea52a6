//! What all conversations share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use meikyo_live::health::HealthCache;
use meikyo_live::range::BlockCache;
use meikyo_live::{Catalog, Opened};
use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::counts::Counts;
use crate::errors::ApiError;
use crate::fabric::FabricBody;
use crate::flame::Flames;
use crate::heat::Heat;
use crate::ingest::{Inbox, Keeper, Seats, Taken, clusters};
use crate::limits::Limits;
use crate::metrics::newest::Newest;
use crate::notify::SharedNotifyCounts;
use crate::onward::{Form, SharedCounts};
use crate::room::{Room, Rules};
use crate::socket::audience::Audience;
use crate::turns::Turns;
use crate::watching;

/// Octets of decoded summaries that are kept.
const CACHE_BYTES: usize = 96 << 20;

/// Exports at once; each has a thread as long as the client takes.
const EXPORTS_MAX: usize = 3;

/// Why the lock of the audiences is never poisoned.
const AUDIENCES: &str = "nothing that holds the audiences can panic";

/// The recordings, and everything that answers are made of.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) catalog: Arc<Catalog>,
    /// The viewers of each recording that has had any, by its id.
    audiences: Mutex<BTreeMap<String, Arc<Audience>>>,
    pub(crate) blocks: BlockCache,
    pub(crate) health: HealthCache,
    pub(crate) newest: Newest,
    pub(crate) access: Access,
    /// The fabric that the recordings' switches make up, if it was said.
    pub(crate) fabric: Option<FabricBody>,
    /// Says when the server is to end.
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) limits: Limits,
    /// Room for connections, WebSockets not counted.
    pub(crate) connections: Arc<Room>,
    /// Who may have a WebSocket open.
    pub(crate) viewers: Arc<Room>,
    pub(crate) counts: Arc<Counts>,
    /// The recording that heat maps are kept of, and what is known of it.
    pub(crate) heat: Option<(PathBuf, Heat)>,
    /// Who makes flame graphs.
    pub(crate) flames: Flames,
    /// Where rows from afar are handed over, if they are taken.
    pub(crate) ingest: Option<Inbox>,
    /// The directory that they are written below.
    pub(crate) ingest_dir: Option<PathBuf>,
    /// What of them was taken.
    pub(crate) taken: Option<Arc<Mutex<Taken>>>,
    /// What was sent on to a database, if anything is.
    pub(crate) onward: Onward,
    /// What was told of alerts.
    pub(crate) told: Told,
    /// Room for senders.
    pub(crate) senders: Seats,
    /// Room for exports.
    pub(crate) exports: Arc<Semaphore>,
    turns: Turns,
}

/// The server as conversations hold it.
pub(crate) type Shared = Arc<Server>;

/// What takes rows, where what is counted of them stands, and what is sent on.
pub(crate) type Flows<'a> = (Option<&'a Keeper>, Option<(PathBuf, Heat)>, (Onward, Told));

/// What was sent on to neighbours.
type Onward = Vec<(Form, SharedCounts)>;

/// What was told of alerts, by the name of who is told.
type Told = Vec<(&'static str, SharedNotifyCounts)>;

impl Server {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        access: Access,
        fabric: Option<FabricBody>,
        limits: Limits,
        (keeper, heat, (onward, told)): Flows<'_>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let connections = Rules {
            places: limits.connections,
            per_client: limits.connections_per_client,
            only_for_poorer: false,
        };
        let viewers =
            Rules { places: limits.viewers, per_client: limits.viewers, only_for_poorer: true };
        Self {
            audiences: Mutex::default(),
            catalog,
            blocks: BlockCache::new(CACHE_BYTES),
            health: HealthCache::default(),
            newest: Newest::default(),
            access,
            fabric,
            stop,
            limits,
            connections: Arc::new(Room::new(connections)),
            viewers: Arc::new(Room::new(viewers)),
            counts: Arc::default(),
            heat,
            flames: Flames::default(),
            ingest: keeper.map(Keeper::inbox),
            ingest_dir: keeper.map(|keeper| keeper.dir().to_path_buf()),
            taken: keeper.map(Keeper::taken),
            onward,
            told,
            senders: Seats::new(),
            exports: Arc::new(Semaphore::new(EXPORTS_MAX)),
            turns: Turns::new(),
        }
    }

    /// The recording of that id, which somebody watches.
    pub(crate) fn recording(&self, id: &str) -> Result<Arc<Opened>, ApiError> {
        let opened = self.catalog.get(id).ok_or_else(|| self.no_recording(id))?;
        self.note_watched(&opened);
        Ok(opened)
    }

    /// Somebody watches a recording: its collectors are asked for more for a while.
    pub(crate) fn note_watched(&self, opened: &Opened) {
        let Some((dir, heat)) = &self.heat else { return };
        if let Some(cluster) = clusters::name_of(dir, opened.recording.dir()) {
            heat.watching().note_cluster(watching::now(), cluster);
        }
    }

    /// Somebody watches all clusters beside each other.
    pub(crate) fn note_all_watched(&self) {
        if let Some((_, heat)) = &self.heat {
            heat.watching().note_all_clusters(watching::now());
        }
    }

    /// The viewers of the recording of that id.
    pub(crate) fn audience(&self, id: &str) -> Result<Arc<Audience>, ApiError> {
        let opened = self.recording(id)?;
        let mut audiences = self.audiences.lock().expect(AUDIENCES);
        let new = || Arc::new(Audience::new(opened));
        let audience = Arc::clone(audiences.entry(id.to_owned()).or_insert_with(new));
        if *self.stop.borrow() {
            audience.follower.stop();
        }
        Ok(audience)
    }

    fn no_recording(&self, id: &str) -> ApiError {
        let known: Vec<_> = self.catalog.all().iter().map(|opened| opened.id.clone()).collect();
        let text = format!("there is no recording `{id}`; there are {}", known.join(", "));
        ApiError::unknown(text, "id")
    }

    /// Ends everything that follows a recording.
    pub(crate) fn stop_following(&self) {
        let audiences = self.audiences.lock().expect(AUDIENCES);
        audiences.values().for_each(|audience| audience.follower.stop());
    }

    /// Does something that reads files, on a thread that may block, when it is its turn.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let server = Arc::clone(self);
        self.turns.take(move || work(&server)).await
    }
}
