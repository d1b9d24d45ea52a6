//! The file format of speedscope (github.com/jlfwong/speedscope, `file-format-spec.ts`).

use std::io::{self, Write as _};

use serde_json::json;

use super::{Hashing, Met, Placed};
use crate::reading::Reading;
use crate::reading::stacks::{Numbered, index};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes a profile for each thread, whose samples follow each other; what lies between them is left out,
/// since the thread did not run.
pub(super) fn write(
    reading: &Reading<'_>,
    hashing: &Hashing,
    met: &Met,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut frames = Numbered::new();
    let mut frame = |place| frames.number(&hashing.frame(reading.frame(place)));
    let of_places: Vec<u32> = met.stacks.places().iter().map(&mut frame).collect();
    let frames: Vec<_> = frames
        .all()
        .iter()
        .map(|(name, file)| match &**file {
            "" => json!({ "name": &**name }),
            file => json!({ "name": &**name, "file": file }),
        })
        .collect();
    let mut out = io::BufWriter::new(out);
    write!(out, "{{\"$schema\":{},\"exporter\":\"meikyo\",", json!(SCHEMA))?;
    write!(out, "\"shared\":{{\"frames\":{}}},\"profiles\":[", json!(frames))?;
    let unit = if met.is_timed { "nanoseconds" } else { "none" };
    let weight = |sample: &Placed| if met.is_timed { sample.period_ns } else { 1 };
    for (at, of_thread) in met.in_time.chunk_by(|one, other| one.ran == other.ran).enumerate() {
        let ran = of_thread.first().map(|sample| &met.ran.all()[index(sample.ran)]);
        let ran = ran.expect("a chunk has samples");
        let name = format!("{} {} on {}", ran.called, ran.id, ran.host);
        let end: u64 = of_thread.iter().map(weight).sum();
        let head = json!({ "type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": end });
        let head = head.to_string();
        let head = head.strip_suffix('}').expect("an object ends so");
        write!(out, "{}{head},\"samples\":[", if at == 0 { "" } else { "," })?;
        for (at, sample) in of_thread.iter().enumerate() {
            let stack = met.stacks.stack(sample.stack).iter().rev();
            let stack: Vec<u32> = stack.map(|&place| of_places[index(place)]).collect();
            write!(out, "{}{}", if at == 0 { "" } else { "," }, json!(stack))?;
        }
        write!(out, "],\"weights\":[")?;
        for (at, sample) in of_thread.iter().enumerate() {
            write!(out, "{}{}", if at == 0 { "" } else { "," }, weight(sample))?;
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")?;
    out.flush()
}
