//! Where senders send rows to.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::upgrade::OnUpgrade;
use meikyo_transport::Permit;

use crate::access::{Proof, Role};
use crate::errors::ApiError;
use crate::ingest::conversation::converse;
use crate::state::Shared;

/// What a sender asks the connection to become (RFC 9110, 7.8).
const PROTOCOL: &str = "meikyo-rows/1";

/// Makes a connection one that rows come over. What is said over it is not HTTP, so this address is
/// described by `docs/transport.md` and not by the document of the API.
pub(crate) async fn ingest(
    State(server): State<Shared>,
    proof: Option<Extension<Proof>>,
    mut request: Request,
) -> Result<Response, ApiError> {
    let Some(door) = server.ingest.clone() else {
        let text = "this server takes no rows: start it with `meikyo serve --ingest DIR`";
        return Err(ApiError::unknown(text, "path"));
    };
    let asked = request.headers().get(header::UPGRADE).and_then(|asked| asked.to_str().ok());
    let is_asked_for = is_asked_for(asked);
    let upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let Some(upgrade) = upgrade.filter(|_| is_asked_for) else {
        let text = format!("senders must request `Upgrade: {PROTOCOL}`");
        let refused = ApiError::new(StatusCode::UPGRADE_REQUIRED, text, "upgrade");
        let protocol = HeaderValue::from_static(PROTOCOL);
        return Ok(([(header::UPGRADE, protocol)], refused).into_response());
    };
    let proof = proof.map(|Extension(Proof(hash))| hash);
    // The guard has compared it by the path; who sends is compared where it matters, too.
    server.access.allow_role(true, proof.as_ref())?;
    let unavailable = |text| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text, "");
    if door.is_closed() {
        return Err(unavailable("this server takes no rows any more: it must be started again"));
    }
    let seat = server.senders.take(proof.as_ref());
    let seat = seat.ok_or_else(|| unavailable("too many senders; come again later"))?;
    let permit = match proof.as_ref().map(|taken| &taken.role) {
        Some(Role::Ingest(senders)) => Permit { senders: senders.clone() },
        // Nobody is asked for a token here.
        _ => Permit::anybody(),
    };
    drop(tokio::spawn(converse(server, door, upgrade, permit, (proof, seat))));
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static(PROTOCOL)),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

fn is_asked_for(asked: Option<&str>) -> bool {
    asked.is_some_and(|asked| asked.split(',').any(|of| of.trim().eq_ignore_ascii_case(PROTOCOL)))
}
