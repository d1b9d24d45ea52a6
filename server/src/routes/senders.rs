//! Who sends rows from afar, and how that goes.

use axum::Json;
use axum::extract::State;
use meikyo_transport::SenderState;
use meikyo_units::WallTime;
use serde::Serialize;
use utoipa::ToSchema;

use crate::errors::{ApiError, ErrorBody};
use crate::ingest::clusters;
use crate::state::{Server, Shared};

/// A sender of rows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SenderBody {
    /// Its name.
    pub(crate) sender: String,
    /// The cluster that it measures; null for senders of the recording that all others share.
    pub(crate) cluster: Option<String>,
    /// Id of the recording that its rows go to; null while that is not served.
    pub(crate) recording: Option<String>,
    /// What it is called together with the collectors that stand by for it; null for the only one.
    pub(crate) identity: Option<String>,
    /// Whether the newest rows are taken from it: of several collectors of the same devices, those of one are.
    pub(crate) active: bool,
    /// Whether it is connected.
    pub(crate) connected: bool,
    /// When something of it came last, µs since 1970.
    pub(crate) heard_us: i64,
    /// How old its newest row is, µs, its clock set right; null before it sent any.
    pub(crate) lag_us: Option<i64>,
    /// By how much this server's clock is ahead of the sender's, µs; null before that was measured.
    pub(crate) clock_offset_us: Option<i64>,
    /// How far the truth can be from that, µs; half of the shortest round trip.
    pub(crate) clock_error_us: Option<u64>,
    /// Whether its clock is wrong by so much that its rows stand at the wrong time among those of others.
    pub(crate) clock_is_wrong: bool,
    /// Blocks that were stored since the server began.
    pub(crate) blocks: u64,
    /// Rows in them.
    pub(crate) rows: u64,
    /// Gaps that it told.
    pub(crate) gaps: u64,
    /// Rows in these gaps, where they are counted.
    pub(crate) missing_rows: u64,
}

impl SenderBody {
    fn new(server: &Server, state: SenderState, now: WallTime) -> Self {
        let dir = server.ingest_dir.as_deref();
        let dir = dir.map(|dir| clusters::dir_of(dir, state.cluster.as_deref()));
        let recordings = server.catalog.all();
        let recording = recordings.iter().find(|of| Some(of.recording.dir()) == dir.as_deref());
        let offset_ns = state.clock.map_or(0, |clock| clock.offset_ns);
        let lag = |newest: i64| (now.as_nanos() - offset_ns - newest) / 1_000;
        Self {
            recording: recording.map(|opened| opened.id.clone()),
            identity: state.identity,
            active: state.is_active,
            connected: state.is_connected,
            heard_us: state.heard.as_nanos() / 1_000,
            lag_us: state.newest_ns.map(lag),
            clock_offset_us: state.clock.map(|clock| clock.offset_ns / 1_000),
            clock_error_us: state.clock.map(|clock| clock.error_ns.div_ceil(1_000)),
            clock_is_wrong: state.clock.is_some_and(|clock| clock.is_wrong()),
            sender: state.sender,
            cluster: state.cluster,
            blocks: state.blocks,
            rows: state.rows,
            gaps: state.gaps,
            missing_rows: state.missing_rows,
        }
    }
}

/// How all senders stand that were heard of.
pub(crate) fn known(server: &Server) -> Vec<SenderBody> {
    let Some(taken) = &server.taken else { return Vec::new() };
    let known = taken.lock().expect("whoever holds the counts only copies them").known.clone();
    let now = WallTime::now();
    known.into_iter().map(|state| SenderBody::new(server, state, now)).collect()
}

/// The senders that were connected since the server began, by cluster; empty if it takes no rows.
#[utoipa::path(
    get,
    path = "/api/v1/senders",
    tag = "recordings",
    responses((status = 200, body = [SenderBody]), (status = 401, body = ErrorBody)),
)]
pub(crate) async fn senders(
    State(server): State<Shared>,
) -> Result<Json<Vec<SenderBody>>, ApiError> {
    server.note_all_watched();
    Ok(Json(known(&server)))
}
