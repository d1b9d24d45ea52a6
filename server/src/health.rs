//! How well a recording was measured, over HTTP: states for the time bar, and who is silent.

use std::sync::Arc;

use meikyo_live::Opened;
use meikyo_live::health::{self, HealthCache};
use meikyo_live::staleness::Stalest;
use meikyo_units::Nanos;
use serde::Serialize;
use utoipa::ToSchema;

use crate::errors::ApiError;
use crate::parameters::{Parameters, WIDTH_MAX};
use crate::wire::{ProblemBody, problem_bodies};

/// States over time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthBody {
    /// The begin of the first bin.
    pub(crate) from_us: i64,
    /// The length of a bin.
    pub(crate) bin_us: i64,
    /// Device intervals by state, a number a bin.
    pub(crate) bins: HealthBinsBody,
    /// Their sums.
    pub(crate) totals: HealthTotalsBody,
    /// Devices that have not answered for 3 s, or two of their intervals, at `to`.
    pub(crate) silent: Vec<String>,
    /// Of the devices that answer, the value that is oldest at `to`; null when none answers.
    pub(crate) stalest: Option<StalestBody>,
    /// Intervals a second at `to`.
    pub(crate) intervals_per_s: f64,
    /// Files that could not be read.
    pub(crate) problems: Vec<ProblemBody>,
}

/// How well one of several recordings was measured.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthOfBody {
    /// Id of the recording.
    pub(crate) recording: String,
    /// How well it was measured; null if it cannot be read.
    pub(crate) health: Option<HealthBody>,
}

/// Columns of equal length.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct HealthBinsBody {
    /// Answered in time.
    pub(crate) ok: Vec<u64>,
    /// Answered late.
    pub(crate) late: Vec<u64>,
    /// Not answered.
    pub(crate) missed: Vec<u64>,
    /// Answered with an error.
    pub(crate) error: Vec<u64>,
    /// Not asked.
    pub(crate) skipped: Vec<u64>,
}

/// Sums over all bins.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct HealthTotalsBody {
    /// Answered in time.
    pub(crate) ok: u64,
    /// Answered late.
    pub(crate) late: u64,
    /// Not answered.
    pub(crate) missed: u64,
    /// Answered with an error.
    pub(crate) error: u64,
    /// Not asked.
    pub(crate) skipped: u64,
    /// Intervals of the collector, each of which all devices have.
    pub(crate) intervals: u64,
}

/// A value that is old.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StalestBody {
    /// The device that it is a value of.
    pub(crate) device: String,
    /// Table, instance and column of the value; empty where all of the device are as old as its answer.
    pub(crate) object: String,
    /// How old it is: since when it was true at the agent.
    pub(crate) age_us: u64,
}

impl StalestBody {
    fn new(Stalest { device, object, age }: Stalest) -> Self {
        Self { device, object, age_us: age.as_micros() }
    }
}

/// Answers a request about all recordings of devices that are written now. Blocks while files are read.
pub(crate) fn read_all(
    recordings: &[Arc<Opened>],
    cache: &HealthCache,
    query: Option<&str>,
) -> Result<Vec<HealthOfBody>, ApiError> {
    let mut all = Vec::new();
    for opened in recordings.iter().filter(|opened| opened.is_running()) {
        if opened.devices().is_ok_and(|devices| devices.is_empty()) {
            continue;
        }
        let health = match read(opened, cache, query) {
            Ok(health) => Some(health),
            Err(error) if error.is_of_client() => return Err(error),
            Err(_) => None,
        };
        all.push(HealthOfBody { recording: opened.id.clone(), health });
    }
    Ok(all)
}

/// Answers a request. Blocks while files are read.
pub(crate) fn read(
    opened: &Opened,
    cache: &HealthCache,
    query: Option<&str>,
) -> Result<HealthBody, ApiError> {
    let mut parameters = Parameters::parse(query)?;
    let span = parameters.span(opened.span()?)?;
    let width = parameters.number("width", 600, 1..=WIDTH_MAX)?;
    parameters.finish()?;
    let health = health::read(opened, cache, span, width)?;
    let column = |state: usize| health.counts.iter().map(|bin| bin.states[state]).collect();
    let [ok, late, missed, error, skipped] = health.totals.states;
    let intervals = health.totals.intervals;
    let interval_us = health.interval_us;
    Ok(HealthBody {
        from_us: health.bins.from.div_euclid(1_000),
        bin_us: health.bins.length / 1_000,
        bins: HealthBinsBody {
            ok: column(0),
            late: column(1),
            missed: column(2),
            error: column(3),
            skipped: column(4),
        },
        totals: HealthTotalsBody { ok, late, missed, error, skipped, intervals },
        silent: health.silent,
        stalest: health.stalest.map(StalestBody::new),
        intervals_per_s: interval_us.map_or(0.0, |us| Nanos::SECOND.as_secs_f64() * 1e6 / real(us)),
        problems: problem_bodies(health.problems),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn real(us: u64) -> f64 {
    us as f64
}
