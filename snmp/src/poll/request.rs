//! One GET of a device: the template that is sent, and what each object of the answer is for.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::Ipv4Addr;

use meikyo_recording::Symbol;
use meikyo_recording::schema::Hint;

use crate::plan::{Convert, RowPlan, Watched};
use crate::poll::rows::Reason;
use crate::poll::session::Session;
use crate::tables::{Table, schema};
use crate::template::{RequestTemplate, Response, Security};
use crate::value::ValueRef;
use crate::{Oid, Version};

/// A number so far from 0 says that a sensor's value is beyond its range (RFC 3433).
const BEYOND: u32 = 1_000_000_000;

/// Longest answer that is planned for: what an Ethernet frame carries over IPv4 or IPv6 and UDP
/// (1,500 - 40 - 8), less what v3 headers may grow by.
const ANSWER_MAX: usize = 1_400;

/// Octets of a message around its variable bindings: v3 with authentication and privacy, an engine
/// identifier and a user of 32 octets each.
const MESSAGE_OVERHEAD: usize = 190;

/// One GET of one device, ready to be sent again and again.
#[derive(Debug)]
pub(super) struct Request {
    /// Position among the [`Layouts`].
    pub(super) layout: usize,
    /// A template of its own, where keys differ from agent to agent (v3).
    template: Option<Box<RequestTemplate>>,
}

/// What is asked in one GET, and what each object of the answer is for.
///
/// Devices that are asked the same share one: in a cluster of equal hosts it stays in the nearest
/// cache, where one a device would be fetched from memory twice a poll (measured: half of the poll
/// core's time).
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Layout {
    /// BER content octets of the identifiers, one after the other.
    oids: Vec<u8>,
    expected: Vec<Expected>,
    pub(super) rows: Vec<RowTarget>,
    values: usize,
    /// How many watched objects travel with it.
    watched: usize,
    /// Positions of the rows in the device's plan.
    pub(super) planned: Vec<usize>,
    /// Version and community of devices that share the template, too.
    community: Option<(Version, Vec<u8>)>,
}

/// One object of the answer.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Expected {
    /// Where its identifier ends in [`Layout::oids`]; it begins where the one before ends.
    oid_end: usize,
    role: Role,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Role {
    Uptime,
    Guard { row: usize, octets: Vec<u8> },
    High { value: usize },
    Watched { slot: usize },
    Value { value: usize, convert: Convert },
}

/// Every layout in use. They are not freed: different ones are few, also after many restarts.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    all: Vec<(Layout, RequestTemplate)>,
    by_hash: BTreeMap<u64, Vec<usize>>,
}

impl Layouts {
    /// The layout at a position.
    #[inline]
    pub(super) fn get(&self, position: usize) -> &Layout {
        &self.all[position].0
    }

    /// The template that devices of a layout share.
    #[inline]
    pub(super) fn template(&mut self, position: usize) -> &mut RequestTemplate {
        &mut self.all[position].1
    }

    /// The position of a layout, which is added if it is new.
    fn position(&mut self, layout: Layout, template: RequestTemplate) -> usize {
        let mut hasher = DefaultHasher::new();
        layout.hash(&mut hasher);
        let same = self.by_hash.entry(hasher.finish()).or_default();
        if let Some(&known) = same.iter().find(|&&known| self.all[known].0 == layout) {
            return known;
        }
        same.push(self.all.len());
        self.all.push((layout, template));
        self.all.len() - 1
    }
}

/// Where one row of the answer goes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct RowTarget {
    pub(super) table: Table,
    pub(super) instance: Option<Symbol>,
    pub(super) pdu_column: Option<usize>,
    /// The values of the row in [`Answer::values`].
    pub(super) values: std::ops::Range<usize>,
    /// Columns of those values.
    pub(super) columns: Vec<usize>,
    /// Position of the first value among the device's series.
    pub(super) series: usize,
    /// Constant columns.
    pub(super) constants: Vec<(usize, u64)>,
}

/// A converted value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reading {
    /// The agent has no such object, or it is of another type than planned.
    Missing,
    Unsigned(u64),
    Signed(i64),
    Real(f64),
    /// A counter of unplanned type, for the table `objects`.
    Counter(u64),
    /// A range of [`Answer::texts`].
    Text {
        start: usize,
        end: usize,
    },
}

/// What an answer says; reused from answer to answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) uptime_cs: Option<u32>,
    pub(super) values: Vec<Reading>,
    pub(super) texts: String,
    /// What the watched objects are; nothing if they were not asked. `None` of one is not there.
    pub(super) watched: Vec<Option<u64>>,
    /// Rows whose guard did not hold.
    pub(super) renamed: Vec<usize>,
    /// Values that could not be read, though the others could.
    pub(super) unreadable: Vec<usize>,
    high: Vec<u32>,
}

/// What a request asks for.
pub(super) struct Asked<'a> {
    pub(super) plan: &'a [RowPlan],
    /// Positions in it.
    pub(super) planned: Vec<usize>,
    pub(super) watched: &'a [Watched],
    /// Whether the agent refuses to answer an object together with others.
    pub(super) is_left_out: &'a dyn Fn(&Oid) -> bool,
}

impl Answer {
    /// A value cannot be read: it is missing; an unreadable guard holds for nothing.
    #[cold]
    fn unreadable(&mut self, role: &Role) {
        match role {
            Role::Uptime | Role::Watched { .. } => {}
            Role::Guard { row, .. } => self.renamed.push(*row),
            Role::High { value } | Role::Value { value, .. } => self.unreadable.push(*value),
        }
    }
}

impl Request {
    /// A request for the given rows of a plan and what is watched, without what the agent refuses. A
    /// row whose guard is left out is left out as a whole: without it nobody could tell whose row it
    /// is.
    pub(super) fn new(
        session: &Session,
        Asked { plan, mut planned, watched, is_left_out }: Asked<'_>,
        targets: &dyn Fn(usize) -> (Option<Symbol>, usize),
        layouts: &mut Layouts,
    ) -> Self {
        let mut layout = Layout {
            oids: Vec::new(),
            expected: Vec::new(),
            rows: Vec::new(),
            values: 0,
            watched: watched.len(),
            planned: Vec::new(),
            community: session.community(),
        };
        planned.retain(|&row| !plan[row].guard.as_ref().is_some_and(|it| is_left_out(&it.oid)));
        let mut oids = Vec::new();
        let mut expect = |layout: &mut Layout, oid: &Oid, role| {
            if !is_left_out(oid) {
                oid.encode_into(&mut layout.oids);
                layout.expected.push(Expected { oid_end: layout.oids.len(), role });
                oids.push(oid.clone());
            }
        };
        expect(&mut layout, &sys_uptime(), Role::Uptime);
        for (slot, watched) in watched.iter().enumerate() {
            expect(&mut layout, &watched.oid, Role::Watched { slot });
        }
        for (row, &position) in planned.iter().enumerate() {
            let planned = &plan[position];
            let (instance, series) = targets(position);
            let first = layout.values;
            let (mut columns, mut constants) = (Vec::new(), Vec::new());
            if let Some(guard) = &planned.guard {
                let role = Role::Guard { row, octets: guard.expected.clone() };
                expect(&mut layout, &guard.oid, role);
            }
            for value in &planned.values {
                if let Convert::Constant(constant) = value.convert {
                    constants.push((value.column, constant));
                    continue;
                }
                let slot = layout.values;
                if let Convert::LowHigh { high, .. } = &value.convert {
                    expect(&mut layout, high, Role::High { value: slot });
                }
                let role = Role::Value { value: slot, convert: value.convert.clone() };
                expect(&mut layout, &value.oid, role);
                columns.push(value.column);
                layout.values += 1;
            }
            layout.rows.push(RowTarget {
                table: planned.table,
                instance,
                pdu_column: schema(planned.table).hint(Hint::Answer),
                values: first..layout.values,
                columns,
                series,
                constants,
            });
        }
        layout.planned = planned;
        let template = session.template(&oids);
        let own = layout.community.is_none().then(|| Box::new(template.clone()));
        Self { layout: layouts.position(layout, template), template: own }
    }

    /// Whether devices of the layout share the template.
    pub(super) fn is_shared(&self) -> bool {
        self.template.is_none()
    }

    /// The template of its own, if it has one.
    pub(super) fn own_template(&mut self) -> Option<&mut RequestTemplate> {
        self.template.as_deref_mut()
    }
}

impl Layout {
    /// What an answer must show to be believed, where that is the same for all devices of the
    /// layout: the octets to compare with are then in the nearest cache.
    #[inline]
    pub(super) fn security(&self) -> Option<Security<'_>> {
        let (version, community) = self.community.as_ref()?;
        Some(Security::Community { version: *version, community })
    }

    /// The identifier at a varbind position of the answer (1 for the first, as `error-index`).
    pub(super) fn object(&self, error_index: usize) -> Option<Oid> {
        let position = error_index.checked_sub(1)?;
        let end = self.expected.get(position)?.oid_end;
        let start = position.checked_sub(1).map_or(0, |before| self.expected[before].oid_end);
        Oid::decode(&self.oids[start..end]).ok()
    }

    /// How many objects are asked for.
    pub(super) fn objects(&self) -> usize {
        self.expected.len()
    }

    /// The last value of the answer, if there is another before it.
    pub(super) fn last_of_several(&self) -> Option<Oid> {
        let is_value = |expected: &&Expected| matches!(expected.role, Role::Value { .. });
        let several = self.expected.iter().filter(is_value).count() > 1;
        self.object(self.expected.len()).filter(|_| several)
    }

    /// Whether an object is asked for.
    pub(super) fn holds(&self, object: &Oid) -> bool {
        (1..=self.expected.len()).any(|position| self.object(position).as_ref() == Some(object))
    }

    /// Reads the objects of an answer.
    ///
    /// # Errors
    /// [`Reason::WrongObjects`] when they are not exactly those asked for, in their order;
    /// [`Reason::BadPacket`] when they cannot be decoded.
    pub(super) fn read(&self, response: Response<'_>, answer: &mut Answer) -> Result<(), Reason> {
        answer.uptime_cs = None;
        answer.renamed.clear();
        answer.unreadable.clear();
        answer.texts.clear();
        answer.watched.clear();
        answer.watched.resize(self.watched, None);
        answer.values.clear();
        answer.values.resize(self.values, Reading::Missing);
        answer.high.clear();
        answer.high.resize(self.values, 0);
        let mut expected = self.expected.iter();
        let mut oid_start = 0;
        let mut varbinds = response.varbinds;
        while let Some(varbind) = varbinds.next_framed() {
            let (oid, tag, content) = varbind.map_err(|_| Reason::BadPacket)?;
            let Some(expected) = expected.next() else { return Err(Reason::WrongObjects) };
            if !is_same(&self.oids[oid_start..expected.oid_end], oid) {
                return Err(Reason::WrongObjects);
            }
            oid_start = expected.oid_end;
            let Ok(value) = ValueRef::decode(tag, content) else {
                answer.unreadable(&expected.role);
                continue;
            };
            match &expected.role {
                Role::Uptime => {
                    if let ValueRef::TimeTicks(ticks) = value {
                        answer.uptime_cs = Some(ticks);
                    }
                }
                Role::Guard { row, octets } => {
                    if !matches!(value, ValueRef::OctetString(said) if said == octets) {
                        answer.renamed.push(*row);
                    }
                }
                Role::Watched { slot } => answer.watched[*slot] = sign(&value),
                Role::High { value: slot } => {
                    answer.high[*slot] =
                        unsigned(&value).and_then(|high| u32::try_from(high).ok()).unwrap_or(0);
                }
                Role::Value { value: slot, convert } => {
                    answer.values[*slot] =
                        convert_value(&value, convert, answer.high[*slot], &mut answer.texts);
                }
            }
        }
        if expected.next().is_some() { Err(Reason::WrongObjects) } else { Ok(()) }
    }
}

/// Whether two identifiers are the same: equality of slices without a call for the usual lengths of
/// 8 to 16 octets (measured: 0.5 µs less a poll).
#[inline]
fn is_same(ours: &[u8], theirs: &[u8]) -> bool {
    if ours.len() != theirs.len() {
        return false;
    }
    match (ours.first_chunk::<8>(), theirs.first_chunk::<8>()) {
        (Some(our_head), Some(their_head)) if ours.len() <= 16 => {
            // The last 8 octets overlap the first where there are fewer than 16.
            our_head == their_head && ours.last_chunk::<8>() == theirs.last_chunk::<8>()
        }
        _ => ours == theirs,
    }
}

/// `sysUpTime.0` (RFC 3418), which every request begins with.
fn sys_uptime() -> Oid {
    Oid::from_slice(&[1, 3, 6, 1, 2, 1, 1, 3, 0])
}

/// What a watched object is: its number, or any one if it is something else.
fn sign(value: &ValueRef<'_>) -> Option<u64> {
    let exception =
        matches!(value, ValueRef::NoSuchObject | ValueRef::NoSuchInstance | ValueRef::EndOfMibView);
    if exception { None } else { Some(unsigned(value).unwrap_or(u64::MAX)) }
}

/// A whole number that is not negative.
fn unsigned(value: &ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Integer(integer) => u64::try_from(*integer).ok(),
        ValueRef::Counter32(number) | ValueRef::Gauge32(number) | ValueRef::TimeTicks(number) => {
            Some(u64::from(*number))
        }
        ValueRef::Counter64(number) => Some(*number),
        _ => None,
    }
}

fn convert_value(
    value: &ValueRef<'_>,
    convert: &Convert,
    high: u32,
    texts: &mut String,
) -> Reading {
    let number = |reading: fn(u64) -> Reading| unsigned(value).map_or(Reading::Missing, reading);
    match convert {
        Convert::Unsigned => number(Reading::Unsigned),
        Convert::Signed => match value {
            ValueRef::Integer(integer) => Reading::Signed(*integer),
            _ => Reading::Missing,
        },
        Convert::Scaled(factor) => match unsigned(value) {
            Some(number) => Reading::Unsigned(number.saturating_mul(*factor)),
            None => Reading::Missing,
        },
        Convert::LowHigh { factor, .. } => match unsigned(value) {
            Some(low) => Reading::Unsigned((u64::from(high) << 32 | low).saturating_mul(*factor)),
            None => Reading::Missing,
        },
        Convert::Decimal(exponent) => decimal(value, *exponent),
        Convert::Constant(constant) => Reading::Unsigned(*constant),
        Convert::AsTyped => as_typed(value, texts),
    }
}

/// A whole number times a power of ten. Negative numbers come as `Gauge32`, too: LM-SENSORS-MIB has
/// no other type, and net-snmp sends their low 32 bits.
fn decimal(value: &ValueRef<'_>, exponent: i8) -> Reading {
    let number = match value {
        ValueRef::Integer(integer) => i32::try_from(*integer).ok(),
        ValueRef::Gauge32(number) => Some(number.cast_signed()),
        _ => None,
    };
    let told = number.filter(|number| number.unsigned_abs() < BEYOND);
    told.map_or(Reading::Missing, |number| {
        let power = 10_f64.powi(i32::from(exponent).abs());
        // Dividing is exact to the last bit where multiplying with 0.01 is not.
        let number = f64::from(number);
        Reading::Real(if exponent < 0 { number / power } else { number * power })
    })
}

/// The value for the table `objects`, where the agent's type chooses the column.
fn as_typed(value: &ValueRef<'_>, texts: &mut String) -> Reading {
    match value {
        ValueRef::Counter32(number) => Reading::Counter(u64::from(*number)),
        ValueRef::Counter64(number) => Reading::Counter(*number),
        ValueRef::Integer(integer) => Reading::Signed(*integer),
        ValueRef::Gauge32(number) | ValueRef::TimeTicks(number) => {
            Reading::Signed(i64::from(*number))
        }
        ValueRef::OctetString(octets) | ValueRef::Opaque(octets) => {
            text(texts, |texts| push_octets(octets, texts))
        }
        ValueRef::ObjectId(encoded) => match Oid::decode(encoded) {
            Ok(oid) => text(texts, |texts| texts.push_str(&oid.to_string())),
            Err(_) => Reading::Missing,
        },
        ValueRef::IpAddress(octets) => {
            text(texts, |texts| texts.push_str(&Ipv4Addr::from(*octets).to_string()))
        }
        _ => Reading::Missing,
    }
}

fn text(texts: &mut String, push: impl FnOnce(&mut String)) -> Reading {
    let start = texts.len();
    push(texts);
    Reading::Text { start, end: texts.len() }
}

/// Octets as they are where they are text, in hexadecimal where not.
fn push_octets(octets: &[u8], texts: &mut String) {
    match std::str::from_utf8(octets) {
        Ok(said) if !said.chars().any(|c| c.is_control() && c != '\n' && c != '\t') => {
            texts.push_str(said);
        }
        _ => {
            for octet in octets {
                let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('?');
                texts.push(digit(octet >> 4));
                texts.push(digit(octet & 15));
            }
        }
    }
}

/// Divides the due rows of a plan among as few PDUs as fit, in their order.
pub(super) fn pack(plan: &[RowPlan], due: &[usize]) -> Vec<Vec<usize>> {
    let mut pdus: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for &position in due {
        let size = answer_size(&plan[position]);
        if pdus.is_empty() || size > room {
            pdus.push(Vec::new());
            room = ANSWER_MAX - MESSAGE_OVERHEAD;
        }
        room = room.saturating_sub(size);
        pdus.last_mut().expect("one was pushed").push(position);
    }
    if pdus.is_empty() {
        // Only `sysUpTime.0`: the cheapest sign of life.
        pdus.push(Vec::new());
    }
    pdus
}

/// Octets that a row takes in an answer, at most.
fn answer_size(row: &RowPlan) -> usize {
    /// Type and length of binding, identifier and value.
    const FRAMING: usize = 6;
    /// The longest number: a Counter64.
    const NUMBER: usize = 9;
    /// What is reserved for a text of unknown length.
    const TEXT: usize = 64;
    let guard = row
        .guard
        .as_ref()
        .map_or(0, |guard| guard.oid.encoded().len() + guard.expected.len() + FRAMING);
    let values = row.values.iter().map(|value| {
        let own = value.oid.encoded().len() + FRAMING + NUMBER;
        match &value.convert {
            Convert::Constant(_) => 0,
            Convert::LowHigh { .. } => 2 * own,
            Convert::AsTyped => own + TEXT,
            _ => own,
        }
    });
    guard + values.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_what_a_sensor_cannot_tell_is_missing() {
        let real = |value: ValueRef<'_>, exponent| decimal(&value, exponent);
        assert_eq!(real(ValueRef::Integer(386), -2), Reading::Real(3.86));
        assert_eq!(real(ValueRef::Integer(6_015), -7), Reading::Real(0.000_601_5));
        assert_eq!(real(ValueRef::Integer(3), 3), Reading::Real(3_000.0));
        // -12.096 V in the low 32 bits that net-snmp sends.
        let volts = (-12_096_i32).cast_unsigned();
        assert_eq!(real(ValueRef::Gauge32(volts), -3), Reading::Real(-12.096));
        for beyond in [1_000_000_000, -1_000_000_000] {
            assert_eq!(real(ValueRef::Integer(beyond), -1), Reading::Missing);
        }
        assert_eq!(real(ValueRef::Counter64(5), -1), Reading::Missing);
    }
}
