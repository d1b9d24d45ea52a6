//! Flame graphs of profiles.

use axum::Json;

use crate::errors::ApiError;
use crate::flame::answer::{self, FlameBody};
use crate::routes::asked::{Asked, Cpus, Id, Refused, Span};

/// Which functions ran, and who called them: samples as a tree of callers; or where threads waited, and for how long.
///
/// Functions are named by the files of the machine that serves, by build ID; what has no name is counted.
/// At most 20,000,000 samples, 50,000 in the order of time.
#[utoipa::path(
    get,
    path = "/api/v1/recordings/{id}/profile/flame",
    tag = "profiles",
    params(
        Id,
        Span,
        Cpus,
        ("pid" = Option<[u64]>, Query, description = "only processes of these numbers; also repeatedly"),
        ("process" = Option<[String]>, Query, description = "only processes of these names, `*` and \
            `?` stand for any text; also repeatedly"),
        ("thread" = Option<[String]>, Query, description = "as `process`, of threads"),
        ("job" = Option<[String]>, Query, description = "as `process`, of jobs: `slurm:123`, \
            `container:0123456789ab`, `pod:UID`, `lxc:NAME`, `unit:NAME.service`"),
        ("of" = Option<String>, Query, description = "`off_cpu`: the time that threads were off the CPU, \
            in ns, by where they left it; `samples` when absent"),
        ("by" = Option<String>, Query, description = "a tree for each `thread`, `process`, `cpu`, \
            `host` or `job`; `together` when absent"),
        ("order" = Option<String>, Query, description = "`time`: stacks follow each other as they \
            were sampled, and only equal neighbours are one; `merged` when absent"),
        ("nodes" = Option<u32>, Query, minimum = 1, maximum = 100_000, description = "at most so \
            many nodes; 20,000 when absent"),
        ("than_from" = Option<String>, Query, description = "compare with samples from then on; as \
            `from` when only others of these are said"),
        ("than_to" = Option<String>, Query, description = "compare with samples until then"),
        ("than_host" = Option<[String]>, Query, description = "compare with samples of these hosts"),
    ),
    responses((status = 200, body = FlameBody), Refused),
)]
pub(crate) async fn flame(asked: Asked) -> Result<Json<FlameBody>, ApiError> {
    let answer = asked.answer_visible(|server, opened, query, visible| {
        answer::tree(&server.flames, opened, query, visible)
    });
    answer.await.map(Json)
}
