//! Asking for a device's values again and again, and what that shows.

use meikyo_units::{Nanos, WallTime};

use super::{ProbeError, wait_until};
use crate::client::{Client, RequestError};
use crate::freshness::{Activity, Detector, Finding};
use crate::plan::{Convert, DevicePlan};
use crate::resolve;
use crate::tables::{Table, schema};
use crate::{Oid, Value};

/// Objects in one request. A collector packs by octets; this is safely below any agent's limit.
const OBJECTS_MAX: usize = 24;

/// Round trips of a probe's requests, from user space to user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latency {
    /// Requests that were answered.
    pub answers: usize,
    /// Requests that were not, and were sent again.
    pub lost: usize,
    /// The least round trip.
    pub least: Nanos,
    /// Half of the round trips were shorter.
    pub median: Nanos,
    /// 99 of 100 were shorter.
    pub p99: Nanos,
}

/// One value of a device, with what was seen of it.
#[derive(Debug, Clone)]
pub struct Watched {
    /// The recording's table.
    pub table: Table,
    /// Interface, path or object; `None` where the table has none.
    pub instance: Option<String>,
    /// The column's name in its table.
    pub column: String,
    /// The object instance.
    pub oid: Oid,
    /// The newest value as the agent says it; `None` if it has none.
    pub value: Option<Value>,
    /// How that becomes the column's value.
    convert: Convert,
    /// The high 32 bits where the agent has them in another object, as it was walked.
    high: u64,
    /// The refresh that the agent declares, zero for none.
    pub declared: Option<Nanos>,
    /// What was found out.
    pub found: Option<Finding>,
    /// How often the value moved.
    pub moved: usize,
    /// The greatest span between two moves, if there were two.
    pub longest: Option<Nanos>,
}

impl Watched {
    /// The newest value in the unit of the column, which its name says: 66,053,021 kB of `dskTotal` are
    /// 67,638,293,504 `total_bytes`, 386 of `laLoadInt` are 3.86.
    pub fn in_unit(&self) -> Option<String> {
        let value = self.value.as_ref()?;
        let scaled = |factor: u64, high: u64| {
            let number = value.as_u64()?;
            Some((high << 32 | number).saturating_mul(factor).to_string())
        };
        let converted = match &self.convert {
            Convert::Scaled(factor) => scaled(*factor, 0),
            Convert::LowHigh { factor, .. } => scaled(*factor, self.high),
            Convert::Decimal(exponent) => value.as_i64().map(|number| shifted(number, *exponent)),
            Convert::Unsigned | Convert::Signed | Convert::Constant(_) | Convert::AsTyped => None,
        };
        Some(converted.unwrap_or_else(|| value.to_string()))
    }
}

struct Series {
    watched: Watched,
    detector: Detector,
    moved_at: Option<WallTime>,
}

/// The values of a device while they are watched.
pub(super) struct Watch {
    requests: Vec<Vec<Oid>>,
    series: Vec<Series>,
    activity: [Activity; Table::ALL.len()],
    uptime: Option<Value>,
    round_trips: Vec<Nanos>,
    lost: usize,
}

impl Watch {
    pub(super) fn new(plan: &DevicePlan, walked: &[(Oid, Value)]) -> Self {
        let mut series = Vec::new();
        for row in &plan.rows {
            let schema = schema(row.table);
            let declared = resolve::declared_refresh(walked, row);
            for value in &row.values {
                if matches!(value.convert, Convert::Constant(_)) {
                    continue;
                }
                series.push(Series {
                    watched: Watched {
                        table: row.table,
                        instance: row.instance.clone(),
                        column: schema.columns[value.column].name.clone(),
                        oid: value.oid.clone(),
                        value: None,
                        convert: value.convert.clone(),
                        high: high_of(&value.convert, walked),
                        declared,
                        found: None,
                        moved: 0,
                        longest: None,
                    },
                    detector: declared.map_or_else(Detector::new, Detector::declared),
                    moved_at: None,
                });
            }
        }
        let uptime = super::SYSTEM[2];
        let oids: Vec<Oid> = series.iter().map(|series| series.watched.oid.clone()).collect();
        let mut requests: Vec<Vec<Oid>> = oids
            .chunks(OBJECTS_MAX)
            .map(|chunk| [&[Oid::from_slice(uptime)], chunk].concat())
            .collect();
        if requests.is_empty() {
            requests.push(vec![Oid::from_slice(uptime)]);
        }
        Self {
            requests,
            series,
            activity: [Activity::default(); Table::ALL.len()],
            uptime: None,
            round_trips: Vec::new(),
            lost: 0,
        }
    }

    /// Asks for everything every `every`, for a span of `watch`.
    pub(super) fn run(
        &mut self,
        client: &mut Client,
        every: Nanos,
        watch: Nanos,
    ) -> Result<(), ProbeError> {
        let start = WallTime::now();
        let mut due = start;
        while due.since(start) < watch {
            wait_until(due);
            self.poll(client)?;
            let now = WallTime::now();
            // What was overrun is left out: asking twice at once would show nothing.
            while due <= now {
                due = due + every;
            }
        }
        Ok(())
    }

    /// Asks for everything once.
    pub(super) fn poll(&mut self, client: &mut Client) -> Result<(), ProbeError> {
        let mut first = 0;
        for request in &self.requests {
            let sent = WallTime::now();
            let answer = match client.get(request) {
                Ok(answer) => answer,
                Err(RequestError::Timeout { .. }) if !self.round_trips.is_empty() => {
                    self.lost += 1;
                    first += request.len() - 1;
                    continue;
                }
                Err(error) => return Err(ProbeError::Request(error)),
            };
            let received = WallTime::now();
            self.round_trips.push(received.since(sent));
            let mut values = answer.into_iter().map(|(_, value)| value);
            let uptime = values.next();
            let uptime_moved = uptime != self.uptime;
            self.uptime = uptime;
            for (series, value) in self.series[first..].iter_mut().zip(values) {
                let activity = &mut self.activity[series.watched.table.index()];
                if uptime_moved {
                    activity.uptime_moved(received);
                }
                series.observe(value, received, activity);
            }
            first += request.len() - 1;
        }
        Ok(())
    }

    /// Requests that one poll takes.
    pub(super) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Round trips so far; none at first.
    pub(super) fn latency(&self) -> Latency {
        let mut sorted = self.round_trips.clone();
        sorted.sort_unstable();
        let at = |share_percent: usize| {
            let last = sorted.len().saturating_sub(1);
            sorted.get(last * share_percent / 100).copied().unwrap_or(Nanos::ZERO)
        };
        Latency {
            answers: sorted.len(),
            lost: self.lost,
            least: at(0),
            median: at(50),
            p99: at(99),
        }
    }

    pub(super) fn finish(self) -> (Latency, Vec<Watched>) {
        let latency = self.latency();
        (latency, self.series.into_iter().map(Series::finish).collect())
    }
}

impl Series {
    fn observe(&mut self, value: Value, at: WallTime, activity: &mut Activity) {
        let value = Some(value).filter(|value| !value.is_exception());
        let known = self.watched.value.is_some();
        let changed = known && value.is_some() && value != self.watched.value;
        if value.is_some() {
            if changed {
                activity.moved(at);
                self.watched.moved += 1;
                if let Some(before) = self.moved_at.replace(at) {
                    let span = at.since(before);
                    self.watched.longest = self.watched.longest.max(Some(span));
                }
            }
            // What is found is read at the end.
            let _ = self.detector.observe(at, changed, activity);
        }
        self.watched.value = value.or_else(|| self.watched.value.take());
    }

    fn finish(self) -> Watched {
        Watched { found: self.detector.finding(), ..self.watched }
    }
}

/// A whole number times a power of ten, with every digit that it has.
fn shifted(number: i64, exponent: i8) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let places = usize::from(exponent.unsigned_abs());
    let size = number.unsigned_abs().to_string();
    if exponent >= 0 {
        let zeros = if number == 0 { 0 } else { places };
        return format!("{sign}{size}{}", "0".repeat(zeros));
    }
    let size = format!("{size:0>width$}", width = places + 1);
    let (whole, part) = size.split_at(size.len() - places);
    format!("{sign}{whole}.{part}")
}

/// The high 32 bits of a value that two objects hold; 0 where one does.
fn high_of(convert: &Convert, walked: &[(Oid, Value)]) -> u64 {
    let Convert::LowHigh { high, .. } = convert else { return 0 };
    let found = walked.iter().find(|(oid, _)| oid == high);
    found.and_then(|(_, value)| u32::try_from(value.as_u64()?).ok()).map_or(0, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(value: Value, convert: Convert, walked: &[(Oid, Value)]) -> Watched {
        Watched {
            table: Table::Storage,
            instance: None,
            column: String::new(),
            oid: Oid::from_slice(&[1, 3]),
            value: Some(value),
            high: high_of(&convert, walked),
            convert,
            declared: None,
            found: None,
            moved: 0,
            longest: None,
        }
    }

    #[test]
    fn values_are_told_in_the_unit_of_their_column() {
        let high = Oid::from_slice(&[1, 3, 7]);
        let walked = [(high.clone(), Value::Gauge32(2))];
        let told = |value, convert| watched(value, convert, &walked).in_unit().unwrap();
        assert_eq!(told(Value::Integer(66_053_021), Convert::Scaled(1_024)), "67638293504");
        assert_eq!(told(Value::Integer(386), Convert::Decimal(-2)), "3.86");
        assert_eq!(told(Value::Integer(5), Convert::Decimal(-2)), "0.05");
        // 2 * 2^32 + 7 blocks of 4 KiB.
        let both = Convert::LowHigh { high, factor: 4_096 };
        assert_eq!(told(Value::Gauge32(7), both), "35184372117504");
        assert_eq!(told(Value::Counter64(9), Convert::Unsigned), "9");
        let none = Watched { value: None, ..watched(Value::Null, Convert::Unsigned, &[]) };
        assert_eq!(none.in_unit(), None);
    }
}
