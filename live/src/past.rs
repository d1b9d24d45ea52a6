//! A past read at once: the rows of several tables between two instants, as the steps in which they
//! came, for a viewer that keeps the pace himself.

use std::ops::Range;
use std::sync::Arc;

use meikyo_recording::rate::Freshness;
use meikyo_recording::{ReadError, Selection};
use meikyo_units::WallTime;

use crate::frames::{Frame, Step};
use crate::freshness::freshness;
use crate::opened::Opened;
use crate::rates::Values;
use crate::readings::Polls;
use crate::stored::{Beside, Ordered, beside, ordered};
use crate::wish::Wish;

/// Rows whose due instants lie in one such span are one step, ns.
const STEP: i64 = 20_000_000;

/// Where a past was read to, and what is known of the counters there.
#[derive(Debug)]
pub(crate) struct Past {
    opened: Arc<Opened>,
    values: Vec<Values>,
    polls: Polls,
    freshness: Freshness,
    at: WallTime,
}

/// One table's rows in order of time, and how many of them were handed out.
struct OfTable {
    rows: Ordered,
    done: usize,
}

impl Past {
    /// The past from an instant on; counters have no rates before their first edges behind it.
    pub(crate) fn begin(
        opened: &Arc<Opened>,
        wishes: &[Wish],
        from: WallTime,
    ) -> Result<Self, ReadError> {
        Ok(Self {
            opened: Arc::clone(opened),
            values: wishes.iter().cloned().map(Values::new).collect(),
            polls: Polls::default(),
            freshness: freshness(opened)?,
            at: from,
        })
    }

    /// What came from where it was read to up to `to`, exclusive.
    pub(crate) fn read(&mut self, to: WallTime) -> Result<Vec<Step>, ReadError> {
        let (from, opened) = (self.at, Arc::clone(&self.opened));
        if to <= from {
            return Ok(Vec::new());
        }
        let within = |table: &str, columns: &[&str]| Selection {
            columns: Some(columns.iter().map(|&column| column.to_owned()).collect()),
            from: Some(from),
            to: Some(to),
            ..Selection::all(table)
        };
        let Beside { mut polls, mut intervals, mut events } = beside(&opened, within)?;
        let mut tables = Vec::new();
        for values in &self.values {
            tables.push(OfTable { rows: ordered(&opened, values.wish(), within)?, done: 0 });
        }
        self.at = to;
        polls.sort_by_key(|(due, _, _)| *due);
        intervals.sort_by_key(|interval| interval.time);
        events.sort_by_key(|event| event.time);
        let mut steps = Vec::new();
        let (mut polls_at, mut intervals_at, mut events_at) = (0, 0, 0);
        loop {
            let firsts = [
                polls.get(polls_at).map(|(due, _, _)| *due),
                intervals.get(intervals_at).map(|interval| interval.time),
                events.get(events_at).map(|event| event.time),
            ];
            let of_tables = tables.iter().filter_map(|table| table.rows.due(table.done));
            let Some(first) = of_tables.chain(firsts.into_iter().flatten()).min() else {
                return Ok(steps);
            };
            let end = first.saturating_add(STEP);
            self.polls.begin_chunk();
            for &(due, device, poll) in &polls[pass(&polls, &mut polls_at, |row| row.0 < end)] {
                self.polls.add(device, due, poll);
            }
            let of_step = pass(&intervals, &mut intervals_at, |interval| interval.time < end);
            let events_of_step = pass(&events, &mut events_at, |event| event.time < end);
            steps.push(Step {
                newest: first,
                frames: self.frames(&mut tables, end),
                intervals: intervals[of_step].to_vec(),
                events: events[events_of_step].to_vec(),
            });
        }
    }

    /// The frames of the rows before `end`.
    fn frames(&mut self, tables: &mut [OfTable], end: i64) -> Vec<Frame> {
        let mut frames = Vec::new();
        for (values, table) in self.values.iter_mut().zip(tables) {
            let OfTable { rows: Ordered { readings, order, .. }, done } = table;
            let rows = pass(order, done, |&row| readings.due[row] < end);
            let readings = readings.picked(&order[rows]);
            frames.push(values.frame(&self.opened, &readings, &self.polls, &self.freshness));
        }
        frames
    }
}

/// Moves a cursor past the rows of which something holds.
fn pass<T>(rows: &[T], at: &mut usize, holds: impl Fn(&T) -> bool) -> Range<usize> {
    let begin = *at;
    while rows.get(*at).is_some_and(&holds) {
        *at += 1;
    }
    begin..*at
}
