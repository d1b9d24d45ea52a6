//! Values of rows as what Prometheus takes by remote write, version 1.0: protocol buffers in Snappy's block
//! format.
//!
//! A series is called as in `/metrics`, in the same units, with the labels of its row and the recording. What
//! `/metrics` does not have, samples of profiles, events and texts, is left out. Times are milliseconds.
//!
//! Prometheus takes the values of a series in the order of their times, unless its configuration allows
//! others (`out_of_order_time_window`), and refuses a request with one that is too old as a whole. So what is
//! older than something that was sent before is put into a request of its own ([`Body::take`]), and a refused
//! request is sent in two halves, split by time, until it is of one instant ([`Part::halves`]).

use std::collections::BTreeMap;

use meikyo_live::values::Value;
use meikyo_live::{drawable, label_names};
use meikyo_recording::TableSchema;
use meikyo_recording::schema::Role;

use super::snappy::{compressed, put_varint};
use crate::metrics::naming::{Exported, exported, plain};

/// Series that are told apart; beyond it all are forgotten, and what comes late is found out by Prometheus.
const SERIES_MAX: usize = 1 << 20;

/// What becomes of a column.
#[derive(Debug)]
enum Place {
    Time,
    Label(String),
    Value(Exported),
    Nothing,
}

/// The values of a table's rows.
#[derive(Debug)]
pub(super) struct Series {
    places: Vec<Place>,
    recording: String,
}

impl Series {
    /// Those of a table of a recording; `None` when it has none that Prometheus is told.
    pub(super) fn new(table: &TableSchema, recording: &str) -> Option<Self> {
        let labels = label_names(table);
        let is_told = match table.role() {
            Role::Readings | Role::Answers | Role::Clocks => !labels.is_empty(),
            Role::Health => true,
            Role::Requests | Role::Events | Role::Findings | Role::Samples | Role::Context => false,
        };
        if !is_told {
            return None;
        }
        let places = table.columns.iter().map(|column| {
            if column.name == "time" {
                Place::Time
            } else if labels.contains(&column.name) {
                Place::Label(plain(&column.name))
            } else if drawable(table, &column.name).is_ok() {
                Place::Value(exported(&table.name, column))
            } else {
                Place::Nothing
            }
        });
        let places: Vec<_> = places.collect();
        let has_values = places.iter().any(|place| matches!(place, Place::Value(_)));
        has_values.then(|| Self { places, recording: recording.to_owned() })
    }

    /// Adds the values of a row, whose value in each column `value` gives.
    pub(super) fn push<'a>(&self, body: &mut Body, value: impl Fn(usize) -> Value<'a>) {
        let mut labels = vec![("recording", self.recording.clone())];
        let mut at_ms = 0;
        for (position, place) in self.places.iter().enumerate() {
            match (place, value(position)) {
                (Place::Time, Value::Time(at)) => at_ms = at.as_nanos().div_euclid(1_000_000),
                (Place::Label(name), Value::Text(word)) => labels.push((name, word.to_owned())),
                (Place::Label(name), Value::Unsigned(number)) => {
                    labels.push((name, number.to_string()));
                }
                _ => {}
            }
        }
        for (position, place) in self.places.iter().enumerate() {
            if let Place::Value(of) = place
                && let Some(number) = number_of(&value(position))
            {
                body.push(&of.name, &labels, at_ms, of.in_base_unit(number));
            }
        }
    }
}

/// A quantity as the floating-point number that Prometheus stores.
#[expect(clippy::cast_precision_loss, reason = "Prometheus has floating-point numbers only")]
fn number_of(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Unsigned(number) => Some(*number as f64),
        Value::Signed(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        Value::Missing | Value::Time(_) | Value::Text(_) => None,
    }
}

/// A value of a series, which is known by its labels as they are encoded.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    series: usize,
    at_ms: i64,
    value: f64,
}

/// Values that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// The number of a series by its labels, encoded.
    numbers: BTreeMap<Vec<u8>, usize>,
    labels: Vec<Vec<u8>>,
    /// The greatest time of each series, ms.
    newest: Vec<i64>,
    in_order: Vec<Sample>,
    late: Vec<Sample>,
}

impl Body {
    /// Octets of what waits, about.
    pub(super) fn len(&self) -> usize {
        (self.in_order.len() + self.late.len()) * 24
    }

    fn push(&mut self, name: &str, labels: &[(&str, String)], at_ms: i64, value: f64) {
        let mut sorted: Vec<(&str, &str)> = vec![("__name__", name)];
        // A label without a text is none.
        let labels = labels.iter().filter(|(_, text)| !text.is_empty());
        sorted.extend(labels.map(|(name, text)| (*name, &**text)));
        sorted.sort_unstable();
        sorted.dedup_by_key(|(name, _)| *name);
        let mut encoded = Vec::new();
        for (name, text) in sorted {
            let mut label = Vec::new();
            put_octets(&mut label, 1, name.as_bytes());
            put_octets(&mut label, 2, text.as_bytes());
            put_octets(&mut encoded, 1, &label);
        }
        let series = match self.numbers.get(&encoded) {
            Some(&series) => series,
            None => {
                self.labels.push(encoded.clone());
                self.newest.push(i64::MIN);
                self.numbers.insert(encoded, self.labels.len() - 1);
                self.labels.len() - 1
            }
        };
        let sample = Sample { series, at_ms, value };
        let newest = &mut self.newest[series];
        // Of several values of an instant Prometheus has room for the first.
        if at_ms == *newest {
            return;
        }
        if at_ms > *newest {
            *newest = at_ms;
            self.in_order.push(sample);
        } else {
            self.late.push(sample);
        }
    }

    /// What waits, as requests: what is in order, and what is not.
    pub(super) fn take(&mut self) -> Vec<Part> {
        let parts = [std::mem::take(&mut self.in_order), std::mem::take(&mut self.late)];
        let parts = parts.into_iter().filter(|samples| !samples.is_empty());
        let parts = parts.map(|mut samples| {
            samples.sort_by_key(|sample| (sample.series, sample.at_ms));
            let mut of = Vec::new();
            for sample in samples {
                let is_same = of
                    .last()
                    .is_some_and(|(series, _): &(usize, Vec<(i64, f64)>)| *series == sample.series);
                if !is_same {
                    of.push((sample.series, Vec::new()));
                }
                if let Some((_, values)) = of.last_mut() {
                    values.push((sample.at_ms, sample.value));
                }
            }
            let labels = &self.labels;
            Part(of.into_iter().map(|(series, of)| (labels[series].clone(), of)).collect())
        });
        let parts = parts.collect();
        if self.labels.len() > SERIES_MAX {
            *self = Self::default();
        }
        parts
    }
}

/// Values of a series with their times in ms.
type Samples = Vec<(i64, f64)>;

/// A request: series by their labels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part(Vec<(Vec<u8>, Samples)>);

impl Part {
    /// How many there are, of all series together.
    pub(super) fn values(&self) -> u64 {
        self.0.iter().map(|(_, values)| values.len() as u64).sum()
    }

    /// What is posted.
    pub(super) fn octets(&self) -> Vec<u8> {
        let mut request = Vec::new();
        for (labels, values) in &self.0 {
            let mut series = labels.clone();
            for (at_ms, value) in values {
                let mut sample = vec![1 << 3 | 1];
                sample.extend_from_slice(&value.to_le_bytes());
                sample.push(2 << 3);
                put_varint(&mut sample, at_ms.cast_unsigned());
                put_octets(&mut series, 2, &sample);
            }
            put_octets(&mut request, 1, &series);
        }
        compressed(&request)
    }

    /// The earlier and the later half; `None` when all is of one instant.
    pub(super) fn halves(&self) -> Option<[Self; 2]> {
        let mut times: Vec<i64> =
            self.0.iter().flat_map(|(_, values)| values.iter().map(|(at, _)| *at)).collect();
        times.sort_unstable();
        times.dedup();
        let middle = *times.get(times.len() / 2).filter(|_| times.len() > 1)?;
        Some([true, false].map(|is_earlier| {
            let halves = self.0.iter().map(|(labels, values)| {
                let of_half = values.iter().filter(|(at, _)| (*at < middle) == is_earlier);
                (labels.clone(), of_half.copied().collect::<Samples>())
            });
            Self(halves.filter(|(_, values)| !values.is_empty()).collect())
        }))
    }
}

/// Appends a field of octets.
fn put_octets(out: &mut Vec<u8>, field: u64, octets: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, octets.len() as u64);
    out.extend_from_slice(octets);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(times: &[i64]) -> Body {
        let mut body = Body::default();
        for at in times {
            body.push(
                "m",
                &[("device", "a".into()), ("empty", String::new())],
                *at,
                std::f64::consts::PI,
            );
        }
        body
    }

    #[test]
    fn a_request_is_what_the_protocol_says() {
        let parts = body(&[3]).take();
        // By hand from remote.proto and types.proto; literals of Snappy only, since nothing comes again.
        let length = |text: &str| u8::try_from(text.len()).unwrap();
        let label = |name: &str, text: &str| {
            [&[10, length(name)], name.as_bytes(), &[18, length(text)], text.as_bytes()].concat()
        };
        let (name, device) = (label("__name__", "m"), label("device", "a"));
        let mut series = vec![10, 13];
        series.extend(name);
        series.extend([10, 11]);
        series.extend(device);
        series.extend([18, 11, 9]);
        series.extend(std::f64::consts::PI.to_le_bytes());
        series.extend([16, 3]);
        let mut request = vec![10, u8::try_from(series.len()).unwrap()];
        request.extend(series);
        let octets = parts[0].octets();
        assert_eq!(usize::from(octets[0]), request.len());
        assert_eq!(octets[2..], request[..]);
    }

    #[test]
    fn what_is_older_than_what_was_sent_goes_by_itself() {
        let mut body = body(&[1, 2, 5, 3, 5, 6]);
        let parts = body.take();
        let times = |part: &Part| part.0[0].1.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        assert_eq!(parts.iter().map(times).collect::<Vec<_>>(), [vec![1, 2, 5, 6], vec![3]]);
        let [earlier, later] = parts[0].halves().unwrap();
        assert_eq!((times(&earlier), times(&later)), (vec![1, 2], vec![5, 6]));
        assert_eq!(parts[1].halves(), None);
        assert_eq!(body.take(), []);
    }
}
