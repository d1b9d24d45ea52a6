//! Ranges, health and live frames.

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};

use crate::access::{BODY_BYTES_MAX, Client, Proof};
use crate::errors::{ApiError, ErrorBody};
use crate::health::{self, HealthBody, HealthOfBody};
use crate::range;
use crate::routes::asked::{Asked, Devices, Id, Refused, Span};
use crate::socket;
use crate::socket::messages::{LiveReply, SubscribeRequest};
use crate::state::{Server, Shared};
use crate::states::{self, StatesBody};
use crate::wire::RangeBody;

/// A column over time: least, mean and greatest value per series and pixel.
///
/// Counters are answered as rates per second between the instants at which the agent really
/// updated them. As JSON, or with `format=arrow` as an Arrow IPC stream with the columns `bin` u32,
/// `series` u32, `min`, `mean`, `max` f32, `count` u32, and with the facts in the headers
/// `Meikyo-From-Us`, `Meikyo-Bin-Us`, `Meikyo-Bins`, `Meikyo-Level` (ms, 0 for raw readings),
/// `Meikyo-Unit`, `Meikyo-Series-Per-Row` and `Meikyo-Problems` (how many files could not be read;
/// the schema's metadata `problems` names them as JSON). Pixels without a value are absent.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/range",
    tag = "ranges",
    params(
        Id,
        ("table" = String, Query, description = "the table"),
        ("column" = String, Query, description = "the column, a gauge or a counter"),
        Span,
        ("width" = Option<u32>, Query, minimum = 1, maximum = 10_000,
            description = "pixels; 600 when absent. At most that many and one bins are answered"),
        ("fold" = Option<u32>, Query, description = "at most that many rows: neighbouring series \
            are folded into one row, which has the extremes of all and the greatest mean"),
        ("format" = Option<String>, Query, description = "`json` or `arrow`"),
        ("values" = Option<String>, Query, description = "which of `min`, `mean`, `max` and \
            `count` an Arrow stream carries, with commas between; all when absent"),
        ("rates" = Option<String>, Query, description = "in which bins the rate of a counter lies: \
            `counted`, also when absent, in those in which it was counted, each for its share of the \
            time; `read` in that of the reading that brought it, as live frames have it, from raw \
            readings, of which there may be 8 million"),
        ("device" = Option<[String]>, Query, description = "only series with that label, `*` and \
            `?` stand for any text; every label of the table can be named so, also repeatedly"),
    ),
    responses(
        (status = 200, content(
            (RangeBody = "application/json"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"),
        )),
        Refused,
    ),
)]
pub(crate) async fn range(asked: Asked) -> Result<Response, ApiError> {
    let answer = asked.answer(|server, opened, query| {
        let asked = range::Query::parse(opened, query)?;
        let range = meikyo_live::range::read(opened, &server.blocks, &asked.request)?;
        asked.answer(opened, range)
    });
    answer.await
}

/// What is new, or a past replayed: a WebSocket.
///
/// The viewer sends `SubscribeRequest` as JSON text whenever his view changes. He gets `LiveReply`
/// as JSON texts, and binary messages: after each `subscribed` one with an Arrow IPC schema, then
/// record batches, one a message, with the columns `offset_ms` u32 (from `epoch_us`), `series`
/// u32, one f32 a column (counters as rates; NaN where not known), `state` u8 (0 ok, 1 late, 2
/// skipped, 3 error, 4 missed) and `age_ms` f32 (how old the value was when it was received).
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/live",
    tag = "live",
    params(("id" = String, Path, description = "the recording's id")),
    request_body = SubscribeRequest,
    responses(
        (status = 101, body = LiveReply),
        (status = 403, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn live(
    State(server): State<Shared>,
    Path(id): Path<String>,
    Extension(client): Extension<Client>,
    proof: Option<Extension<Proof>>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    let audience = server.audience(&id)?;
    let seat = server.viewers.enter(client).ok_or_else(|| {
        let text = "too many viewers; close some, or ask again later";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text, "")
    })?;
    let proof = proof.map(|Extension(Proof(hash))| hash);
    let upgrade = upgrade.read_buffer_size(socket::READ_BUFFER_BYTES);
    let upgrade = upgrade.max_message_size(BODY_BYTES_MAX).max_frame_size(BODY_BYTES_MAX);
    Ok(upgrade.on_upgrade(|socket| socket::viewer::converse(server, audience, socket, seat, proof)))
}

/// How well was measured: states over time, silent devices, the stalest value.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/health",
    tag = "ranges",
    params(
        Id,
        Span,
        ("width" = Option<u32>, Query, description = "pixels; 600 when absent"),
    ),
    responses(
        (status = 200, body = HealthBody),
        Refused,
    ),
)]
pub(crate) async fn health(asked: Asked) -> Result<Json<HealthBody>, ApiError> {
    asked
        .answer(|server, opened, query| health::read(opened, &server.health, query))
        .await
        .map(Json)
}

/// The same of every recording of devices that is written now, in one answer. With `from` and `to` as instants, the
/// bins of all of them are the same.
#[utoipa::path(
    get,
    path = "/api/v1/health",
    tag = "ranges",
    params(
        Span,
        ("width" = Option<u32>, Query, description = "pixels; 600 when absent"),
    ),
    responses(
        (status = 200, body = [HealthOfBody]),
        (status = 400, body = ErrorBody),
    ),
)]
pub(crate) async fn all_health(
    State(server): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<HealthOfBody>>, ApiError> {
    server.note_all_watched();
    let read = move |server: &Server| {
        health::read_all(&server.catalog.all(), &server.health, query.as_deref())
    };
    server.blocking(read).await.map(Json)
}

/// The worst state of each device and pixel; devices that were always ok are absent.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/states",
    tag = "ranges",
    params(
        Id,
        Span,
        ("width" = Option<u32>, Query, description = "pixels; 600 when absent"),
        ("fold" = Option<u32>, Query, description = "at most that many rows, neighbours folded"),
        Devices,
    ),
    responses(
        (status = 200, body = StatesBody),
        Refused,
    ),
)]
pub(crate) async fn states(asked: Asked) -> Result<Json<StatesBody>, ApiError> {
    asked.answer(|_, opened, query| states::read(opened, query)).await.map(Json)
}
