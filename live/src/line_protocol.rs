//! Rows as lines of `InfluxDB`'s line protocol, version 1, which several other databases take, too.
//!
//! A table is a measurement. Its labels are tags, everything else is a field, `time` is the timestamp in
//! nanoseconds. A missing value is left out, and so is a row that has nothing but labels. What the protocol
//! cannot say is written as near to it as it goes:
//!
//! - its integers have 64 bits and a sign: an unsigned value from 2^63 on, such as an address of the kernel,
//!   stands as the negative number of the same bits;
//! - numbers that are none (NaN) and infinite ones are left out;
//! - tags have no line breaks and do not end with a backslash: a space and a slash stand instead;
//! - two points of the same tags and time would be one: where rows of a block agree in both, those behind
//!   the first have the tag `row` with 1, 2 and so on.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use meikyo_recording::schema::Role;
use meikyo_recording::{ColumnKind, Meaning, TableSchema};

use crate::values::Value;

/// The column of samples that says which CPU ran.
const CPU: &str = "cpu";

/// Points that are remembered of a block. Files have more rows, in which points that are one stand behind
/// each other.
const POINTS_MAX: usize = 65_536;

/// How rows of samples are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleLayout {
    /// One measurement with the CPU as a tag.
    OneMeasurement,
    /// A measurement for each CPU: `CPU0`, `CPU1` and so on.
    PerCpu,
}

/// What becomes of a column.
#[derive(Debug)]
enum Place {
    Time,
    /// The name as it is written.
    Tag(String),
    Field(String),
    /// The number behind `CPU`.
    Measurement,
}

/// The lines of a table's rows.
#[derive(Debug)]
pub struct Lines {
    measurement: String,
    /// A tag that all rows have, as it is written.
    cluster: String,
    places: Vec<Place>,
    /// Points of the block, as they are written up to their fields, and how many there were of each.
    seen: BTreeMap<(i64, String), u64>,
}

impl Lines {
    /// Lines of a table's rows, all columns in its order.
    pub fn new(table: &TableSchema, layout: SampleLayout) -> Self {
        let is_samples = table.role() == Role::Samples;
        let places = table.columns.iter().map(|column| {
            let name = escaped(&column.name);
            match column.kind {
                ColumnKind::Time => Place::Time,
                _ if is_samples && column.name == CPU => match layout {
                    SampleLayout::OneMeasurement => Place::Tag(name),
                    SampleLayout::PerCpu => Place::Measurement,
                },
                _ if column.meaning == Meaning::Label => Place::Tag(name),
                _ => Place::Field(name),
            }
        });
        Self {
            measurement: escaped_measurement(&table.name),
            cluster: String::new(),
            places: places.collect(),
            seen: BTreeMap::new(),
        }
    }

    /// The same of rows of a cluster, which is a tag of each.
    pub fn of_cluster(mut self, name: &str) -> Self {
        self.cluster.clear();
        push_tag(&mut self.cluster, "cluster", Value::Text(name));
        self
    }

    /// Begins a block of rows: points are told apart within one.
    pub fn begin_block(&mut self) {
        self.seen.clear();
    }

    /// Appends the line of a row, whose value in each column `value` gives; whether there was anything to
    /// write.
    ///
    /// # Panics
    /// Never: writing to a text cannot fail.
    pub fn push<'a>(&mut self, text: &mut String, value: impl Fn(usize) -> Value<'a>) -> bool {
        let begin = text.len();
        let cpu = self.places.iter().position(|place| matches!(place, Place::Measurement));
        match cpu.map(&value) {
            Some(Value::Unsigned(cpu)) => write(text, format_args!("CPU{cpu}")),
            _ => text.push_str(&self.measurement),
        }
        text.push_str(&self.cluster);
        let mut time = 0;
        for (position, place) in self.places.iter().enumerate() {
            match (place, value(position)) {
                (Place::Time, Value::Time(at)) => time = at.as_nanos(),
                (Place::Tag(name), of) => push_tag(text, name, of),
                _ => {}
            }
        }
        let point = (time, text[begin..].to_owned());
        if self.seen.len() >= POINTS_MAX && !self.seen.contains_key(&point) {
            self.seen.clear();
        }
        let before = self.seen.entry(point).or_insert(0);
        if *before > 0 {
            write(text, format_args!(",row={before}"));
        }
        *before += 1;
        let mut between = ' ';
        for (position, place) in self.places.iter().enumerate() {
            if let Place::Field(name) = place
                && push_field(text, between, name, value(position))
            {
                between = ',';
            }
        }
        if between == ' ' {
            text.truncate(begin);
            return false;
        }
        write(text, format_args!(" {time}\n"));
        true
    }
}

fn write(text: &mut String, of: std::fmt::Arguments<'_>) {
    text.write_fmt(of).expect("writing to a string cannot fail");
}

/// A tag; one that is missing or empty is left out, since the protocol has no such tag.
fn push_tag(text: &mut String, name: &str, value: Value<'_>) {
    match value {
        Value::Missing | Value::Text("") => {}
        Value::Text(word) => {
            write(text, format_args!(",{name}={}", escaped(word)));
        }
        Value::Unsigned(number) => write(text, format_args!(",{name}={number}")),
        Value::Signed(number) => write(text, format_args!(",{name}={number}")),
        Value::Real(number) => write(text, format_args!(",{name}={number}")),
        Value::Time(at) => write(text, format_args!(",{name}={}", at.as_nanos())),
    }
}

/// A field; whether it is there.
fn push_field(text: &mut String, between: char, name: &str, value: Value<'_>) -> bool {
    match value {
        Value::Missing => return false,
        Value::Real(number) if !number.is_finite() => return false,
        Value::Text(word) => {
            write(text, format_args!("{between}{name}=\""));
            for letter in word.chars() {
                if matches!(letter, '"' | '\\') {
                    text.push('\\');
                }
                text.push(letter);
            }
            text.push('"');
        }
        Value::Unsigned(number) => {
            write(text, format_args!("{between}{name}={}i", number.cast_signed()));
        }
        Value::Signed(number) => write(text, format_args!("{between}{name}={number}i")),
        Value::Real(number) => write(text, format_args!("{between}{name}={number}")),
        Value::Time(at) => write(text, format_args!("{between}{name}={}i", at.as_nanos())),
    }
    true
}

/// A name or value of a tag, or the name of a field; a control character is a space.
fn escaped(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    for letter in word.chars() {
        let letter = if letter.is_control() { ' ' } else { letter };
        if matches!(letter, ',' | '=' | ' ') {
            text.push('\\');
        }
        text.push(letter);
    }
    // What follows would be part of it.
    if text.ends_with('\\') {
        text.pop();
        text.push('/');
    }
    text
}

/// The name of a measurement, in which `=` stands for itself.
fn escaped_measurement(name: &str) -> String {
    escaped(name).replace("\\=", "=")
}

#[cfg(test)]
mod tests {
    use meikyo_recording::Column;
    use meikyo_units::WallTime;

    use super::*;

    fn table(role: Role) -> TableSchema {
        let columns = vec![
            Column::new("host", ColumnKind::Symbol, Meaning::Label, ""),
            Column::new("cpu", ColumnKind::U64, Meaning::Detail, ""),
            Column::new("address", ColumnKind::U64, Meaning::Detail, ""),
            Column::new("load 1", ColumnKind::F64, Meaning::Gauge, ""),
            Column::new("stack", ColumnKind::Text, Meaning::Detail, ""),
        ];
        TableSchema::new("samples", "", columns).for_role(role)
    }

    /// The lines of rows of the table, `None` where a row has none.
    fn lines(role: Role, layout: SampleLayout, rows: &[[Value<'_>; 6]]) -> Vec<Option<String>> {
        let mut lines = Lines::new(&table(role), layout);
        let line = |row: &[Value<'_>; 6]| {
            let mut text = String::new();
            lines.push(&mut text, |column| row[column]).then_some(text)
        };
        rows.iter().map(line).collect()
    }

    const TIME: Value<'_> = Value::Time(WallTime::from_nanos(1_700_000_000_123_456_789));

    #[test]
    fn words_and_numbers_are_written_so_that_they_are_read_back() {
        use Value::{Missing, Real, Text, Unsigned};
        let kernel = Unsigned(0xffff_ffff_8100_0000);
        let odd = "a,b=c d\"e\\";
        let rows = [
            [TIME, Text("node 1"), Unsigned(3), Unsigned(7), Real(0.5), Text("5001;6002")],
            [TIME, Text(odd), Missing, kernel, Real(f64::NAN), Text(odd)],
            [TIME, Text("a\nb"), Unsigned(1), Missing, Missing, Missing],
            [TIME, Text(""), Unsigned(1), Missing, Real(f64::INFINITY), Text("")],
        ];
        let time = "1700000000123456789";
        let written = lines(Role::Samples, SampleLayout::OneMeasurement, &rows);
        let expected = [
            Some(format!(
                "samples,host=node\\ 1,cpu=3 address=7i,load\\ 1=0.5,stack=\"5001;6002\" {time}\n"
            )),
            Some(format!(
                "samples,host=a\\,b\\=c\\ d\"e/ address=-2130706432i,stack=\"a,b=c d\\\"e\\\\\" {time}\n"
            )),
            None,
            Some(format!("samples,cpu=1 stack=\"\" {time}\n")),
        ];
        assert_eq!(written, expected);
    }

    #[test]
    fn each_cpu_is_a_measurement_where_that_is_wanted_and_of_samples_only() {
        use Value::{Missing, Text, Unsigned};
        let row = [TIME, Text("a"), Unsigned(12), Unsigned(7), Missing, Missing];
        let of = |role| lines(role, SampleLayout::PerCpu, &[row])[0].clone().unwrap();
        assert_eq!(of(Role::Samples), "CPU12,host=a address=7i 1700000000123456789\n");
        let other = "samples,host=a cpu=12i,address=7i 1700000000123456789\n";
        assert_eq!(of(Role::Context), other);
    }

    #[test]
    fn rows_that_would_be_one_point_are_told_apart() {
        use Value::{Missing, Text, Unsigned};
        let row =
            |host, address| [TIME, Text(host), Unsigned(0), Unsigned(address), Missing, Missing];
        let rows = [row("a", 1), row("b", 2), row("a", 3), row("a", 4)];
        let written = lines(Role::Samples, SampleLayout::OneMeasurement, &rows);
        let tags: Vec<_> =
            written.iter().map(|line| line.as_ref().unwrap().split(' ').next().unwrap()).collect();
        let tag = ["host=a,cpu=0", "host=b,cpu=0", "host=a,cpu=0,row=1", "host=a,cpu=0,row=2"];
        assert_eq!(tags, tag.map(|tag| format!("samples,{tag}")));
    }
}
