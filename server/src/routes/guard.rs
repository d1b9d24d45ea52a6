//! What every request goes through before it is answered: who may ask, how long its body may take,
//! and what browsers are told of each answer.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use meikyo_units::WallTime;

use super::compressed::{Coding, compressed};
use crate::access::{BODY_BYTES_MAX, Hash, Proof, Verdict, client_of, too_long};
use crate::counts::Closed;
use crate::errors::ApiError;
use crate::room::Seat;
use crate::state::{Server, Shared};

/// What a page may load: its own files and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";

/// What the server's clock shows, µs since 1970: with it a page knows how old what arrives is, whatever
/// its own clock shows.
const CLOCK: HeaderName = HeaderName::from_static("meikyo-clock");

/// Lets a request through, or refuses it.
pub(crate) async fn guard(State(server): State<Shared>, request: Request, next: Next) -> Response {
    let access = &server.access;
    let client = client_of(&request);
    let coding = Coding::accepted(request.headers());
    let response = match access.admit(&request) {
        Ok(Verdict::Pass(proof)) => match access.allow(&request, proof.as_ref()) {
            Ok(()) => pass(&server, request, Some(proof), next).await,
            Err(error) => error.into_response(),
        },
        Ok(Verdict::Try) => pass(&server, request, None, next).await,
        Ok(Verdict::Answer(response)) => response,
        Ok(Verdict::Check { token, browser }) => match access.check(client, &token).await {
            Ok(proof) => match access.allow(&request, proof.as_ref()) {
                Ok(()) if browser => access.welcome(proof),
                Ok(()) => pass(&server, request, Some(proof), next).await,
                Err(error) => error.into_response(),
            },
            Err(error) => error.into_response(),
        },
        Err(error) => error.into_response(),
    };
    let mut response = compressed(response, coding).await;
    let headers = response.headers_mut();
    headers.insert(CLOCK, HeaderValue::from(WallTime::now().as_nanos().div_euclid(1_000)));
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Takes the body of a request and answers it. Until the body has come the server waits for the
/// client, who loses his place to newcomers; then it works for him, and a client who was let in has
/// proven himself.
async fn pass(
    server: &Server,
    mut request: Request,
    admitted: Option<Option<Hash>>,
    next: Next,
) -> Response {
    if !request.body().is_end_stream() {
        let (head, body) = request.into_parts();
        let whole = to_bytes(body, BODY_BYTES_MAX);
        let octets = match tokio::time::timeout(server.limits.body.to_std(), whole).await {
            Ok(Ok(octets)) => octets,
            Ok(Err(_)) => return too_long("the body").into_response(),
            Err(_) => {
                server.counts.close(Closed::Body);
                let wait = server.limits.body;
                let text = format!("the body did not come within {wait}");
                let refused = ApiError::new(StatusCode::REQUEST_TIMEOUT, text, "body");
                let close = HeaderValue::from_static("close");
                return ([(header::CONNECTION, close)], refused).into_response();
            }
        };
        request = Request::from_parts(head, Body::from(octets));
    }
    let seat = request.extensions_mut().remove::<Arc<Seat>>();
    if let (Some(seat), Some(_)) = (&seat, &admitted) {
        seat.prove();
    }
    if let Some(hash) = admitted.flatten() {
        request.extensions_mut().insert(Proof(hash));
    }
    let _work = seat.as_ref().map(Seat::work);
    next.run(request).await
}
