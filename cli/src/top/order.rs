//! Which devices stand in the table, and in which order.

use std::cmp::Ordering;

use meikyo_units::glob::{is_pattern, matches};

use super::metric::Metric;
use super::model::{Device, Model};

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// In the order of the cluster file.
    Name,
    State,
    Metric(Metric),
}

impl Column {
    /// From left to right.
    pub(super) const ALL: [Self; 10] = [
        Self::Name,
        Self::State,
        Self::Metric(Metric::Sent),
        Self::Metric(Metric::Received),
        Self::Metric(Metric::Load),
        Self::Metric(Metric::Cpu),
        Self::Metric(Metric::Memory),
        Self::Metric(Metric::Disk),
        Self::Metric(Metric::Age),
        Self::Metric(Metric::RoundTrip),
    ];

    /// The heading.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Name => "device",
            Self::State => "state",
            Self::Metric(Metric::Cpu) => "cpu",
            Self::Metric(Metric::Memory) => "memory",
            Self::Metric(Metric::Disk) => "disk",
            Self::Metric(metric) => metric.words(),
        }
    }

    /// The next one to the left or to the right, round and round.
    pub(super) fn neighbour(self, right: bool) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self).unwrap_or(0);
        let step = if right { 1 } else { Self::ALL.len() - 1 };
        Self::ALL[(at + step) % Self::ALL.len()]
    }
}

/// How the devices are ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) column: Column,
    /// Names come from first to last, worst states and greatest values first; reversed the other
    /// way round. What is not known comes last either way.
    pub(super) reversed: bool,
    /// Whether the devices of a group stand together.
    pub(super) grouped: bool,
    /// A part of a name or group, or a pattern with `*` and `?`.
    pub(super) filter: String,
}

/// Whether a device passes the filter.
pub(super) fn passes(device: &Device, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    let pattern = is_pattern(&filter);
    [&device.name, &device.group].into_iter().any(|text| {
        let text = text.to_lowercase();
        if pattern { matches(&filter, &text) } else { text.contains(&filter) }
    })
}

/// The ordinals of the devices in the table, from top to bottom, at an instant.
pub(super) fn ordered(model: &Model, order: &Order, now: i64) -> Vec<usize> {
    let devices = model.devices.iter().enumerate();
    let mut keyed: Vec<(usize, Key)> = devices
        .filter(|(_, device)| passes(device, &order.filter))
        .map(|(ordinal, device)| (ordinal, key(device, ordinal, order.column, now)))
        .collect();
    keyed.sort_by(|(a, a_key), (b, b_key)| {
        let group = |ordinal: usize| model.devices[ordinal].group.as_str();
        let by_group = if order.grouped { group(*a).cmp(group(*b)) } else { Ordering::Equal };
        by_group.then_with(|| a_key.compare(*b_key, order.reversed)).then(a.cmp(b))
    });
    keyed.into_iter().map(|(ordinal, _)| ordinal).collect()
}

/// What a device is compared by.
#[derive(Debug, Clone, Copy)]
enum Key {
    Place(usize),
    Number(Option<f64>),
}

impl Key {
    fn compare(self, other: Self, reversed: bool) -> Ordering {
        let turned = |order: Ordering| if reversed { order.reverse() } else { order };
        match (self, other) {
            (Self::Place(a), Self::Place(b)) => turned(a.cmp(&b)),
            (Self::Number(Some(a)), Self::Number(Some(b))) => turned(b.total_cmp(&a)),
            (Self::Number(a), Self::Number(b)) => b.is_some().cmp(&a.is_some()),
            (Self::Place(_), Self::Number(_)) | (Self::Number(_), Self::Place(_)) => {
                unreachable!("all keys are of one column")
            }
        }
    }
}

fn key(device: &Device, ordinal: usize, column: Column, now: i64) -> Key {
    match column {
        Column::Name => Key::Place(ordinal),
        Column::State => Key::Number(device.state.map(|state| f64::from(state as u8))),
        Column::Metric(metric) => Key::Number(metric.value_of(device, now)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cluster(loads: &[Option<f64>]) -> Model {
        let device = |at: usize| meikyo_live::Device {
            name: format!("node{at:02}"),
            role: "host",
            group: Some(format!("rack{}", at % 3)),
            agent: None,
        };
        let mut model = Model::new((0..loads.len()).map(device));
        for (device, load) in model.devices.iter_mut().zip(loads) {
            device.load = *load;
        }
        model
    }

    fn order(reversed: bool, grouped: bool, filter: &str) -> Order {
        Order { column: Column::Metric(Metric::Load), reversed, grouped, filter: filter.into() }
    }

    proptest! {
        #[test]
        fn every_device_stands_once_in_order_and_the_unknown_last(
            loads in prop::collection::vec(prop::option::of(0.0..100.0), 0..40),
            reversed: bool,
            grouped: bool,
        ) {
            let model = cluster(&loads);
            let rows = ordered(&model, &order(reversed, grouped, ""), 0);
            let mut sorted = rows.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..loads.len()).collect::<Vec<_>>());
            for pair in rows.windows(2) {
                let (a, b) = (pair[0], pair[1]);
                if grouped && a % 3 != b % 3 {
                    prop_assert!(a % 3 < b % 3);
                    continue;
                }
                match (loads[a], loads[b]) {
                    (Some(a), Some(b)) => {
                        let in_order = if reversed { a <= b } else { a >= b };
                        prop_assert!(in_order, "{} before {}", a, b);
                    }
                    (None, Some(_)) => prop_assert!(false, "{a} is not known and stands before {b}"),
                    (Some(_), None) => {}
                    (None, None) => prop_assert!(a < b),
                }
            }
        }

        #[test]
        fn a_filter_keeps_exactly_those_that_hold_it(part in "[0-9]{1,2}") {
            let model = cluster(&[Some(1.0); 25]);
            let kept = ordered(&model, &order(false, false, &part), 0);
            for (ordinal, device) in model.devices.iter().enumerate() {
                let holds = device.name.contains(&part) || device.group.contains(&part);
                prop_assert_eq!(kept.contains(&ordinal), holds);
            }
        }
    }

    #[test]
    fn filters_know_groups_case_and_patterns() {
        let model = cluster(&[None; 12]);
        let count = |filter: &str| ordered(&model, &order(false, false, filter), 0).len();
        assert_eq!(count("RACK1"), 4);
        assert_eq!(count("node0?"), 10);
        assert_eq!(count("*1"), 2 + 4 - 1);
        assert_eq!(count("nothing"), 0);
    }

    #[test]
    fn columns_go_round() {
        let mut column = Column::Name;
        for _ in 0..Column::ALL.len() {
            assert_eq!(column.neighbour(true).neighbour(false), column);
            column = column.neighbour(true);
        }
        assert_eq!(column, Column::Name);
    }
}
