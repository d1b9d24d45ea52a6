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
use crate::watching;

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
    let mut parameters = Parameters::parse(query)?;
    let is_watched = match parameters.optional("watch").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => {
            let text = format!("`watch` is `true` or `false`, not `{other}`");
            return Err(ApiError::bad(text, "watch"));
        }
    };
    let (from_us, selection) = selection(heat, parameters, false)?;
    if let (true, Source::Kept(heat)) = (is_watched, heat) {
        heat.watching().note(watching::now(), &selection.hosts);
    }
    let Sums { seconds, tiles, cores } = heat.sums(&selection).map_err(refused)?;
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
    let (from_us, selection) = selection(heat, Parameters::parse(query)?, true)?;
    let sums = heat.sums(&selection).map_err(refused)?;
    Ok(CoresBody { from_us, cores: sums.cores.into_iter().map(CoreBody::from).collect() })
}

/// What is asked for, and where it begins.
fn selection(
    heat: &Source<'_>,
    mut parameters: Parameters,
    by_core: bool,
) -> Result<(i64, Selection), ApiError> {
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
    let selection = Selection { from_s, until_s, hosts, cpus, by_core };
    Ok((from_s * (SECOND_NS / 1_000), selection))
}

fn refused(error: SumsError) -> ApiError {
    match error {
        SumsError::TooMany { .. } | SumsError::TooManySamples { .. } => {
            ApiError::bad(error.to_string(), "from")
        }
        SumsError::Recording(error) => error.into(),
        SumsError::System { .. } => ApiError::internal(&error),
    }
}

/// Where the heat of a recording is from.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// It is kept beside what rows from afar are written to.
    Kept(&'a Heat),
    /// Samples are counted.
    Counted(&'a Recording),
    /// The samples of these jobs and users are.
    Visible(&'a Recording, Vec<String>),
}

impl<'a> Source<'a> {
    /// The heat of a recording.
    pub(crate) fn of(
        kept: Option<&'a (PathBuf, Heat)>,
        opened: &'a Opened,
        visible: Vec<String>,
    ) -> Result<Self, ApiError> {
        let is_it = |(dir, _): &&(PathBuf, Heat)| dir == opened.recording.dir();
        if let Some((_, heat)) = kept.filter(is_it).filter(|_| visible.is_empty()) {
            return Ok(Self::Kept(heat));
        }
        if opened.recording.tables_for(Role::Samples)?.is_empty() {
            let text = format!("`{}` holds no profile: `meikyo profile record`", opened.id);
            return Err(ApiError::unknown(text, "id"));
        }
        Ok(if visible.is_empty() {
            Self::Counted(&opened.recording)
        } else {
            Self::Visible(&opened.recording, visible)
        })
    }

    fn span(&self) -> Result<Option<(i64, i64)>, ApiError> {
        Ok(match self {
            Self::Kept(heat) => heat.span(),
            Self::Counted(recording) | Self::Visible(recording, _) => counted::span(recording)?,
        })
    }

    fn sums(&self, selection: &Selection) -> Result<Sums, SumsError> {
        match self {
            Self::Kept(heat) => heat.sums(selection),
            Self::Counted(recording) => counted::count(recording, selection),
            Self::Visible(recording, to) => counted::count_visible(recording, selection, to),
        }
    }
}
