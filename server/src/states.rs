//! The worst state of each device and pixel, over HTTP.

use meikyo_live::Opened;
use meikyo_live::states::{self, StatesRequest, StatesRow};
use meikyo_recording::schema::role::answers;
use serde::Serialize;
use utoipa::ToSchema;

use crate::errors::ApiError;
use crate::parameters::{Parameters, WIDTH_MAX};
use crate::wire::{ProblemBody, bins_told, problem_bodies};

/// States per device and pixel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatesBody {
    /// The begin of bin 0.
    pub(crate) from_us: i64,
    /// The length of a bin.
    pub(crate) bin_us: i64,
    /// How many bins.
    pub(crate) bins: u32,
    /// The span of the summaries that were read, ms; 0 where raw readings were.
    pub(crate) level_ms: u64,
    /// The devices that were not always ok.
    pub(crate) rows: Vec<StatesRowBody>,
    /// Devices a row; 1 when nothing was folded.
    pub(crate) series_per_row: u32,
    /// Files that could not be read.
    pub(crate) problems: Vec<ProblemBody>,
}

/// The pixels of one device that are worse than ok; columns of equal length.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatesRowBody {
    /// Number of the device among the series of answers, or of the row.
    pub(crate) series: u32,
    /// The device, or the first one of the row.
    pub(crate) device: String,
    /// The bins that are worse than ok.
    #[serde(rename = "bins")]
    pub(crate) of_bins: Vec<u32>,
    /// 1 late, 2 skipped, 3 error, 4 missed.
    pub(crate) worst: Vec<u8>,
}

impl StatesRowBody {
    fn new(StatesRow { series, device, of_bins, worst }: StatesRow) -> Self {
        Self { series, device, of_bins, worst }
    }
}

/// Answers a request. Blocks while files are read.
pub(crate) fn read(opened: &Opened, query: Option<&str>) -> Result<StatesBody, ApiError> {
    let mut parameters = Parameters::parse(query)?;
    let (from, to) = parameters.span(opened.span()?)?;
    let width = parameters.number("width", 600, 1..=WIDTH_MAX)?;
    let fold = parameters.number("fold", u32::MAX, 1..=u32::MAX)?;
    let labels = parameters.labels(&[answers::DEVICE.name().into()])?;
    let states = states::read(opened, &StatesRequest { from, to, width, fold, labels })?;
    Ok(StatesBody {
        from_us: states.bins.from.div_euclid(1_000),
        bin_us: states.bins.length / 1_000,
        bins: bins_told(states.bins),
        level_ms: states.bins.level_ms(),
        rows: states.rows.into_iter().map(StatesRowBody::new).collect(),
        series_per_row: states.series_per_row,
        problems: problem_bodies(states.problems),
    })
}
