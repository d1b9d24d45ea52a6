//! The addresses, and what answers at each.

mod asked;
mod compressed;
pub(crate) mod flame;
mod guard;
pub(crate) mod heat;
pub(crate) mod ranges;
pub(crate) mod recordings;
mod rows_from_afar;
pub(crate) mod senders;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};

use crate::access::Client;
use crate::errors::ApiError;
use crate::page;
use crate::state::Shared;
use ranges::{all_health, health, live, range, states};
use recordings::{
    acknowledge, alert_rules, alerts, events, export, fabric, freshness, inventory, metrics,
    readings, recordings, series, silence,
};
use rows_from_afar::ingest;
use senders::senders;

/// Everything that is served; `document` describes it, as OpenAPI.
pub(crate) fn router(server: Shared, document: String) -> Router {
    let json = [(header::CONTENT_TYPE, "application/json")];
    let api = Router::new()
        .route("/openapi.json", get(|| async move { (json, document) }))
        .route("/recordings", get(recordings))
        .route("/recordings/{id}/series", get(series))
        .route("/recordings/{id}/range", get(range))
        .route("/recordings/{id}/live", get(live))
        .route("/recordings/{id}/health", get(health))
        .route("/recordings/{id}/states", get(states))
        .route("/recordings/{id}/heat", get(heat::heat))
        .route("/recordings/{id}/cores", get(heat::cores))
        .route("/recordings/{id}/profile/flame", get(flame::flame))
        .route("/recordings/{id}/readings", get(readings))
        .route("/recordings/{id}/events", get(events))
        .route("/recordings/{id}/freshness", get(freshness))
        .route("/recordings/{id}/inventory", get(inventory))
        .route("/recordings/{id}/export", get(export))
        .route("/recordings/{id}/alert-rules", get(alert_rules))
        .route("/health", get(all_health))
        .route("/fabric", get(fabric))
        .route("/ingest", get(ingest))
        .route("/senders", get(senders))
        .route("/alerts", get(alerts))
        .route("/alerts/{alert}/acknowledge", post(acknowledge))
        .route("/alerts/{alert}/silence", post(silence))
        .fallback(unknown);
    let app = Router::new()
        .nest("/api/v1", api)
        .route("/login", post(login))
        .route("/metrics", get(metrics))
        .fallback(any_page);
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
    // The guard has taken the body, whole and no longer than it may be.
    app.layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(server.clone(), guard::guard))
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

async fn login(
    State(server): State<Shared>,
    Extension(client): Extension<Client>,
    body: String,
) -> Result<Response, ApiError> {
    let shown = form_urlencoded::parse(body.as_bytes()).find(|(name, _)| name == "token");
    let token = shown.map(|(_, token)| token.into_owned()).unwrap_or_default();
    let proof = server.access.check(client, &token).await?;
    server.access.allow_role(false, proof.as_ref())?;
    Ok(server.access.welcome(proof))
}
