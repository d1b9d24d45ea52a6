//! Recordings, their rows, what is wrong with them, and what they mean to others.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use meikyo_live::{Opened, label_names, rules};

use crate::access::Proof;
use crate::alerts::{self, AlertBody, AlertRulesBody, SilenceRequest};
use crate::errors::{ApiError, ErrorBody};
use crate::export::{self, Export};
use crate::fabric::FabricBody;
use crate::inventory::{self, InventoryBody};
use crate::metrics;
use crate::parameters::Parameters;
use crate::routes::asked::{Asked, Devices, Id, Newest, Refused, Span};
use crate::rows::{self, EventsBody, RowsBody};
use crate::state::{Server, Shared};
use crate::wire::{RecordingBody, SeriesBody};

/// The recordings that are served; for a token for the samples of some jobs, without devices and without other
/// tables.
#[utoipa::path(
    get,
    path = "/api/v1/recordings",
    tag = "recordings",
    responses((status = 200, body = [RecordingBody]), (status = 401, body = ErrorBody)),
)]
pub(crate) async fn recordings(
    State(server): State<Shared>,
    proof: Option<Extension<Proof>>,
) -> Result<Json<Vec<RecordingBody>>, ApiError> {
    let is_limited = proof.is_some_and(|Extension(proof)| !proof.visible().is_empty());
    let bodies = server.blocking(move |server| {
        let opened = server.catalog.all();
        let body = |opened| match RecordingBody::new(opened) {
            Ok(body) if is_limited => Ok(body.of_samples()),
            body => body,
        };
        Ok(opened.iter().map(|opened| body(opened)).collect::<Result<Vec<_>, _>>()?)
    });
    Ok(Json(bodies.await?))
}

/// The fabric that was named when the server was started (`--cluster FILE`); null without one.
#[utoipa::path(
    get,
    path = "/api/v1/fabric",
    tag = "recordings",
    responses(
        (status = 200, body = Option<FabricBody>),
        (status = 401, body = ErrorBody),
    ),
)]
pub(crate) async fn fabric(State(server): State<Shared>) -> Json<Option<FabricBody>> {
    Json(server.fabric.clone())
}

/// The series of a table, with the numbers that other answers name them by. The header
/// `meikyo-problems` counts the files that could not be looked through for series.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/series",
    tag = "recordings",
    params(
        Id,
        ("table" = String, Query, description = "the table"),
        ("device" = Option<[String]>, Query, description = "only series with that label, `*` and \
            `?` stand for any text; every label of the table can be named so, also repeatedly"),
    ),
    responses(
        (status = 200, body = [SeriesBody]),
        Refused,
    ),
)]
pub(crate) async fn series(asked: Asked) -> Result<Response, ApiError> {
    let answer = asked.answer(|_, opened, query| {
        let mut parameters = Parameters::parse(query)?;
        let table = opened.table(&parameters.need("table")?)?;
        let wanted = parameters.labels(&label_names(&table))?;
        let answer = opened.with_series(&table, |series| {
            let chosen = series.chosen(&wanted).into_iter();
            let body = |ordinal| SeriesBody { ordinal, labels: series.named(ordinal) };
            (series.problems().len().to_string(), chosen.map(body).collect::<Vec<_>>())
        })?;
        Ok(answer)
    });
    let (problems, bodies) = answer.await?;
    Ok(([("meikyo-problems", problems)], Json(bodies)).into_response())
}

/// Raw readings, each with the receive time and state of the poll that brought it.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/readings",
    tag = "rows",
    params(
        Id,
        ("table" = String, Query, description = "the table"),
        ("columns" = Option<String>, Query, description = "the columns, with commas between"),
        Span,
        Newest,
        Devices,
    ),
    responses(
        (status = 200, body = RowsBody),
        Refused,
    ),
)]
pub(crate) async fn readings(asked: Asked) -> Result<Json<RowsBody>, ApiError> {
    asked.answer(|_, opened, query| rows::readings(opened, query)).await.map(Json)
}

/// What happened.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/events",
    tag = "rows",
    params(
        Id,
        Span,
        Newest,
        Devices,
    ),
    responses(
        (status = 200, body = EventsBody),
        Refused,
    ),
)]
pub(crate) async fn events(asked: Asked) -> Result<Json<EventsBody>, ApiError> {
    asked.answer(|_, opened, query| rows::events(opened, query)).await.map(Json)
}

/// How often values are really updated.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/freshness",
    tag = "rows",
    params(
        Id,
        Span,
        Newest,
        Devices,
    ),
    responses(
        (status = 200, body = RowsBody),
        Refused,
    ),
)]
pub(crate) async fn freshness(asked: Asked) -> Result<Json<RowsBody>, ApiError> {
    asked.answer(|_, opened, query| rows::freshness(opened, query)).await.map(Json)
}

/// What the recording holds and what is wrong with it: tables, gaps, damaged files, and how the
/// collector did.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/inventory",
    tag = "recordings",
    params(
        Id,
    ),
    responses(
        (status = 200, body = InventoryBody),
        Refused,
    ),
)]
pub(crate) async fn inventory(asked: Asked) -> Result<Json<InventoryBody>, ApiError> {
    let body = asked.answer(|_, opened, query| {
        Parameters::parse(query)?.finish()?;
        inventory::read(opened)
    });
    body.await.map(Json)
}

/// Rows of a table as a file, streamed. The header `meikyo-problems` counts the files of the recording
/// that cannot be read: their rows are missing. Where this is found out on the way only, the
/// connection is broken off instead of ended, and the next export has the header.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/export",
    tag = "rows",
    params(
        Id,
        ("table" = String, Query, description = "the table"),
        ("columns" = Option<String>, Query, description = "the columns, with commas between"),
        Span,
        ("format" = Option<String>, Query, description = "`parquet` or `csv`"),
        Devices,
    ),
    responses(
        (status = 200, content(
            (Vec<u8> = "application/vnd.apache.parquet"),
            (String = "text/csv"),
        )),
        Refused,
    ),
)]
pub(crate) async fn export(
    State(server): State<Shared>,
    asked: Asked,
) -> Result<Response, ApiError> {
    let parsed =
        asked.answer(|_, opened, query| Ok((Arc::clone(opened), Export::parse(opened, query)?)));
    let (opened, export) = parsed.await?;
    let turn = Arc::clone(&server.exports).try_acquire_owned().map_err(|_| {
        let text = "too many exports at once; ask again when one is done";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text, "")
    })?;
    let (sender, receiver) = export::pipe();
    let answer = export.answer(receiver);
    // Ended by itself: when everything is written, or the client has gone.
    drop(tokio::task::spawn_blocking(move || {
        export.write(&opened, sender);
        drop(turn);
    }));
    Ok(answer)
}

/// The alerts of a recording, or of all. The header `meikyo-problems` counts the files that could not
/// be read and may hold others.
#[utoipa::path(
    get,
    path = "/api/v1/alerts",
    tag = "alerts",
    params(("id" = Option<String>, Query, description = "the recording; all when absent")),
    responses((status = 200, body = [AlertBody]), (status = 404, body = ErrorBody)),
)]
pub(crate) async fn alerts(
    State(server): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let bodies = server.blocking(move |server| {
        let mut parameters = Parameters::parse(query.as_deref())?;
        let id = parameters.optional("id");
        parameters.finish()?;
        let recordings = match id {
            Some(id) => vec![server.recording(&id)?],
            None => server.catalog.all(),
        };
        let (mut all, mut problems) = (Vec::new(), 0);
        for opened in recordings {
            let (found, unread) = alerts::read(&opened)?;
            all.extend(found);
            problems += unread;
        }
        Ok((all, problems))
    });
    let (bodies, problems) = bodies.await?;
    Ok(([("meikyo-problems", problems.to_string())], Json(bodies)).into_response())
}

/// Whether rules of alerts are set: without them, no alert says nothing about health.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/alert-rules",
    tag = "alerts",
    params(Id),
    responses((status = 200, body = AlertRulesBody), Refused),
)]
pub(crate) async fn alert_rules(asked: Asked) -> Result<Json<AlertRulesBody>, ApiError> {
    let read = |_: &Server, opened: &Arc<Opened>, query: Option<&str>| {
        Parameters::parse(query)?.finish()?;
        Ok(AlertRulesBody { set: rules::are_set(&opened.recording)? })
    };
    asked.answer(read).await.map(Json)
}

/// Says that somebody has seen an alert. Only a running measurement can note it.
#[utoipa::path(
    post,
    path = "/api/v1/alerts/{alert}/acknowledge",
    tag = "alerts",
    params(("alert" = String, Path, description = "the alert's id")),
    responses(
        (status = 204),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
pub(crate) async fn acknowledge(
    State(server): State<Shared>,
    Path(alert): Path<String>,
) -> Result<StatusCode, ApiError> {
    let done = server.blocking(move |server| alerts::say(&*raised(server, &alert)?, &alert, None));
    done.await.map(|()| StatusCode::NO_CONTENT)
}

/// Keeps an alert quiet for some time. Only a running measurement can note it.
#[utoipa::path(
    post,
    path = "/api/v1/alerts/{alert}/silence",
    tag = "alerts",
    params(("alert" = String, Path, description = "the alert's id")),
    request_body = SilenceRequest,
    responses(
        (status = 204),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
pub(crate) async fn silence(
    State(server): State<Shared>,
    Path(alert): Path<String>,
    Json(request): Json<SilenceRequest>,
) -> Result<StatusCode, ApiError> {
    let done = server
        .blocking(move |server| alerts::say(&*raised(server, &alert)?, &alert, Some(request)));
    done.await.map(|()| StatusCode::NO_CONTENT)
}

/// The recording that has an alert; the running one when several have.
fn raised(server: &Server, alert: &str) -> Result<Arc<Opened>, ApiError> {
    let mut found = None;
    for opened in server.catalog.all() {
        if alerts::read(&opened)?.0.iter().any(|known| known.id == alert) {
            if opened.is_running() {
                return Ok(opened);
            }
            found = Some(opened);
        }
    }
    found.ok_or_else(|| ApiError::unknown(format!("there is no alert `{alert}`"), "alert"))
}

/// The newest values and Meikyo's own health for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "metrics",
    responses((status = 200, body = String, content_type = "text/plain")),
)]
pub(crate) async fn metrics(State(server): State<Shared>) -> Result<Response, ApiError> {
    let text = server.blocking(metrics::text_of).await?;
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
