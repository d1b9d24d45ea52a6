//! The addresses, and what answers at each.

use axum::extract::{DefaultBodyLimit, Path, RawQuery, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};

use crate::access::{self, BODY_BYTES_MAX};
use crate::errors::{ApiError, ErrorBody};
use crate::openapi;
use crate::page;
use crate::parameters::Parameters;
use crate::range::{self, RangeRequest, label_names};
use crate::state::Shared;
use crate::wire::{RangeBody, RecordingBody, SeriesBody};

/// Everything that is served.
pub(crate) fn router(server: Shared) -> Router {
    let api = Router::new()
        .route("/openapi.json", get(openapi_json))
        .route("/recordings", get(recordings))
        .route("/recordings/{id}/series", get(series))
        .route("/recordings/{id}/range", get(range))
        .fallback(unknown);
    let app = Router::new().nest("/api/v1", api).route("/login", post(login)).fallback(any_page);
    let prefix = server.access.prefix.clone();
    let app = if prefix.is_empty() {
        app
    } else {
        let to_slash = format!("{prefix}/");
        let home = to_slash.clone();
        Router::new()
            .route(&to_slash, get(|| async { page::answer("") }))
            .nest(&prefix, app)
            .fallback(move || async move { Redirect::temporary(&home) })
    };
    let limit = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
    app.layer(DefaultBodyLimit::max(limit))
        .layer(middleware::from_fn_with_state(server.clone(), access::guard))
        .with_state(server)
}

async fn any_page(request: Request) -> Response {
    if request.method() != axum::http::Method::GET && request.method() != axum::http::Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    page::answer(request.uri().path().trim_start_matches('/'))
}

async fn unknown(request: Request) -> ApiError {
    let path = request.uri().path();
    ApiError::unknown(format!("nothing is at `{path}`; see `api/v1/openapi.json`"), "path")
}

async fn login(State(server): State<Shared>, body: String) -> Result<Response, ApiError> {
    let shown = form_urlencoded::parse(body.as_bytes()).find(|(name, _)| name == "token");
    let token = shown.map(|(_, token)| token.into_owned()).unwrap_or_default();
    server.access.check(&server, &token).await?;
    Ok(server.access.welcome())
}

/// This document.
async fn openapi_json() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi::document()).into_response()
}

/// The recordings that are served.
#[utoipa::path(
    get,
    path = "/api/v1/recordings",
    tag = "recordings",
    responses((status = 200, body = [RecordingBody]), (status = 401, body = ErrorBody)),
)]
pub(crate) async fn recordings(
    State(server): State<Shared>,
) -> Result<Json<Vec<RecordingBody>>, ApiError> {
    let bodies = server.blocking(|server| {
        server.catalog.all().iter().map(|opened| opened.body()).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(bodies.await?))
}

/// The series of a table, with the numbers that other answers name them by.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/series",
    tag = "recordings",
    params(
        ("id" = String, Path, description = "the recording's id"),
        ("table" = String, Query, description = "the table"),
        ("device" = Option<[String]>, Query, description = "only series with that label, `*` and \
            `?` stand for any text; every label of the table can be named so, also repeatedly"),
    ),
    responses(
        (status = 200, body = [SeriesBody]),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
pub(crate) async fn series(
    State(server): State<Shared>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<SeriesBody>>, ApiError> {
    let bodies = server.blocking(move |server| {
        let opened = server.catalog.get(&id)?;
        let mut parameters = Parameters::parse(query.as_deref())?;
        let table = opened.table(&parameters.need("table")?)?;
        let wanted = parameters.labels(&label_names(&table))?;
        opened.with_series(&table, |series| {
            let chosen = series.chosen(&wanted).into_iter();
            chosen.map(|ordinal| SeriesBody { ordinal, labels: series.named(ordinal) }).collect()
        })
    });
    Ok(Json(bodies.await?))
}

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
        ("id" = String, Path, description = "the recording's id"),
        ("table" = String, Query, description = "the table"),
        ("column" = String, Query, description = "the column, a gauge or a counter"),
        ("from" = Option<String>, Query, description = "µs since 1970, RFC 3339, `-15m` (before \
            now, or before the end of a finished recording) or `now`; the begin when absent"),
        ("to" = Option<String>, Query, description = "as `from`, exclusive; the end when absent"),
        ("width" = Option<u32>, Query, minimum = 1, maximum = 10_000,
            description = "pixels; 600 when absent. At most that many and one bins are answered"),
        ("fold" = Option<u32>, Query, description = "at most that many rows: neighbouring series \
            are folded into one row, which has the extremes of all and the greatest mean"),
        ("format" = Option<String>, Query, description = "`json` or `arrow`"),
        ("device" = Option<[String]>, Query, description = "only series with that label, `*` and \
            `?` stand for any text; every label of the table can be named so, also repeatedly"),
    ),
    responses(
        (status = 200, content(
            (RangeBody = "application/json"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"),
        )),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn range(
    State(server): State<Shared>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let answer = server.blocking(move |server| {
        let opened = server.catalog.get(&id)?;
        let request = RangeRequest::parse(&opened, query.as_deref())?;
        let range = range::read(&opened, &server.blocks, &request)?;
        range::answer::write(&opened, &request, &range)
    });
    answer.await
}
