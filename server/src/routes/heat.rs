//! Heat maps of profiles.

use axum::Json;

use crate::errors::ApiError;
use crate::heat::answer::{self, CoresBody, HeatBody, Source};
use crate::routes::asked::{Asked, Cpus, Id, Refused, Span};

/// How many samples there were in each second and each 20 ms of it, added up over hosts and CPUs.
///
/// Of the recording that rows from afar are written to, rows that came within the last half second may be
/// missing. Of any other one, and for a token for the samples of some jobs, at most 20,000,000 samples are
/// counted. A second without samples is 0: `transport_gaps`, `losses` and `rates` tell what was not sampled
/// or did not come.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/heat",
    tag = "profiles",
    params(
        Id,
        Span,
        Cpus,
        ("watch" = Option<bool>, Query, description = "`true`: for the next 3 s hosts send blocks of 100 ms in \
            place of whole seconds, so that what they sample is here within 300 ms"),
    ),
    responses((status = 200, body = HeatBody), Refused),
)]
pub(crate) async fn heat(asked: Asked) -> Result<Json<HeatBody>, ApiError> {
    let answer = asked.answer_visible(|server, opened, query, visible| {
        answer::map(&Source::of(server.heat.as_ref(), opened, visible)?, query)
    });
    answer.await.map(Json)
}

/// How many samples there were of each CPU in each second.
///
/// As `heat`; at most 4,000,000 numbers.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/cores",
    tag = "profiles",
    params(Id, Span, Cpus),
    responses((status = 200, body = CoresBody), Refused),
)]
pub(crate) async fn cores(asked: Asked) -> Result<Json<CoresBody>, ApiError> {
    let answer = asked.answer_visible(|server, opened, query, visible| {
        answer::cores(&Source::of(server.heat.as_ref(), opened, visible)?, query)
    });
    answer.await.map(Json)
}
