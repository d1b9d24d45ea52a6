//! The text that `perf script` prints (`tools/perf/Documentation/perf-script.txt` of Linux), a paragraph a
//! sample: who ran, on which CPU, when, and a line for each function, the innermost first.

use std::io::{self, Write as _};

use super::{ExportError, Hashing, Met, Named};
use crate::block::read_stack;
use crate::reading::stacks::index;
use crate::reading::{Goes, Reading};
use crate::wanted::Wanted;

pub(super) fn write(
    reading: &mut Reading<'_>,
    (wanted, hashing): (&Wanted, &Hashing),
    mut met: Met,
    out: &mut dyn io::Write,
) -> Result<(), ExportError> {
    const SECOND_NS: i64 = 1_000_000_000;
    let mut out = io::BufWriter::new(out);
    let frame = |place| hashing.frame(reading.frame(place));
    let frames: Vec<_> = met.stacks.places().iter().map(frame).collect();
    let periods = reading.periods(&wanted.hosts)?;
    let mut failed = None;
    reading.samples(wanted, |reading, seen| {
        let stack = met.stacks.number_of(reading, seen);
        // It came since the first pass; the next export has it.
        let Some(places) = met.stacks.known(stack, frames.len()) else { return Goes::On };
        let called = hashing.name(Named::Process, &reading.called(seen.time, seen.thread()));
        let (seconds, nanos) = (seen.time.div_euclid(SECOND_NS), seen.time.rem_euclid(SECOND_NS));
        let (pid, tid, cpu) = (seen.pid, seen.tid, seen.cpu);
        let period = periods.at(seen).unwrap_or(1);
        let callers = read_stack(seen.stack).unwrap_or_default();
        let addresses = std::iter::once(seen.address).chain(callers);
        let write = || -> io::Result<()> {
            let called = called.replace(char::is_whitespace, "_");
            write!(out, "{called:<16} {pid:>7}/{tid:<7} [{cpu:03}] ")?;
            writeln!(out, "{seconds}.{nanos:09}: {period:>10} cpu-clock: ")?;
            for (&place, address) in places.iter().zip(addresses) {
                let (name, file) = &frames[index(place)];
                writeln!(out, "\t{address:16x} {name} ({file})")?;
            }
            writeln!(out)
        };
        match write() {
            Ok(()) => Goes::On,
            Err(error) => {
                failed = Some(error);
                Goes::NoFurther
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    Ok(out.flush()?)
}
