//! A whole recording against the farm's truth file, a few seconds of it at a time.

mod matching;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use meikyo_console::failure::Failure;
use meikyo_recording::Recording;
use meikyo_snmp::farm::truth::{self, TruthObject, TruthRecord, TruthRequest, flag};
use meikyo_snmp::tables::{State, Table, schema};
use meikyo_units::{Nanos, WallTime};

use crate::reading::{doubles, integers, selection, texts};
use crate::values::{Measured, SLOTS, Values};
use crate::verification::matching::{Answer, Answers, KeptPoll, Slots};

pub(crate) use crate::verification::matching::Verdict;

/// How much of the recording is held at once.
const WINDOW: Nanos = Nanos::from_secs(2);
/// An answer is received at the latest so long after its interval was due: the timeout, and the
/// interval itself.
const AFTER_DUE_MAX: Nanos = Nanos::from_secs(3);

/// The agent of every device, by the device's name.
pub(crate) type Agents = BTreeMap<String, usize>;

/// Compares every kept value with what its agent answered.
pub(crate) fn compare(
    recording: &Path,
    truth: &Path,
    values: Values,
    agents: &Agents,
) -> Result<Verdict, Failure> {
    let recording = Recording::open(recording)?;
    let mut verdict = Verdict::default();
    let Some((first, last)) = recording.span("polls")? else { return Ok(verdict) };
    let mut given = Given::open(truth, agents)?;
    let mut begin = first.floor(WINDOW);
    while begin <= last {
        let end = begin + WINDOW;
        given.read_until(end + AFTER_DUE_MAX)?;
        let window = Window { recording: &recording, agents, span: (begin, end) };
        for poll in window.polls(values, &mut verdict)?.values() {
            given.answers.compare(poll, &mut verdict);
        }
        given.answers.forget_before(end);
        begin = end;
    }
    Ok(verdict)
}

/// A list of objects, and which slot each of them belongs to.
type KnownList = (Arc<[TruthObject]>, Vec<Option<usize>>);

/// Answers as they are read from the truth file.
struct Given {
    source: truth::Truth<std::io::BufReader<std::fs::File>>,
    answers: Answers,
    /// The list of the request read last.
    list: Option<KnownList>,
    /// Of the record read last.
    at: WallTime,
}

impl Given {
    fn open(path: &Path, agents: &Agents) -> Result<Self, Failure> {
        let count = agents.values().max().map_or(0, |last| last + 1);
        let (source, answers) = (truth::read(path)?, Answers::new(count));
        Ok(Self { source, answers, list: None, at: WallTime::default() })
    }

    /// Reads on until the answers of `until` are in; records come in the order of their time.
    fn read_until(&mut self, until: WallTime) -> Result<(), Failure> {
        while self.at <= until {
            let Some(record) = self.source.next() else { return Ok(()) };
            if let TruthRecord::Request(request) = record? {
                self.at = request.received;
                self.add(&request);
            }
        }
        Ok(())
    }

    fn add(&mut self, request: &TruthRequest) {
        if request.error_status != 0 || request.flags & (flag::LOST | flag::REQUEST_LOST) != 0 {
            return;
        }
        let known = self.list.as_ref().is_some_and(|(list, _)| Arc::ptr_eq(list, &request.objects));
        if !known {
            let slots = request.objects.iter().map(slot_of).collect();
            self.list = Some((Arc::clone(&request.objects), slots));
        }
        let mut values = Slots::default();
        let slots = self.list.iter().flat_map(|(_, slots)| slots);
        for (slot, &answered) in slots.zip(&request.answered) {
            if let Some(slot) = *slot {
                values[slot] = Some(SLOTS[slot].kept(answered));
            }
        }
        let Ok(agent) = usize::try_from(request.agent) else { return };
        let (at, uptime_cs) = (request.received, request.uptime_cs);
        self.answers.add(agent, Answer { at, uptime_cs, values });
    }
}

/// Which of the measured values an object is.
fn slot_of(object: &TruthObject) -> Option<usize> {
    SLOTS.iter().position(|measured| measured.is_given_by(&object.oid, &object.subject))
}

/// Some seconds of a recording.
struct Window<'a> {
    recording: &'a Recording,
    agents: &'a Agents,
    span: (WallTime, WallTime),
}

/// Polls by their due instant and their device's name.
type Polls = BTreeMap<(i64, String), KeptPoll>;

impl Window<'_> {
    fn polls(&self, values: Values, verdict: &mut Verdict) -> Result<Polls, Failure> {
        let mut polls = self.answered()?;
        for table in [Table::Interfaces, Table::Storage, Table::Load] {
            let measured: Vec<_> =
                values.list().iter().filter(|value| value.table == table).collect();
            if !measured.is_empty() {
                self.fill(table, &measured, &mut polls, verdict)?;
            }
        }
        Ok(polls)
    }

    /// Polls that were answered, without their values.
    fn answered(&self) -> Result<Polls, Failure> {
        let columns = ["time", "device", "state", "received_us", "uptime_cs"];
        let mut polls = Polls::new();
        for batch in self.recording.scan(&selection(Table::Polls, &columns, Some(self.span)))? {
            let batch = batch?;
            let (times, devices) = (integers(&batch, "time")?, texts(&batch, "device")?);
            let (states, received) = (texts(&batch, "state")?, integers(&batch, "received_us")?);
            let uptimes = integers(&batch, "uptime_cs")?;
            for row in 0..batch.num_rows() {
                let answered = [State::Ok, State::Late].map(State::word);
                let is_answered = states[row].as_deref().is_some_and(|s| answered.contains(&s));
                let (Some(time), Some(device), true) = (times[row], &devices[row], is_answered)
                else {
                    continue;
                };
                let Some(&agent) = self.agents.get(device) else { continue };
                // Whole microseconds, rounded down: the answer came before the next one.
                let received = received[row].unwrap_or(0).saturating_add(1).saturating_mul(1_000);
                let uptime = uptimes[row].unwrap_or(0) & 0xffff_ffff;
                let poll = KeptPoll {
                    agent,
                    due: WallTime::from_nanos(time),
                    received: WallTime::from_nanos(time.saturating_add(received)),
                    uptime_cs: u32::try_from(uptime).expect("only 32 bits are left"),
                    values: Slots::default(),
                };
                polls.insert((time, device.clone()), poll);
            }
        }
        Ok(polls)
    }

    /// Puts the values of a table into their polls; a row without its poll is wrong.
    fn fill(
        &self,
        table: Table,
        measured: &[&Measured],
        polls: &mut Polls,
        verdict: &mut Verdict,
    ) -> Result<(), Failure> {
        let columns: Vec<_> = ["time", "device"]
            .into_iter()
            .chain(measured.iter().map(|measured| measured.column))
            .collect();
        for batch in self.recording.scan(&selection(table, &columns, Some(self.span)))? {
            let batch = batch?;
            let (times, devices) = (integers(&batch, "time")?, texts(&batch, "device")?);
            for measured in measured {
                let values = kept_values(&batch, measured)?;
                let slot = SLOTS.iter().position(|slot| slot == *measured);
                let slot = slot.expect("every measured value has its slot");
                for row in 0..batch.num_rows() {
                    let (Some(time), Some(device)) = (times[row], &devices[row]) else { continue };
                    let Some(value) = values[row] else { continue };
                    match polls.get_mut(&(time, device.clone())) {
                        Some(poll) => poll.values[slot] = Some(value),
                        None => verdict.note_wrong(1, || {
                            let table = &schema(table).name;
                            format!(
                                "wrong: `{table}` has a row of {device} at {time} without its poll"
                            )
                        }),
                    }
                }
            }
        }
        Ok(())
    }
}

/// The values of a column as [`Measured::kept`] gives those of the truth.
fn kept_values(
    batch: &arrow::array::RecordBatch,
    measured: &Measured,
) -> Result<Vec<Option<i64>>, Failure> {
    if measured.table == Table::Load {
        let hundredths = doubles(batch, measured.column)?.into_iter();
        return Ok(hundredths.map(|load| load.map(rounded_hundredths)).collect());
    }
    integers(batch, measured.column)
}

/// A load average in hundredths, as the agent gives it.
#[expect(clippy::cast_possible_truncation, reason = "a load average is far below 2^53")]
fn rounded_hundredths(load: f64) -> i64 {
    (load * 100.0).round() as i64
}
