//! The texts of a live conversation.

use std::collections::BTreeMap;

use meikyo_live::{Event, Interval, Opened, Wish};
use meikyo_units::WallTime;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::column_units::unit_of;
use crate::errors::ApiError;
use crate::wire::SeriesBody;

/// What a viewer sends.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscribeRequest {
    /// What he sees; replaces what he saw before.
    pub(crate) subscribe: Subscription,
}

/// What a viewer sees.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subscription {
    /// The table that is looked at.
    pub(crate) table: String,
    /// Its columns, 1 to 32.
    pub(crate) columns: Vec<String>,
    /// Texts that labels have, `*` and `?` stand for any text; all series when empty.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, Vec<String>>,
    /// At most one message in that span, each with the newest row a series; every row when absent.
    #[serde(default)]
    pub(crate) every_us: Option<u64>,
    /// A past instead of what is new.
    #[serde(default)]
    pub(crate) replay: Option<ReplayRequest>,
}

/// A past that is played again.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayRequest {
    /// From then on.
    pub(crate) from_us: i64,
    /// Recorded seconds a second, at most 1000.
    #[serde(default = "one")]
    pub(crate) speed: f64,
}

fn one() -> f64 {
    1.0
}

/// What a viewer gets as text.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LiveReply {
    /// The view began: what numbers mean from here on.
    Subscribed(SubscribedBody),
    /// The newest interval.
    Health(LiveHealthBody),
    /// Something happened.
    Event(EventBody),
    /// Steps that were dropped because the viewer took them too slowly.
    Dropped(u64),
    /// The replay is over.
    Ended(bool),
    /// The request was refused; what was seen before goes on.
    Refused(crate::errors::ErrorBody),
}

/// What the binary messages of a view hold.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SubscribedBody {
    /// What `offset_ms` counts from.
    pub(crate) epoch_us: i64,
    /// Whether somebody writes the recording now.
    pub(crate) running: bool,
    /// The series that are seen; later ones are listed by `series`.
    pub(crate) series: Vec<SeriesBody>,
    /// The columns with values.
    pub(crate) columns: Vec<LiveColumnBody>,
}

/// A column of a view.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LiveColumnBody {
    /// The column's name in the table.
    pub(crate) name: String,
    /// Unit of its values, counters as rates.
    pub(crate) unit: String,
}

/// One interval.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LiveHealthBody {
    /// Its due instant.
    pub(crate) time_us: i64,
    /// Devices that ended ok.
    pub(crate) ok: u64,
    /// Devices that answered late.
    pub(crate) late: u64,
    /// Devices that did not answer.
    pub(crate) missed: u64,
    /// Devices that answered with an error.
    pub(crate) error: u64,
    /// Devices that were not asked.
    pub(crate) skipped: u64,
    /// The newest due instant of which there are rows.
    pub(crate) newest_us: i64,
    /// When the last answer of the interval was received; null without an answer.
    pub(crate) received_us: Option<i64>,
    /// When this was handed over, by the server's clock, as its answers tell it in `Meikyo-Clock`.
    pub(crate) sent_us: i64,
}

impl LiveHealthBody {
    pub(super) fn new(interval: &Interval, newest: i64, sent: WallTime) -> Self {
        let time_us = interval.time.div_euclid(1_000);
        Self {
            time_us,
            ok: interval.ok,
            late: interval.late,
            missed: interval.missed,
            error: interval.errors,
            skipped: interval.skipped,
            newest_us: newest.div_euclid(1_000),
            received_us: interval.complete_us.map(|us| time_us.saturating_add(us)),
            sent_us: sent.as_nanos().div_euclid(1_000),
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct EventBody {
    /// Instant of the event, µs since the epoch.
    pub(crate) time_us: i64,
    /// The device; null for the collector itself.
    pub(crate) device: Option<String>,
    /// Kind.
    pub(crate) event: String,
    /// Interface, disk or object.
    pub(crate) object: Option<String>,
    /// For people.
    pub(crate) text: Option<String>,
    /// How many, where the kind counts something.
    pub(crate) count: Option<u64>,
}

impl EventBody {
    pub(crate) fn new(event: &Event) -> Self {
        let Event { time, device, event, object, text, count } = event.clone();
        Self { time_us: time.div_euclid(1_000), device, event, object, text, count }
    }
}

impl LiveReply {
    pub(super) fn refused(error: &ApiError) -> Self {
        Self::Refused(error.body().clone())
    }

    pub(super) fn subscribed(
        opened: &Opened,
        wish: &Wish,
        chosen: &[u32],
        epoch_us: i64,
        running: bool,
    ) -> Self {
        let series = opened.with_known_series(&wish.table, |series| {
            let body = |&ordinal| SeriesBody { ordinal, labels: series.named(ordinal) };
            chosen.iter().map(body).collect()
        });
        let column = |&column: &usize| {
            let column = &wish.table.columns[column];
            LiveColumnBody { name: column.name.clone(), unit: unit_of(column) }
        };
        let columns = wish.columns.iter().map(column).collect();
        Self::Subscribed(SubscribedBody { epoch_us, running, series, columns })
    }
}
