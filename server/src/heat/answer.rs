//! Heat over HTTP.

use std::collections::BTreeSet;
use std::path::PathBuf;

use meikyo_live::{Opened, Span};
use meikyo_recording::Recording;
use meikyo_recording::schema::Role;
use meikyo_units::WallTime;
use serde::Serialize;
use utoipa::ToSchema;

use super::{CoreSums, Heat, Selection, Sums, SumsError, TILE_NS, counted};
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
pub(crate) fn map(heat: &Source<'_>, query: Option<&str>) -> Result<HeatBody, ApiError> {
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
pub(crate) fn cores(heat: &Source<'_>, query: Option<&str>) -> Result<CoresBody, ApiError> {
    let (from_us, sums) = sums(heat, query, true)?;
    Ok(CoresBody { from_us, cores: sums.cores.into_iter().map(CoreBody::from).collect() })
}

fn sums(heat: &Source<'_>, query: Option<&str>, by_core: bool) -> Result<(i64, Sums), ApiError> {
    let mut parameters = Parameters::parse(query)?;
    let (first, last) = heat.span()?.unwrap_or((0, 0));
    let at = |second: i64| WallTime::from_nanos(second.saturating_mul(SECOND_NS));
    let (from, to) = parameters.span(Span { from: at(first), now: at(last.saturating_add(1)) })?;
    let from_s = from.as_nanos().div_euclid(SECOND_NS);
    let until_s = to.as_nanos().saturating_sub(1).div_euclid(SECOND_NS) + 1;
    if until_s - from_s > SECONDS_MAX {
        let text = format!(
            "{} seconds were requested; one answer has at most {SECONDS_MAX}",
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
        SumsError::TooMany { .. } | SumsError::TooManySamples { .. } => {
            ApiError::bad(error.to_string(), "from")
        }
        SumsError::Recording(error) => error.into(),
        SumsError::System { .. } => ApiError::internal(&error),
    })?;
    Ok((from_s * (SECOND_NS / 1_000), sums))
}

/// Where the heat of a recording is from.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// It is kept beside what rows from afar are written to.
    Kept(&'a Heat),
    /// Samples are counted.
    Counted(&'a Recording),
}

impl<'a> Source<'a> {
    /// The heat of a recording.
    pub(crate) fn of(
        kept: Option<&'a (PathBuf, Heat)>,
        opened: &'a Opened,
    ) -> Result<Self, ApiError> {
        let is_it = |(dir, _): &&(PathBuf, Heat)| dir == opened.recording.dir();
        if let Some((_, heat)) = kept.filter(is_it) {
            return Ok(Self::Kept(heat));
        }
        if opened.recording.tables_for(Role::Samples)?.is_empty() {
            let text = format!("`{}` holds no profile: `meikyo profile record`", opened.id);
            return Err(ApiError::unknown(text, "id"));
        }
        Ok(Self::Counted(&opened.recording))
    }

    fn span(&self) -> Result<Option<(i64, i64)>, ApiError> {
        Ok(match self {
            Self::Kept(heat) => heat.span(),
            Self::Counted(recording) => counted::span(recording)?,
        })
    }

    fn sums(&self, selection: &Selection) -> Result<Sums, SumsError> {
        match self {
            Self::Kept(heat) => heat.sums(selection),
            Self::Counted(recording) => counted::count(recording, selection),
        }
    }
}
