//! What is known of how often the values of a recording are updated: its tables of role
//! [`Role::Findings`](crate::schema::Role::Findings).
//!
//! Where a value has no finding of its own, one of the same instance counts (an agent refreshes a
//! whole interface at once), else one of the same table of the device, else
//! [`Updates::UNKNOWN`]. The first finding also counts for the time before it, in which it was
//! being found. A value that merely stood still (`unchanged`, `frozen`) keeps what was found
//! before.

use std::collections::BTreeMap;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::TimestampNanosecondType;
use meikyo_units::Nanos;

use super::Updates;
use crate::batch::Symbol;
use crate::schema::Values;
use crate::schema::role::findings;

/// The findings of a recording, by series.
#[derive(Debug, Clone, Default)]
pub struct Freshness {
    /// By device, table, instance and column; each in order of time.
    found: BTreeMap<[String; 4], Vec<(i64, Updates)>>,
}

impl Freshness {
    /// Takes rows of such a table in any order; rows that say nothing are left out.
    pub fn add(&mut self, rows: &RecordBatch) {
        let (Some(device), Some(table), Some(column), Some(class)) = (
            findings::DEVICE.values_in(rows),
            findings::TABLE.values_in(rows),
            findings::COLUMN.values_in(rows),
            findings::CLASS.values_in(rows),
        ) else {
            return;
        };
        let times = rows
            .column_by_name("time")
            .and_then(|time| time.as_primitive_opt::<TimestampNanosecondType>());
        let Some(times) = times else { return };
        let (period_us, period_us_max) =
            (findings::PERIOD_US.values_in(rows), findings::PERIOD_US_MAX.values_in(rows));
        let (phase_us, instances) =
            (findings::PHASE_US.values_in(rows), findings::INSTANCE.values_in(rows));
        for row in 0..rows.num_rows() {
            let time = times.value(row);
            let finding = Finding {
                class: class.get(row),
                period_us: period_us.and_then(|values| values.get(row)),
                period_us_max: period_us_max.and_then(|values| values.get(row)),
                phase_us: phase_us.and_then(|values| values.get(row)),
            };
            let Some(updates) = finding.updates(time) else { continue };
            let name = |texts: Values<'_, Symbol>| texts.get(row).unwrap_or_default().to_owned();
            let instance = instances.map(name).unwrap_or_default();
            self.insert([name(device), name(table), instance, name(column)], time, updates);
        }
    }

    /// Notes that from `time` on the value of `[device, table, instance, column]` is updated so;
    /// the instance of a table without one is empty. A finding of the same time is replaced, so
    /// that rows may be taken twice.
    pub fn insert(&mut self, series: [String; 4], time: i64, updates: Updates) {
        let found = self.found.entry(series).or_default();
        let position = found.partition_point(|(earlier, _)| *earlier < time);
        match found.get_mut(position) {
            Some(same) if same.0 == time => same.1 = updates,
            _ => found.insert(position, (time, updates)),
        }
    }

    /// The longest span between two updates that was found for any value; `None` when nothing was.
    pub fn longest(&self) -> Option<Nanos> {
        let spans = self.found.values().flatten().map(|(_, updates)| match updates {
            Updates::EveryPoll => Nanos::ZERO,
            Updates::Periodic { period, .. } => *period,
            Updates::Irregular { greatest } => *greatest,
        });
        spans.max()
    }

    /// What counts for one value, over time.
    pub fn timeline(
        &self,
        device: &str,
        table: &str,
        instance: &str,
        column: &str,
    ) -> Timeline<'_> {
        let key = |instance: &str, column: &str| {
            [device.to_owned(), table.to_owned(), instance.to_owned(), column.to_owned()]
        };
        if let Some(found) = self.found.get(&key(instance, column)) {
            return Timeline { found };
        }
        let of_device = self.found.range(key("", "")..);
        let of_device =
            of_device.take_while(|(series, _)| series[0] == device && series[1] == table);
        let sibling = of_device
            .map(|(series, found)| (series[2] == instance, found))
            .max_by_key(|(same_instance, _)| *same_instance);
        Timeline { found: sibling.map_or(&[], |(_, found)| found) }
    }
}

/// What a row of findings says, in the words of its columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finding<'a> {
    /// How the value behaves, as the column `class` has it.
    pub class: Option<&'a str>,
    /// `period_us`, µs.
    pub period_us: Option<u64>,
    /// `period_us_max`, µs.
    pub period_us_max: Option<u64>,
    /// `phase_us`, µs after the row's time.
    pub phase_us: Option<i64>,
}

impl Finding<'_> {
    /// How the value is updated from `time` on, the row's; `None` when it says nothing of that.
    pub fn updates(self, time: i64) -> Option<Updates> {
        match (self.class?, self.period_us) {
            ("every_poll", _) => Some(Updates::EveryPoll),
            ("periodic", Some(period)) if period > 0 => Some(Updates::Periodic {
                period: Nanos::from_micros(period),
                phase: self.phase_us.map(|us| time.saturating_add(us.saturating_mul(1_000))),
            }),
            ("irregular", mean) => {
                let greatest = self.period_us_max.or(mean).filter(|greatest| *greatest > 0)?;
                Some(Updates::Irregular { greatest: Nanos::from_micros(greatest) })
            }
            _ => None,
        }
    }
}

/// How one value is updated, over time.
#[derive(Debug, Clone, Copy)]
pub struct Timeline<'a> {
    found: &'a [(i64, Updates)],
}

impl Timeline<'_> {
    /// What counts at `time`.
    #[inline]
    pub fn at(&self, time: i64) -> Updates {
        match self.found {
            [] => Updates::UNKNOWN,
            [(_, only)] => *only,
            found => found[found.partition_point(|(from, _)| *from <= time).max(1) - 1].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(instance: &str, column: &str) -> [String; 4] {
        ["node1", "interfaces", instance, column].map(str::to_owned)
    }

    #[test]
    fn findings_count_from_their_time_the_first_also_before_and_siblings_help() {
        let periodic = Updates::Periodic { period: Nanos::from_secs(3), phase: None };
        let mut freshness = Freshness::default();
        freshness.insert(key("eth0", "in_octets"), 200, Updates::EveryPoll);
        freshness.insert(key("eth0", "in_octets"), 100, periodic);
        let own = freshness.timeline("node1", "interfaces", "eth0", "in_octets");
        assert_eq!(own.at(50), periodic);
        assert_eq!(own.at(199), periodic);
        assert_eq!(own.at(200), Updates::EveryPoll);
        let of =
            |device, table, instance, column| freshness.timeline(device, table, instance, column);
        assert_eq!(of("node1", "interfaces", "eth0", "out_errors").at(100), periodic);
        assert_eq!(of("node1", "interfaces", "eth1", "in_octets").at(100), periodic);
        assert_eq!(of("node1", "cpu", "", "user_ticks").at(100), Updates::UNKNOWN);
        assert_eq!(of("node2", "interfaces", "eth0", "in_octets").at(100), Updates::UNKNOWN);
    }

    #[test]
    fn a_row_that_is_taken_twice_counts_once_and_the_last_of_one_time_counts() {
        let mut freshness = Freshness::default();
        freshness.insert(key("eth0", "in_octets"), 100, Updates::EveryPoll);
        freshness.insert(key("eth0", "in_octets"), 200, Updates::UNKNOWN);
        freshness.insert(key("eth0", "in_octets"), 200, Updates::EveryPoll);
        assert_eq!(freshness.longest(), Some(Nanos::ZERO));
        let found = freshness.timeline("node1", "interfaces", "eth0", "in_octets").found;
        assert_eq!(found, [(100, Updates::EveryPoll), (200, Updates::EveryPoll)]);
    }
}
