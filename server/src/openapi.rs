//! The OpenAPI document: the API as programs read it.

use utoipa::OpenApi;

use crate::routes::{flame, heat, ranges, recordings, senders};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Meikyo",
        description = "Recordings of a cluster: what there is, values over time, health, live \
            frames. All paths are relative to the server's prefix.",
    ),
    paths(
        recordings::recordings,
        recordings::series,
        recordings::inventory,
        ranges::range,
        ranges::health,
        ranges::all_health,
        ranges::states,
        heat::heat,
        heat::cores,
        flame::flame,
        ranges::live,
        recordings::readings,
        recordings::events,
        recordings::freshness,
        recordings::export,
        recordings::alerts,
        recordings::alert_rules,
        recordings::acknowledge,
        recordings::silence,
        recordings::fabric,
        senders::senders,
        recordings::metrics,
    )
)]
struct Api;

/// The document as JSON, with a newline at its end, as it is checked in as `server/openapi.json`.
///
/// # Panics
/// Never: the document is made of texts and numbers.
pub fn document() -> String {
    Api::openapi().to_pretty_json().expect("texts and numbers can be written as JSON") + "\n"
}
