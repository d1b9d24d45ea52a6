//! `profile.proto` of pprof (github.com/google/pprof, `proto/profile.proto`).
//!
//! Samples with the same process and stack are one; their values are how many they are, and the CPU time
//! that they stand for where the recording says how often was sampled.

use std::io;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::protobuf::Message;
use super::{Hashing, Met};
use crate::reading::stacks::{Numbered, index};
use crate::reading::{Name, Reading, Where};

/// Fields of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const TIME_NANOS: u64 = 9;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
}

/// The texts that everything else names by number; the first one is empty.
struct Texts(Numbered<Name>);

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        self.0.number(&text.into()).into()
    }

    /// The message `ValueType`: what is counted, and its unit.
    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.number(kind)).number(2, self.number(unit));
        message
    }
}

pub(super) fn write(
    reading: &Reading<'_>,
    hashing: &Hashing,
    met: &Met,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut texts = Texts(Numbered::new());
    texts.number("");
    let mut message = Message::default();
    message.message(profile::SAMPLE_TYPE, &texts.value_type("samples", "count"));
    if met.is_timed {
        message.message(profile::SAMPLE_TYPE, &texts.value_type("cpu", "nanoseconds"));
    }
    for (&(ran, stack), &[samples, time_ns]) in &met.counts {
        let mut sample = Message::default();
        let places = met.stacks.stack(stack).iter().map(|&place| u64::from(place) + 1);
        let values = [samples, time_ns].into_iter().take(if met.is_timed { 2 } else { 1 });
        sample.numbers(1, places).numbers(2, values);
        let ran = &met.ran.all()[index(ran)];
        for (key, text) in [("host", &ran.host), ("process", &ran.called)] {
            let mut label = Message::default();
            label.number(1, texts.number(key)).number(2, texts.number(text));
            sample.message(3, &label);
        }
        let mut label = Message::default();
        label.number(1, texts.number("pid")).number(3, ran.id);
        sample.message(3, &label);
        message.message(profile::SAMPLE, &sample);
    }
    places((reading, hashing), met.stacks.places(), &mut texts, &mut message);
    let (first, last) = met.span.unwrap_or((0, 0));
    message.number(profile::TIME_NANOS, first.cast_unsigned());
    message.number(profile::DURATION_NANOS, (last - first).cast_unsigned());
    let period = met.counts.values().fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
    if met.is_timed && period[0] > 0 {
        message.message(profile::PERIOD_TYPE, &texts.value_type("cpu", "nanoseconds"));
        message.number(profile::PERIOD, period[1] / period[0]);
    }
    for text in texts.0.all() {
        message.octets(profile::STRING_TABLE, text.as_bytes());
    }
    let mut gzip = GzEncoder::new(out, Compression::default());
    io::Write::write_all(&mut gzip, message.encoded())?;
    gzip.finish().map(drop)
}

/// Where samples were: a location a place, in a mapping for each file.
fn places(
    (reading, hashing): (&Reading<'_>, &Hashing),
    places: &[Where],
    texts: &mut Texts,
    message: &mut Message,
) {
    let mut functions: Numbered<(Name, Name)> = Numbered::new();
    let mut files: Numbered<(Name, Option<Name>)> = Numbered::new();
    for (at, place) in places.iter().enumerate() {
        let (name, file) = hashing.frame(reading.frame(place));
        let (address, build_id) = match place {
            Where::File(place) => (place.offset, place.file.build_id.clone()),
            Where::Kernel(Ok(address)) => (*address, None),
            Where::Kernel(Err(_)) | Where::Made(_) | Where::Nowhere => (0, None),
        };
        let mapping = files.number(&(file.clone(), hashing.build_id(build_id)));
        let mut line = Message::default();
        line.number(1, u64::from(functions.number(&(name, file))) + 1);
        let mut location = Message::default();
        location.number(1, at as u64 + 1).number(2, u64::from(mapping) + 1).number(3, address);
        location.message(4, &line);
        message.message(profile::LOCATION, &location);
    }
    for (at, (file, build_id)) in files.all().iter().enumerate() {
        // Offsets in the file stand for addresses; functions are named, so that nobody looks them up anew.
        let mut mapping = Message::default();
        mapping.number(1, at as u64 + 1).number(3, u64::MAX).number(5, texts.number(file));
        mapping.number(6, texts.number(build_id.as_deref().unwrap_or_default())).number(7, 1);
        message.message(profile::MAPPING, &mapping);
    }
    for (at, (name, file)) in functions.all().iter().enumerate() {
        let mut function = Message::default();
        let name = texts.number(name);
        function.number(1, at as u64 + 1).number(2, name).number(3, name);
        function.number(4, texts.number(file));
        message.message(profile::FUNCTION, &function);
    }
}
