//! Collectors that stand by for each other: all of them measure the same devices and send what they
//! measure, and the rows of each interval are taken from one of them.
//!
//! A row's `time` is the instant at which its interval was due, a multiple of the interval, and so the same
//! with all collectors. Time is divided into periods ([`periods`]); the rows of a period are taken from its
//! owner, at once and as they come, so that standing by delays nothing. Rows of others are held back, without
//! an acknowledgement, until it is known whether they are wanted:
//!
//! - the owner has told of that time: they are *spare*, and their numbers are accounted for without rows;
//! - the owner is away, or stalls, or has nothing more to tell of that time: it is given to who has rows of it.
//!
//! So the owner of what is newest, the active one, is replaced when it has been away for [`AWAY_MAX`], when
//! the others told of two later intervals and it said nothing for [`STALLED_AFTER`], or when in each of three
//! intervals fewer devices answered it than another one.
//!
//! What was given to whom is stored as rows of `transport_turns` before the rows that it is about, so that a
//! receiver that begins anew knows it ([`Group::restore`]).

mod periods;
mod spans;

use std::collections::BTreeMap;

use meikyo_recording::origin::Ranges;
use meikyo_recording::{
    Arrived, Column, ColumnKind, Meaning, Origin, PackedRows, Source, TableSchema,
};
use meikyo_units::Nanos;

use periods::Periods;
use spans::Spans;

use super::OnDisk;
use crate::gaps::{self, Turn};

/// How long the active one may be away before another one takes its place.
const AWAY_MAX: Nanos = Nanos::SECOND;

/// How long the active one may say nothing while others tell of later intervals.
const STALLED_AFTER: Nanos = Nanos::from_secs(3);

/// Later intervals that another one has told of by then.
const LATER_MIN: u32 = 2;

/// How long what an owner still owes is waited for while nothing of it comes.
const OWED_MAX: Nanos = Nanos::from_secs(5);

/// Intervals in a row that are measured more completely by another one before it takes over, ...
const BETTER_MIN: usize = 3;

/// ... and how long the active one is left at least.
const TERM_MIN: Nanos = Nanos::from_secs(10);

/// Intervals whose answers are remembered for that.
const ANSWERS_MAX: usize = 64;

/// How often it is looked at everything that is held back; what comes is looked at at once.
const SETTLE_EVERY: Nanos = Nanos::from_millis(50);

/// How often it is told once more who is active: what was told long ago may be deleted by retention.
const TELL_EVERY: Nanos = Nanos::from_secs(3_600);

/// How long numbers of spare blocks are collected before they are accounted for, ...
const SPARE_EVERY: Nanos = Nanos::from_secs(10);

/// ... and how many octets of them at most: they take part of the sender's window.
const SPARE_BYTES_MAX: u64 = 2 << 20;

/// The table in which a collector tells how many devices answered in an interval.
const INTERVALS: (&str, &str, &str, &str) = ("intervals", "interval_us", "ok", "late");

/// The table in which people's marks are, which are taken from every collector.
const EVENTS: (&str, &str, &str) = ("events", "event", "mark");

/// What is to be done.
#[derive(Debug)]
pub(super) enum Act {
    /// Note that a span was given to a collector.
    Turn(Turn),
    /// Hand a block, or what is left of one, to the shell.
    Store(PackedRows, Origin),
    /// Account for numbers of blocks of which nothing is stored.
    Spare { sender: String, boot: u64, first: u64, last: u64 },
}

/// Numbers of blocks that others had already.
#[derive(Debug, Default)]
struct Spare {
    numbers: BTreeMap<u64, Ranges>,
    bytes: u64,
    since: Option<Nanos>,
}

/// One of the collectors.
#[derive(Debug, Default)]
struct Member {
    is_here: bool,
    /// Its life, and whether that has told that nothing more comes of it.
    boot: u64,
    has_ended: bool,
    /// Since when it is away, if it is.
    gone_at: Nanos,
    /// When blocks of it came last.
    came_at: Nanos,
    newest: Option<i64>,
    /// Greater times that it told of since blocks of the active one came.
    later: u32,
    tables: Vec<TableSchema>,
    spans: Spans,
    /// What it said to have when it came and has not told yet, and when that became less.
    owed: BTreeMap<u64, Ranges>,
    owed_at: Nanos,
    held: BTreeMap<(u64, u64), PackedRows>,
    held_bytes: u64,
    spare: Spare,
    /// Devices that answered, by due instant and length of the interval.
    answers: BTreeMap<(i64, u64), u64>,
}

/// What becomes of rows.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Every row has its owner's word: each is stored or spare.
    Settled,
    /// It is not known yet.
    Wait,
    /// A span that belongs to another one, who will not tell of it.
    Hole(i64, i64),
}

/// What a stream has of the times of each sender's blocks when it is opened.
#[derive(Debug, Default)]
pub(super) struct KnownTimes {
    /// By sender; beside the spans, what is before which nothing is known of it.
    spans: BTreeMap<String, (Spans, i64)>,
    newest_ns: Option<i64>,
}

impl KnownTimes {
    /// Works out what there is. Of a life whose first blocks are compacted, all is taken for told that is before
    /// the first one that is not; of lives of which all are, what is before everything else of the sender.
    pub(super) fn new(on_disk: &OnDisk) -> Self {
        let own = gaps::tables();
        let is_own = |of: &&Arrived| own.iter().any(|own| own.name == of.table);
        let mut spans: BTreeMap<String, (Spans, i64)> = BTreeMap::new();
        let mut first: BTreeMap<&Source, (u64, i64)> = BTreeMap::new();
        for arrived in on_disk.arrived.iter().filter(|of| !is_own(of)) {
            let Origin { source, first: number, .. } = &arrived.origin;
            let of_sender = spans.entry(source.sender.clone());
            let (spans, before) = of_sender.or_insert_with(|| (Spans::default(), i64::MIN));
            spans.add((source.boot, *number), arrived.times);
            *before = (*before).max(spans.given_up());
            let least = first.entry(source).or_insert((*number, arrived.times.0));
            *least = (*least).min((*number, arrived.times.0));
        }
        for (source, ranges) in on_disk.received.iter() {
            let Some((spans, before)) = spans.get_mut(&source.sender) else { continue };
            match first.get(source) {
                Some((number, from))
                    if *number > 1 && ranges.within(1, number - 1).next().is_some() =>
                {
                    spans.add((source.boot, number - 1), (i64::MIN, *from));
                }
                Some(_) => {}
                None if gaps::is_given_up(source) => {}
                None => {
                    let of_sender = first.iter().filter(|(of, _)| of.sender == source.sender);
                    let earliest = of_sender.map(|(_, (_, from))| *from).min();
                    *before = (*before).max(earliest.map_or(i64::MIN, |from| from - 1));
                }
            }
        }
        Self { spans, newest_ns: on_disk.newest_ns }
    }
}

/// The collectors of one identity, in one stream.
#[derive(Debug)]
pub(super) struct Group {
    identity: String,
    periods: Periods,
    /// What is not later was stored before the receiver began, from whomever.
    stored_until: i64,
    members: BTreeMap<String, Member>,
    begun: Nanos,
    turned_at: Option<Nanos>,
    settled_at: Nanos,
    told_at: Nanos,
    acts: Vec<Act>,
}

impl Group {
    pub(super) fn new(now: Nanos, identity: &str) -> Self {
        Self {
            identity: identity.to_owned(),
            periods: Periods::default(),
            stored_until: i64::MIN,
            members: BTreeMap::new(),
            begun: now,
            turned_at: None,
            settled_at: now,
            told_at: now,
            acts: Vec::new(),
        }
    }

    /// What the recording says of turns, and of the times that it has.
    pub(super) fn restore(&mut self, turns: &[Turn], known: &KnownTimes) {
        self.periods = Periods::default();
        for turn in turns.iter().filter(|turn| turn.identity == self.identity) {
            self.periods.give((turn.from_ns, turn.until_ns), &turn.sender);
        }
        self.members.values_mut().for_each(|member| member.spans = Spans::default());
        let prefix = format!("{}@", self.identity);
        let own = known.spans.iter().filter(|(sender, _)| sender.starts_with(&prefix));
        let mut stored_until = None;
        for (sender, (spans, before)) in own {
            self.members.entry(sender.clone()).or_default().spans = spans.clone();
            stored_until = stored_until.max(Some(*before));
        }
        self.stored_until = stored_until.or(known.newest_ns).unwrap_or(i64::MIN);
    }

    /// Whose newest rows are taken.
    pub(super) fn active(&self) -> Option<&str> {
        self.periods.active()
    }

    /// A collector has come, which owes these numbers.
    pub(super) fn greeted(
        &mut self,
        now: Nanos,
        (sender, boot): (&str, u64),
        tables: Vec<TableSchema>,
        owed: BTreeMap<u64, Ranges>,
    ) {
        let member = self.members.entry(sender.to_owned()).or_default();
        let spans = std::mem::take(&mut member.spans);
        let (newest, answers) = (member.newest, std::mem::take(&mut member.answers));
        let (is_here, came_at, owed_at) = (true, now, now);
        *member = Member {
            is_here,
            boot,
            came_at,
            owed_at,
            newest,
            tables,
            spans,
            owed,
            answers,
            ..Member::default()
        };
    }

    /// A collector's session has ended: what was held back comes again.
    pub(super) fn gone(&mut self, now: Nanos, sender: &str) {
        if let Some(member) = self.members.get_mut(sender) {
            (member.is_here, member.gone_at) = (false, now);
            member.held.clear();
            (member.held_bytes, member.spare) = (0, Spare::default());
            member.owed.clear();
        }
    }

    /// A block of a collector that was to be stored is lost. Returns the others, whose sessions are to be ended: of
    /// what they sent that was spare only with this block, all that is not accounted for comes again.
    pub(super) fn lost(&mut self, sender: &str, number: (u64, u64)) -> Vec<String> {
        let Some(member) = self.members.get_mut(sender) else { return Vec::new() };
        if !member.spans.take_back(number) {
            return Vec::new();
        }
        self.stored_until = self.stored_until.max(member.spans.given_up());
        self.others_than(sender)
    }

    /// The collectors that are here, but one.
    pub(super) fn others_than(&self, sender: &str) -> Vec<String> {
        let others = self.members.iter().filter(|(name, of)| *name != sender && of.is_here);
        others.map(|(name, _)| name.clone()).collect()
    }

    /// Whether it is one of the collectors.
    pub(super) fn has_member(&self, sender: &str) -> bool {
        self.members.contains_key(sender)
    }

    /// Octets of a collector's blocks that are neither stored nor accounted for.
    pub(super) fn unsettled_bytes(&self, sender: &str) -> u64 {
        self.members.get(sender).map_or(0, |member| member.held_bytes + member.spare.bytes)
    }

    /// Whether a block came already in this session, and is held back or spare.
    pub(super) fn has(&self, sender: &str, boot: u64, number: u64) -> bool {
        self.members.get(sender).is_some_and(|member| {
            member.held.contains_key(&(boot, number))
                || member.spare.numbers.get(&boot).is_some_and(|of| of.holds(number))
        })
    }

    /// Numbers will not come.
    pub(super) fn missing(
        &mut self,
        now: Nanos,
        sender: &str,
        boot: u64,
        (first, last): (u64, u64),
    ) {
        let Some(member) = self.members.get_mut(sender) else { return };
        member.pay(now, boot, first, last);
        let gone: Vec<_> =
            member.held.range((boot, first)..=(boot, last)).map(|(&number, _)| number).collect();
        for number in gone {
            if let Some(rows) = member.held.remove(&number) {
                member.held_bytes -= rows.payload().len() as u64;
            }
        }
        // Nothing comes behind the end of a life: who waits for its acknowledgement is not kept waiting.
        if last == u64::MAX {
            member.has_ended |= boot == member.boot;
            self.account(now, true);
        }
    }

    /// Takes a block.
    pub(super) fn came(&mut self, now: Nanos, rows: PackedRows, origin: &Origin) {
        let sender = &origin.source.sender;
        let is_active = self.periods.active() == Some(sender);
        if is_active {
            self.members.values_mut().for_each(|member| member.later = 0);
        }
        let newest = self.periods.active().and_then(|active| self.members.get(active)?.newest);
        let Some(member) = self.members.get_mut(sender) else { return };
        let (boot, number) = (origin.source.boot, origin.first);
        member.came_at = now;
        member.pay(now, boot, number, number);
        let until = rows.times().1;
        if member.newest.is_none_or(|newest| until > newest) {
            member.newest = Some(until);
            let is_later = !is_active && Some(until) > newest;
            member.later = member.later.saturating_add(u32::from(is_later));
        }
        member.note_answers(&rows);
        member.held_bytes += rows.payload().len() as u64;
        member.held.insert((boot, number), rows);
        let sender = sender.clone();
        if self.periods.is_empty() {
            self.give(now, (i64::MIN, i64::MAX), &sender);
        }
        self.compare_answers(now, &sender);
        self.settle_one(now, &sender, (boot, number));
        if now.saturating_sub(self.settled_at) >= SETTLE_EVERY {
            self.settle(now);
        }
    }

    /// Looks at everything that is held back.
    pub(super) fn settle(&mut self, now: Nanos) {
        self.settled_at = now;
        let senders: Vec<String> = self.members.keys().cloned().collect();
        for sender in senders {
            let held: Vec<_> = self
                .members
                .get(&sender)
                .into_iter()
                .flat_map(|of| of.held.keys())
                .copied()
                .collect();
            for number in held {
                self.settle_one(now, &sender, number);
            }
        }
        self.account(now, false);
        if now.saturating_sub(self.told_at) >= TELL_EVERY
            && let Some((from_ns, sender)) = self.periods.newest()
        {
            self.told_at = now;
            let (identity, sender) = (self.identity.clone(), sender.to_owned());
            self.acts.push(Act::Turn(Turn { identity, sender, from_ns, until_ns: i64::MAX }));
        }
    }

    /// What is to be done, in this order.
    pub(super) fn take_acts(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.acts)
    }

    fn give(&mut self, now: Nanos, (from_ns, until_ns): (i64, i64), sender: &str) {
        let before = self.periods.active().map(str::to_owned);
        self.periods.give((from_ns, until_ns), sender);
        if self.periods.active() != before.as_deref() {
            self.turned_at = Some(now);
            self.members.values_mut().for_each(|member| member.later = 0);
            if let Some(member) = self.members.get_mut(sender) {
                member.came_at = now;
            }
        }
        let (identity, sender) = (self.identity.clone(), sender.to_owned());
        self.acts.push(Act::Turn(Turn { identity, sender, from_ns, until_ns }));
    }

    /// Stores a block or finds it spare, if that can be known.
    fn settle_one(&mut self, now: Nanos, sender: &str, number: (u64, u64)) {
        loop {
            let member = self.members.get(sender);
            let Some(times) = member.and_then(|of| of.held.get(&number)).map(PackedRows::times)
            else {
                return;
            };
            match self.verdict(now, sender, times) {
                Verdict::Wait => return,
                Verdict::Hole(from, until) => self.give(now, (from, until), sender),
                Verdict::Settled => break,
            }
        }
        let Some(member) = self.members.get_mut(sender) else { return };
        let Some(rows) = member.held.remove(&number) else { return };
        let bytes = rows.payload().len() as u64;
        member.held_bytes -= bytes;
        let Some(origin) = rows.origin().cloned() else { return };
        let (periods, times) = (&self.periods, rows.times());
        let is_own = |at: i64| periods.owner(at).is_none_or(|owner| owner == sender);
        let parts = periods.parts(times);
        let has_own = parts.iter().any(|(_, _, owner)| *owner == sender);
        let kept = if parts.iter().all(|(_, _, owner)| *owner == sender) {
            Some(rows)
        } else {
            let schema = member.tables.iter().find(|table| table.name == rows.table());
            let schema = schema.filter(|table| has_own || table.name == EVENTS.0);
            schema.and_then(|schema| kept_of(&rows, schema, is_own))
        };
        if has_own {
            member.spans.add(number, times);
            self.stored_until = self.stored_until.max(member.spans.given_up());
        }
        match kept {
            Some(kept) => self.acts.push(Act::Store(kept, origin)),
            None => {
                let spare = &mut member.spare;
                spare.numbers.entry(number.0).or_default().add(number.1, number.1);
                spare.bytes += bytes;
                spare.since.get_or_insert(now);
            }
        }
    }

    fn verdict(&self, now: Nanos, sender: &str, times: (i64, i64)) -> Verdict {
        for (from, until, owner) in self.periods.parts(times) {
            if owner == sender || until <= self.stored_until {
                continue;
            }
            let from = from.max(self.stored_until.saturating_add(1));
            let member = self.members.get(owner);
            let around = self.periods.around(from);
            let earliest = around.0.max(self.stored_until.saturating_add(1));
            let hole = match member {
                Some(member) => member.spans.hole_in((from, until)),
                None => Some((i64::MIN, i64::MAX)),
            };
            let Some(hole) = hole else { continue };
            if self.may_come(now, owner, until) {
                return Verdict::Wait;
            }
            return Verdict::Hole(hole.0.max(earliest), hole.1.min(around.1));
        }
        Verdict::Settled
    }

    /// Whether an owner may still tell of a time that it has not told of.
    fn may_come(&self, now: Nanos, owner: &str, until: i64) -> bool {
        let Some(member) = self.members.get(owner) else {
            return now.saturating_sub(self.begun) < AWAY_MAX;
        };
        if !member.is_here {
            return now.saturating_sub(member.gone_at) < AWAY_MAX;
        }
        let is_owed = !member.owed.is_empty() && now.saturating_sub(member.owed_at) < OWED_MAX;
        let later = self.members.values().map(|other| other.later).max().unwrap_or(0);
        let is_stalled = now.saturating_sub(member.came_at) >= STALLED_AFTER && later >= LATER_MIN;
        is_owed
            || !is_stalled && !member.has_ended && member.newest.is_none_or(|newest| until > newest)
    }

    /// Gives what comes to a collector whom more devices answer than the active one.
    fn compare_answers(&mut self, now: Nanos, sender: &str) {
        let Some(active) = self.periods.active().filter(|active| *active != sender) else { return };
        let (Some(own), Some(of_active)) = (self.members.get(sender), self.members.get(active))
        else {
            return;
        };
        let is_young = self.turned_at.is_some_and(|at| now.saturating_sub(at) < TERM_MIN);
        let common = own.answers.iter().rev().filter_map(|(interval, answered)| {
            of_active.answers.get(interval).map(|by_active| answered > by_active)
        });
        let better: Vec<bool> = common.take(BETTER_MIN).collect();
        if is_young || better.len() < BETTER_MIN || !better.iter().all(|is_better| *is_better) {
            return;
        }
        // What the active one has begun stays its own.
        let newest = of_active.newest.unwrap_or(i64::MIN).max(self.stored_until);
        self.give(now, (newest.saturating_add(1), i64::MAX), sender);
    }

    /// Accounts for the numbers of spare blocks, if it is time or must be.
    fn account(&mut self, now: Nanos, at_once: bool) {
        for (sender, member) in &mut self.members {
            let spare = &member.spare;
            let is_due = spare.since.is_some_and(|since| now.saturating_sub(since) >= SPARE_EVERY);
            if spare.since.is_some() && (is_due || at_once || spare.bytes > SPARE_BYTES_MAX) {
                let Spare { numbers, .. } = std::mem::take(&mut member.spare);
                for (boot, ranges) in numbers {
                    self.acts.extend(ranges.iter().map(|(first, last)| Act::Spare {
                        sender: sender.clone(),
                        boot,
                        first,
                        last,
                    }));
                }
            }
        }
    }
}

impl Member {
    /// Numbers were told of.
    fn pay(&mut self, now: Nanos, boot: u64, first: u64, last: u64) {
        if let Some(owed) = self.owed.get_mut(&boot) {
            owed.remove(first, last);
            if owed.iter().next().is_none() {
                self.owed.remove(&boot);
            }
            self.owed_at = now;
        }
    }

    /// Remembers how many devices answered.
    fn note_answers(&mut self, rows: &PackedRows) {
        let (table, interval, ok, late) = INTERVALS;
        if rows.table() != table {
            return;
        }
        let columns =
            [interval, ok, late].map(|name| Column::new(name, ColumnKind::U64, Meaning::Gauge, ""));
        let schema = TableSchema::new(table, "", columns.to_vec());
        // What cannot be read is told by whoever reads the recording.
        let Ok((batch, _)) = rows.unpack(&schema) else { return };
        for row in 0..batch.rows() {
            let (Some(time), Some(interval), Some(ok)) =
                (batch.bits(0, row), batch.bits(1, row), batch.bits(2, row))
            else {
                continue;
            };
            let answered = ok.saturating_add(batch.bits(3, row).unwrap_or(0));
            self.answers.insert((time.cast_signed(), interval), answered);
            if self.answers.len() > ANSWERS_MAX {
                self.answers.pop_first();
            }
        }
    }
}

/// The rows of a block that are its sender's own, and marks, whosever time they are of.
fn kept_of(
    rows: &PackedRows,
    schema: &TableSchema,
    is_own: impl Fn(i64) -> bool,
) -> Option<PackedRows> {
    let (table, column, mark) = EVENTS;
    let event = schema.column(column).filter(|_| rows.table() == table);
    rows.retain(schema, |batch, words, row| {
        let own = batch.bits(0, row).is_some_and(|time| is_own(time.cast_signed()));
        let word = event.and_then(|event| batch.bits(event, row));
        let word = word.and_then(|place| words.get(usize::try_from(place).ok()?));
        own || word.is_some_and(|word| word == mark)
    })
    .ok()
    .flatten()
}

#[cfg(test)]
mod tests {
    use meikyo_recording::Packer;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn intervals() -> TableSchema {
        let column = |name| Column::new(name, ColumnKind::U64, Meaning::Gauge, "");
        TableSchema::new("intervals", "", ["interval_us", "ok", "late"].map(column).into())
    }

    fn events() -> TableSchema {
        let event = Column::new("event", ColumnKind::Symbol, Meaning::Label, "");
        TableSchema::new("events", "", vec![event])
    }

    /// What two collectors of one identity say, and what became of it.
    struct Pair {
        group: Group,
        now: Nanos,
        next: BTreeMap<&'static str, u64>,
    }

    impl Pair {
        fn new() -> Self {
            let now = Nanos::from_secs(100);
            let mut group = Group::new(now, "west:m");
            for name in ["west:m@a", "west:m@b"] {
                group.greeted(now, (name, 1), vec![intervals(), events()], BTreeMap::new());
            }
            Self { group, now, next: BTreeMap::new() }
        }

        fn say(&mut self, sender: &'static str, rows: &PackedRows) -> Vec<Act> {
            let number = self.next.entry(sender).or_insert(0);
            *number += 1;
            let source = Source { sender: sender.into(), boot: 1, stream: "s".into() };
            let origin = Origin { source, first: *number, last: *number };
            self.group.came(self.now, rows.with_origin(&origin).unwrap(), &origin);
            self.group.take_acts()
        }

        /// An interval in which so many devices answered.
        fn interval(&mut self, sender: &'static str, second: i64, ok: u64) -> Vec<Act> {
            let mut packer = Packer::new(intervals());
            let batch = packer.batch();
            batch.begin_row(second * SECOND);
            batch.put_u64(1, 1_000_000);
            batch.put_u64(2, ok);
            let rows = packer.pack().unwrap();
            self.say(sender, &rows)
        }

        fn wait(&mut self, span: Nanos) -> Vec<Act> {
            self.now += span;
            self.group.settle(self.now);
            self.group.take_acts()
        }
    }

    /// The times of what is stored, in seconds, with the sender.
    fn stored(acts: &[Act]) -> Vec<(String, i64)> {
        let of = acts.iter().filter_map(|act| match act {
            Act::Store(rows, origin) => {
                Some((origin.source.sender.clone(), rows.times().0 / SECOND))
            }
            Act::Turn(_) | Act::Spare { .. } => None,
        });
        of.collect()
    }

    #[test]
    fn who_measures_more_completely_three_times_in_a_row_takes_over() {
        let mut pair = Pair::new();
        pair.wait(Nanos::from_secs(1));
        for second in 0..=12 {
            pair.now += Nanos::SECOND;
            // The first one reaches all but one of its devices; at second 9 both do, so that three in a row are
            // there at second 12 only: the first ten seconds are its own in any case.
            let ok = if second == 9 { 10 } else { 9 };
            assert_eq!(pair.group.active().unwrap_or("west:m@a"), "west:m@a", "{second}");
            assert_eq!(
                stored(&pair.interval("west:m@a", second, ok)),
                [("west:m@a".into(), second)]
            );
            let acts = pair.interval("west:m@b", second, 10);
            assert_eq!(stored(&acts), [], "{second}");
        }
        assert_eq!(pair.group.active(), Some("west:m@b"));
        // From the next interval on, and what the other one has of it is spare.
        pair.now += Nanos::SECOND;
        assert_eq!(stored(&pair.interval("west:m@a", 13, 10)), []);
        assert_eq!(stored(&pair.interval("west:m@b", 13, 10)), [("west:m@b".into(), 13)]);
        // Numbers of what was spare are accounted for: all that the one had, and the last of the other.
        assert_eq!(stored(&pair.wait(SETTLE_EVERY)), []);
        let acts = pair.wait(SPARE_EVERY);
        let spare: Vec<_> = acts
            .iter()
            .filter_map(|act| match act {
                Act::Spare { sender, first, last, .. } => Some((sender.as_str(), *first, *last)),
                _ => None,
            })
            .collect();
        assert!(spare.contains(&("west:m@a", 14, 14)), "{spare:?}");
        assert!(spare.iter().any(|of| of.0 == "west:m@b" && of.2 == 13), "{spare:?}");
    }

    #[test]
    fn one_that_is_gone_is_replaced_after_a_second_from_its_last_interval_on() {
        let mut pair = Pair::new();
        for second in 0..3 {
            pair.interval("west:m@a", second, 9);
            pair.interval("west:m@b", second, 9);
        }
        pair.group.gone(pair.now, "west:m@a");
        assert_eq!(stored(&pair.interval("west:m@b", 3, 9)), []);
        assert_eq!(stored(&pair.wait(Nanos::from_millis(999))), []);
        assert_eq!(stored(&pair.wait(Nanos::from_millis(1))), [("west:m@b".into(), 3)]);
        assert_eq!(pair.group.active(), Some("west:m@b"));
    }

    #[test]
    fn what_could_not_be_stored_of_one_that_is_gone_then_is_taken_from_who_stands_by() {
        let mut pair = Pair::new();
        for second in 0..4 {
            pair.interval("west:m@a", second, 9);
            assert_eq!(stored(&pair.interval("west:m@b", second, 9)), []);
        }
        // The blocks of two intervals find no room on the disk, and the one that stands by is to send all again.
        for number in [2, 3] {
            assert_eq!(pair.group.lost("west:m@a", (1, number)), ["west:m@b"]);
        }
        assert_eq!(pair.group.lost("west:m@b", (1, 1)), [""; 0], "nothing is spare with it");
        for name in ["west:m@a", "west:m@b"] {
            pair.group.gone(pair.now, name);
        }
        let tables = vec![intervals(), events()];
        pair.group.greeted(pair.now, ("west:m@b", 1), tables, BTreeMap::new());
        pair.wait(AWAY_MAX);
        pair.next.insert("west:m@b", 0);
        let again: Vec<_> =
            (0..5).flat_map(|second| stored(&pair.interval("west:m@b", second, 9))).collect();
        assert_eq!(again, [1, 2, 4].map(|second| ("west:m@b".into(), second)));
    }

    #[test]
    fn one_that_stalls_is_replaced_when_two_later_intervals_are_there() {
        let mut pair = Pair::new();
        pair.interval("west:m@a", 0, 9);
        pair.interval("west:m@b", 0, 9);
        // With long intervals silence says nothing.
        assert_eq!(stored(&pair.wait(Nanos::from_secs(60))), []);
        assert_eq!(stored(&pair.interval("west:m@b", 60, 9)), []);
        let acts = pair.interval("west:m@b", 120, 9);
        assert_eq!(stored(&acts), [("west:m@b".into(), 120)]);
        let acts = pair.wait(Nanos::from_millis(50));
        assert_eq!(stored(&acts), [("west:m@b".into(), 60)]);
    }

    #[test]
    fn marks_are_taken_from_who_stands_by_and_other_events_are_not() {
        let mut pair = Pair::new();
        pair.interval("west:m@a", 0, 9);
        pair.interval("west:m@a", 9, 9);
        let mut packer = Packer::new(events());
        for (second, event) in [(1, "restart"), (2, "mark"), (3, "failing")] {
            let word = packer.symbol(event);
            packer.batch().begin_row(second * SECOND);
            packer.batch().put_symbol(1, word);
        }
        let rows = packer.pack().unwrap();
        let acts = pair.say("west:m@b", &rows);
        assert_eq!(stored(&acts), [("west:m@b".into(), 2)]);
        assert!(matches!(&acts[..], [Act::Store(rows, _)] if rows.rows() == 1), "{acts:?}");
    }
}
