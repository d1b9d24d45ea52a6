//! Heat over HTTP.

use std::collections::BTreeSet;

use meikyo_live::{Opened, Span};
use meikyo_units::WallTime;
use serde::Serialize;
use utoipa::ToSchema;

use super::{CoreSums, Heat, Selection, Sums, SumsError, TILE_NS};
use crate::errors::ApiError;
use crate::parameters::Parameters;

/// Seconds of one answer at most.
const SECONDS_MAX: i64 = 7_200;

const SECOND_NS: i64 = 1_000_000_000;

/// Samples by second and by tile of the second, added up over hosts and CPUs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HeatBody {
    /// The begin of the first second.
    pub(crate) from_us: i64,
    /// What a tile spans.
    pub(crate) tile_us: i64,
    /// How many of them there are in a second.
    pub(crate) tiles_per_second: u32,
    /// How many there were in each second.
    pub(crate) samples: Vec<u32>,
    /// Samples of each tile, second after second.
    pub(crate) tiles: Vec<u32>,
    /// What they are the sums of.
    pub(crate) cores: Vec<CoreBody>,
}

/// Samples of each CPU by second.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CoresBody {
    /// The begin of the first second.
    pub(crate) from_us: i64,
    /// The CPUs that there are samples of, by host and number.
    pub(crate) cores: Vec<CoreBody>,
}

/// The samples of a CPU.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CoreBody {
    /// The host that it belongs to.
    pub(crate) host: String,
    /// Its number on the host.
    pub(crate) cpu: u32,
    /// Samples in all seconds.
    pub(crate) samples: u64,
    /// Samples of each second; empty where they were not asked for.
    pub(crate) seconds: Vec<u32>,
}

impl From<CoreSums> for CoreBody {
    fn from(CoreSums { host, cpu, samples, seconds }: CoreSums) -> Self {
        Self { host, cpu, samples, seconds }
    }
}

/// Answers a request for a heat map. Blocks while files are read.
pub(crate) fn map(heat: &Heat, query: Option<&str>) -> Result<HeatBody, ApiError> {
    let (from_us, Sums { seconds, tiles, cores }) = sums(heat, query, false)?;
    Ok(HeatBody {
        from_us,
        tile_us: TILE_NS / 1_000,
        tiles_per_second: u32::try_from(super::TILES).expect("there are 50"),
        samples: seconds,
        tiles,
        cores: cores.into_iter().map(CoreBody::from).collect(),
    })
}

/// Answers a request for the seconds of each CPU. Blocks while files are read.
pub(crate) fn cores(heat: &Heat, query: Option<&str>) -> Result<CoresBody, ApiError> {
    let (from_us, sums) = sums(heat, query, true)?;
    Ok(CoresBody { from_us, cores: sums.cores.into_iter().map(CoreBody::from).collect() })
}

fn sums(heat: &Heat, query: Option<&str>, by_core: bool) -> Result<(i64, Sums), ApiError> {
    let mut parameters = Parameters::parse(query)?;
    let (first, last) = heat.span().unwrap_or((0, 0));
    let at = |second: i64| WallTime::from_nanos(second.saturating_mul(SECOND_NS));
    let (from, to) = parameters.span(Span { from: at(first), now: at(last.saturating_add(1)) })?;
    let from_s = from.as_nanos().div_euclid(SECOND_NS);
    let until_s = to.as_nanos().saturating_sub(1).div_euclid(SECOND_NS) + 1;
    if until_s - from_s > SECONDS_MAX {
        let text = format!(
            "{} seconds are asked for, and {SECONDS_MAX} are the most of one answer",
            until_s - from_s
        );
        return Err(ApiError::bad(text, "from"));
    }
    let hosts = parameters.take_all("host");
    let cpu = |text: String| {
        let number = text.parse().ok();
        number.ok_or_else(|| ApiError::bad(format!("`{text}` is no number of a CPU"), "cpu"))
    };
    let cpus = parameters.take_all("cpu").into_iter().map(cpu);
    let cpus = cpus.collect::<Result<BTreeSet<u32>, _>>()?;
    parameters.finish()?;
    let sums = heat.sums(&Selection { from_s, until_s, hosts, cpus, by_core });
    let sums = sums.map_err(|error| match error {
        SumsError::TooMany { .. } => ApiError::bad(error.to_string(), "from"),
        SumsError::System { .. } => ApiError::internal(&error),
    })?;
    Ok((from_s * (SECOND_NS / 1_000), sums))
}

/// The heat of a recording.
pub(crate) fn of<'a>(
    kept: Option<&'a (std::path::PathBuf, Heat)>,
    opened: &Opened,
) -> Result<&'a Heat, ApiError> {
    let is_it = |(dir, _): &&(std::path::PathBuf, Heat)| dir == opened.recording.dir();
    kept.filter(is_it).map(|(_, heat)| heat).ok_or_else(|| {
        let text = format!(
            "heat maps are kept of the recording that rows from afar are written to, and `{}` is \
             another: `meikyo serve --ingest DIR`",
            opened.id
        );
        ApiError::unknown(text, "id")
    })
}
