//! One device as the poll core sees it: what it is asked, what is open, how it has behaved.

use std::collections::BTreeMap;

use meikyo_recording::Symbol;
use meikyo_sockets::Address;
use meikyo_units::{Nanos, WallTime};

use crate::Oid;
use crate::credentials::Credentials;
use crate::freshness::Activity;
use crate::plan::{Convert, DevicePlan, RowPlan, ValuePlan, Watched};
use crate::poll::alerts::{DeviceAlerts, Watching};
use crate::poll::refused::{LeftOut, NEVER};
use crate::poll::renewal::{self, Renewal};
use crate::poll::repeats::Repeats;
use crate::poll::request::{Asked, Layouts, Request, pack};
use crate::poll::resets::Resets;
use crate::poll::rows::{Reason, Rows};
use crate::poll::series::Series;
use crate::poll::session::Session;
use crate::poll::waiting::RoundTrip;
use crate::poll::{DEVICE_BITS, GENERATION_MAX, GENERATION_MIN, observe};
use crate::tables::{State, Table};

/// Unanswered requests in a row after which a device is asked less often.
const MISSES_BEFORE_BACK_OFF: u32 = 3;

/// How long a request to a silent device is waited for, and so how often it is asked. A device is
/// noticed again within this span and one interval after it begins to answer.
pub(super) const BACK_OFF: Nanos = Nanos::from_millis(500);

/// How long a device whose names could not be resolved is left before they are tried again.
pub(super) const RESOLVE_AGAIN: Nanos = Nanos::from_secs(5);

/// The bit of [`RequestSet::due`] for the watched objects.
const LOOK: u64 = 1 << 63;

/// How a device is spoken to.
#[derive(Debug, Clone)]
pub struct DeviceSpec {
    /// Name in the cluster file.
    pub name: String,
    /// Where its agent listens.
    pub address: std::net::SocketAddr,
    /// Version, community or user, with the secrets.
    pub credentials: Credentials,
    /// Span between two readings.
    pub interval: Nanos,
    /// How long an answer is waited for.
    pub timeout: Nanos,
    /// Most requests per second.
    pub rate_max: u32,
}

impl DeviceSpec {
    /// How a device of the cluster file is spoken to. It is asked at the shortest span at which
    /// anything of it is wanted.
    pub fn new(device: &meikyo_cluster::Device, credentials: Credentials) -> Self {
        let own = device.snmp.interval;
        let wanted = device.measure.iter().map(|measure| measure.every.unwrap_or(own));
        Self {
            name: device.name.clone(),
            address: device.address,
            credentials,
            interval: wanted.min().unwrap_or(own),
            timeout: device.snmp.timeout,
            rate_max: device.snmp.rate_max,
        }
    }
}

/// What is known of a device's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not yet resolved: it is asked for `sysUpTime.0` until it answers.
    Unresolved,
    /// Its tables are being walked; nothing else is asked of it.
    Resolving,
    /// Asked for what the cluster file wants.
    Resolved,
}

/// The request that a device has to answer. Small, since every poll fetches it from memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) due: WallTime,
    /// When it was sent last.
    pub(super) sent: WallTime,
    /// When the wait for it ends.
    pub(super) deadline: WallTime,
    pub(super) id: i32,
    pub(super) batch: u32,
    /// The try before, if it was sent twice, see [`crate::poll::waiting`]: its id (0 if there is
    /// none), its batch, and how long before this one it was sent, in µs.
    pub(super) id_before: i32,
    pub(super) batch_before: u32,
    pub(super) apart_us: u32,
    /// How long after `sent` it is sent again, in µs; 0 for never.
    pub(super) again_after_us: u32,
    /// The ring of the interval, which need not be the device's any more.
    pub(super) ring: u32,
    /// Position in [`Device::sets`].
    pub(super) set: u32,
    /// Position in the set.
    pub(super) pdu: u32,
    /// Layout of that request.
    pub(super) layout: u32,
    /// How many requests the interval takes.
    pub(super) requests: u32,
    /// How often this PDU was sent again for the sake of v3 discovery or of an error status.
    pub(super) again: u8,
    /// Worst state of the PDUs answered so far in this interval.
    pub(super) worst: State,
    /// Why a datagram that came for it could not be used.
    pub(super) unusable: Option<Reason>,
    /// Whether devices of that layout share the template.
    pub(super) shared: bool,
    /// Whether it still waits in the queue.
    pub(super) queued: bool,
    /// Whether an answer is likely: the device was not silent before.
    pub(super) awaited: bool,
    /// Whether an answer told that counters began anew.
    pub(super) resets: bool,
}

const _: () = assert!(size_of::<Option<Pending>>() <= 80, "a poll fetches it from memory");

impl Pending {
    /// Whether a datagram with this id answers it.
    #[inline]
    pub(super) fn has_id(&self, id: i32) -> bool {
        !self.queued && (self.id == id || self.id_before == id)
    }

    /// The batch that carried the try with this id, and when that was sent.
    #[inline]
    pub(super) fn try_of(&self, id: i32) -> (u32, WallTime) {
        if self.id == id { (self.batch, self.sent) } else { (self.batch_before, self.first_sent()) }
    }

    /// When it was sent first.
    #[inline]
    pub(super) fn first_sent(&self) -> WallTime {
        self.sent.before(Nanos::from_micros(self.apart_us.into()))
    }

    /// When it is sent again unless an answer comes before.
    pub(super) fn again_at(&self) -> Option<WallTime> {
        let after = Nanos::from_micros(self.again_after_us.into());
        (self.again_after_us != 0).then(|| self.sent + after)
    }

    /// When somebody has to look at it next.
    #[inline]
    pub(super) fn look_at(&self) -> WallTime {
        self.again_at().map_or(self.deadline, |again| again.min(self.deadline))
    }
}

/// A device. What every poll touches comes first and in this order: in a large cluster the time of
/// the poll core is the time of fetching these lines from memory.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Device {
    pub(super) pending: Option<Pending>,
    pub(super) not_before: WallTime,
    /// When the watched objects are asked next, see [`crate::poll::renewal`].
    pub(super) look_at: WallTime,
    /// When an object that the agent refused is asked for again.
    pub(super) try_again_at: WallTime,
    allowed_at: WallTime,
    /// Span between two requests at the rate cap.
    spacing: Nanos,
    pub(super) timeout: Nanos,
    /// Takes effect when nothing is open.
    pub(super) next_plan: Option<Box<DevicePlan>>,
    /// What is asked where every row is due at every interval, which is the rule.
    always: Option<First>,
    pub(super) name: Symbol,
    pub(super) generation: u32,
    pub(super) misses: u32,
    /// Intervals in a row that failed by the device's fault, see [`crate::poll::failing`].
    pub(super) failures: u32,
    pub(super) ring: u32,
    /// A bit for each table that something is asked of.
    tables: u32,
    pub(super) phase: Phase,
    pub(super) removed: bool,
    /// Whether rows of the plan are not shown by the agent.
    pub(super) lacks_rows: bool,
    /// An object that was refused is asked for again, see [`LeftOut`].
    pub(super) on_trial: bool,
    /// How long the agent takes to answer.
    pub(super) round_trip: RoundTrip,
    /// An unanswered request of an earlier interval, which is waited for beside `pending`: never
    /// without that.
    pub(super) earlier: Option<Box<Pending>>,
    pub(super) address: Address,
    /// `sysUpTime.0` of the last answer, and when that was received.
    pub(super) uptime: Option<(u32, WallTime)>,
    pub(super) series: Vec<Series>,
    pub(super) watching: Watching,
    /// What is watched; most devices have no rule.
    pub(super) alerts: Option<Box<DeviceAlerts>>,
    pub(super) session: Session,
    pub(super) renewal: Renewal,
    pub(super) resolve_after: WallTime,
    /// What moved last, by table.
    pub(super) activity: [Activity; Table::ALL.len()],
    pub(super) rows: Vec<RowPlan>,
    /// Distinct spans of the rows, see [`Device::first_for`].
    spans: Vec<Nanos>,
    pub(super) sets: Vec<RequestSet>,
    /// Where each row's series begin, and the row's second label.
    pub(super) targets: Vec<(Option<Symbol>, usize)>,
    /// Objects that the agent refuses.
    pub(super) left_out: LeftOut,
    /// The name as a text.
    pub(super) label: Box<str>,
    /// What it does again and again; most devices do not.
    pub(super) repeats: Option<Box<Repeats>>,
    /// Counters that began anew of late.
    pub(super) resets: Resets,
}

const _: () = assert!(Table::ALL.len() <= 32, "each table has a bit");

/// The first request of an interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct First {
    /// Position in [`Device::sets`].
    pub(super) set: u32,
    /// The number of its layout among those that devices share.
    pub(super) layout: u32,
    /// Whether devices of that layout share the template.
    pub(super) shared: bool,
    /// How many requests the interval takes.
    pub(super) requests: u32,
}

/// The requests for one combination of due rows.
#[derive(Debug)]
pub(super) struct RequestSet {
    /// Bit i stands for the i-th span of the device, [`LOOK`] for the watched objects.
    due: u64,
    pub(super) requests: Vec<Request>,
}

impl Device {
    pub(super) fn new(spec: DeviceSpec, ordinal: u32, ring: u32, rows: &mut Rows) -> Self {
        let mut device = Self {
            address: Address::from(spec.address),
            pending: None,
            phase: Phase::Unresolved,
            removed: false,
            lacks_rows: false,
            on_trial: false,
            ring,
            generation: 0,
            misses: 0,
            failures: 0,
            round_trip: RoundTrip::default(),
            earlier: None,
            not_before: WallTime::default(),
            look_at: WallTime::default(),
            renewal: Renewal::new(spec.interval.max(spacing(spec.rate_max)), ordinal),
            resolve_after: WallTime::default(),
            next_plan: None,
            timeout: spec.timeout,
            spacing: spacing(spec.rate_max),
            allowed_at: WallTime::default(),
            name: rows.symbol(&spec.name),
            uptime: None,
            session: Session::new(spec.credentials),
            rows: Vec::new(),
            spans: Vec::new(),
            always: None,
            sets: Vec::new(),
            series: Vec::new(),
            activity: [Activity::default(); Table::ALL.len()],
            tables: 0,
            targets: Vec::new(),
            left_out: LeftOut::default(),
            try_again_at: NEVER,
            watching: Watching::default(),
            alerts: None,
            label: spec.name.into(),
            repeats: None,
            resets: Resets::default(),
        };
        device.plan(Vec::new(), rows);
        device
    }

    /// The id of the next request: its low bits name the device, the others count.
    #[inline]
    pub(super) fn next_id(&mut self, ordinal: u32) -> i32 {
        self.generation = if self.generation >= GENERATION_MAX {
            GENERATION_MIN
        } else {
            (self.generation + 1).max(GENERATION_MIN)
        };
        (self.generation << DEVICE_BITS | ordinal).cast_signed()
    }

    /// Reads from every line of memory that an answer will need, and makes nothing of it.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        let id = self.pending.map_or(0, |pending| pending.id.unsigned_abs());
        let uptime = self.uptime.map_or(0, |(ticks, _)| ticks);
        let (mut tables, mut moved) = (self.tables, 0);
        while tables != 0 {
            moved ^= self.activity[tables.trailing_zeros() as usize].newest();
            tables &= tables - 1;
        }
        u64::from(id ^ self.generation ^ uptime) ^ moved.cast_unsigned()
    }

    /// The same of what its rules will need.
    #[inline]
    pub(super) fn touch_alerts(&self) -> u64 {
        let alerts = self.alerts.as_ref().filter(|_| self.watching.values);
        alerts.map_or(0, |alerts| alerts.touch())
    }

    /// Takes over what the device is asked; series that it was asked before go on.
    pub(super) fn set_plan(&mut self, now: WallTime, mut plan: DevicePlan, rows: &mut Rows) {
        let was = std::mem::replace(&mut self.phase, Phase::Resolved);
        let is_other = renewal::succeed(self, &mut plan, now, rows);
        self.look_at = now;
        if was == Phase::Resolved && !is_other {
            return;
        }
        self.left_out = LeftOut::default();
        self.try_again_at = NEVER;
        self.plan(plan.rows, rows);
        observe::declare(self, now, rows);
    }

    /// Takes over timeout and rate cap; the ring is the caller's.
    pub(super) fn respecify(&mut self, spec: &DeviceSpec, ring: u32) {
        self.always = None;
        self.ring = ring;
        self.timeout = spec.timeout;
        self.spacing = spacing(spec.rate_max);
        self.renewal.set_interval(spec.interval.max(self.spacing));
    }

    /// The real-time clock was set: instants of the past follow it.
    pub(super) fn clock_stepped(&mut self, moved: &dyn Fn(WallTime) -> WallTime) {
        self.left_out.clock_stepped(moved);
        self.try_again_at = self.left_out.next();
        let own = [&mut self.not_before, &mut self.resolve_after, &mut self.allowed_at];
        for at in own.into_iter().chain([&mut self.look_at]) {
            *at = moved(*at);
        }
        self.renewal.clock_stepped(moved);
        for open in self.pending.iter_mut().chain(self.earlier.as_deref_mut()) {
            open.sent = moved(open.sent);
            open.deadline = moved(open.deadline);
        }
        if let Some((_, at)) = &mut self.uptime {
            *at = moved(*at);
        }
        for series in &mut self.series {
            series.freshness.interrupt();
        }
        self.watching.clock_stepped(moved);
        if let Some(alerts) = &mut self.alerts {
            alerts.clock_stepped();
        }
        if let Some(repeats) = &mut self.repeats {
            repeats.clock_stepped(moved);
        }
        self.resets.clock_stepped(moved);
    }

    fn plan(&mut self, plan: Vec<RowPlan>, rows: &mut Rows) {
        let mut known: BTreeMap<(Table, Option<String>, usize), Series> = BTreeMap::new();
        let old = std::mem::take(&mut self.series);
        for (series, key) in old.into_iter().zip(series_keys(&self.rows)) {
            known.insert(key, series);
        }
        let declared = plan.iter().flat_map(|row| asked(row).map(|_| row.declared_refresh));
        self.series = series_keys(&plan)
            .zip(declared)
            .map(|(key, declared)| known.remove(&key).unwrap_or_else(|| Series::new(declared)))
            .collect();
        self.targets.clear();
        let mut first = 0;
        for row in &plan {
            let instance = row.instance.as_deref().map(|instance| rows.symbol(instance));
            self.targets.push((instance, first));
            first += asked(row).count();
        }
        self.tables = plan.iter().fold(0, |tables, row| tables | 1 << row.table.index());
        self.spans = plan.iter().map(|row| row.every).collect();
        self.spans.sort_unstable();
        self.spans.dedup();
        self.spans.truncate(63);
        self.rows = plan;
        self.always = None;
        self.sets.clear();
    }

    /// The requests for the rows that are due at `due`, a multiple of `interval`: those whose own
    /// span has a multiple in the interval that ends there.
    #[inline]
    pub(super) fn first_for(
        &mut self,
        due: WallTime,
        interval: Nanos,
        layouts: &mut Layouts,
    ) -> First {
        let looks = self.looks(due);
        if let Some(always) = self.always.filter(|_| !looks) {
            return always;
        }
        let set = self.set_of_due_rows(due, interval, layouts);
        let first = self.first_of(set);
        if !looks && self.spans.iter().all(|&span| span <= interval) {
            self.always = Some(first);
        }
        first
    }

    /// Whether the watched objects are asked in the interval of `due`.
    #[inline]
    fn looks(&self, due: WallTime) -> bool {
        due >= self.look_at && !self.renewal.watched.is_empty()
    }

    /// The first request of a set.
    fn first_of(&self, set: usize) -> First {
        let requests = &self.sets[set].requests;
        let (first, shared) = (&requests[0], requests[0].is_shared());
        let (set, layout, requests) = (short(set), short(first.layout), short(requests.len()));
        First { set, layout, shared, requests }
    }

    /// The requests of the open interval have changed: brings what it knows of them up to date.
    pub(super) fn refresh_pending(&mut self) {
        self.always = None;
        let Some(pending) = &mut self.pending else { return };
        let requests = &self.sets[pending.set as usize].requests;
        pending.requests = short(requests.len());
        pending.pdu = pending.pdu.min(pending.requests - 1);
        let request = &requests[pending.pdu as usize];
        pending.layout = short(request.layout);
        pending.shared = request.is_shared();
    }

    fn set_of_due_rows(&mut self, due: WallTime, interval: Nanos, layouts: &mut Layouts) -> usize {
        let earlier = due.before(interval);
        let look = if self.looks(due) { LOOK } else { 0 };
        let is_due = |span: Nanos| span <= interval || due.floor(span) != earlier.floor(span);
        self.set_of(look | self.bits(&is_due), layouts)
    }

    /// The bits of the spans that are due.
    fn bits(&self, is_due: &dyn Fn(Nanos) -> bool) -> u64 {
        let due = self.spans.iter().enumerate().filter(|&(_, &span)| is_due(span));
        due.fold(0, |bits, (bit, _)| bits | 1 << bit)
    }

    /// Makes the requests of the intervals that are likely to come, with what is watched and without,
    /// so that no interval has to wait for them.
    pub(super) fn make_sets(&mut self, interval: Nanos, layouts: &mut Layouts) {
        let looks = if self.renewal.watched.is_empty() { &[0][..] } else { &[LOOK, 0] };
        for longest in std::iter::once(interval).chain(self.spans.clone()) {
            let bits = self.bits(&|span| span <= longest.max(interval));
            for look in looks {
                self.set_of(look | bits, layouts);
            }
        }
    }

    /// The position of a combination's requests, which are made if it is new.
    fn set_of(&mut self, bits: u64, layouts: &mut Layouts) -> usize {
        if let Some(position) = self.sets.iter().position(|set| set.due == bits) {
            return position;
        }
        let spans = &self.spans;
        let is_due = |row: &RowPlan| {
            let bit = spans.iter().position(|&span| span == row.every).unwrap_or(0);
            bits >> bit & 1 == 1
        };
        let due_rows: Vec<usize> =
            (0..self.rows.len()).filter(|&row| is_due(&self.rows[row])).collect();
        let pdus = pack(&self.rows, &due_rows);
        let mut requests = Vec::with_capacity(pdus.len());
        for (pdu, rows) in pdus.into_iter().enumerate() {
            requests.push(self.request(rows, self.watched_in(bits, pdu), layouts));
        }
        self.sets.push(RequestSet { due: bits, requests });
        self.sets.len() - 1
    }

    /// The watched objects that travel with a request: all with the first one, which they make
    /// longer by 20 octets each at most.
    fn watched_in(&self, due: u64, pdu: usize) -> &[Watched] {
        if due & LOOK != 0 && pdu == 0 { &self.renewal.watched } else { &[] }
    }

    fn request(&self, rows: Vec<usize>, watched: &[Watched], layouts: &mut Layouts) -> Request {
        let targets = |row: usize| self.targets[row];
        let is_left_out = &|object: &Oid| self.left_out.holds(object);
        let asked = Asked { plan: &self.rows, planned: rows, watched, is_left_out };
        Request::new(&self.session, asked, &targets, layouts)
    }

    /// Forgets templates that were made for another engine; returns the position of the set that
    /// is due at `due`.
    pub(super) fn renew_sets(
        &mut self,
        due: WallTime,
        interval: Nanos,
        layouts: &mut Layouts,
    ) -> u32 {
        self.always = None;
        self.sets.clear();
        short(self.set_of_due_rows(due, interval, layouts))
    }

    /// Divides a request whose answer was too big; `false` if it holds a single row.
    pub(super) fn split(&mut self, set: usize, pdu: usize, layouts: &mut Layouts) -> bool {
        let planned = layouts.get(self.sets[set].requests[pdu].layout).planned.clone();
        let watched = self.watched_in(self.sets[set].due, pdu);
        if planned.len() < 2 && watched.is_empty() {
            return false;
        }
        if planned.len() < 2 {
            self.renewal.watched.clear();
            self.sets[set].requests[pdu] = self.request(planned, &[], layouts);
            return true;
        }
        let (front, back) = planned.split_at(planned.len() / 2);
        let halves = [
            self.request(front.to_vec(), watched, layouts),
            self.request(back.to_vec(), &[], layouts),
        ];
        self.sets[set].requests.splice(pdu..=pdu, halves);
        true
    }

    /// Makes the requests anew, since other objects are left out. The one at `pdu` of `set` keeps its
    /// place, which the pending request names.
    pub(super) fn left_out_changed(&mut self, set: usize, pdu: usize, layouts: &mut Layouts) {
        self.try_again_at = self.left_out.next();
        let planned = layouts.get(self.sets[set].requests[pdu].layout).planned.clone();
        let watched = self.watched_in(self.sets[set].due, pdu);
        self.sets[set].requests[pdu] = self.request(planned, watched, layouts);
        self.renewal.want();
        // Other combinations hold the object too and are made anew when they are due.
        self.sets.truncate(set + 1);
        for other in &mut self.sets[..set] {
            other.due = u64::MAX;
        }
    }

    /// Lets the request of the interval that is due hold an object again that was refused before.
    #[cold]
    pub(super) fn try_again(&mut self, due: WallTime) {
        // Open requests name their sets by position.
        if self.earlier.is_some() || self.pending.is_some() {
            return;
        }
        self.left_out.try_one(due);
        self.on_trial = true;
        self.try_again_at = self.left_out.next();
        self.always = None;
        self.sets.clear();
    }

    /// Whether the rate cap allows an interval of `requests` requests now; if so, they are counted.
    pub(super) fn take_allowance(&mut self, now: WallTime, requests: u32) -> bool {
        let span = self.spacing * u64::from(requests);
        let start = self.allowed_at.max(now);
        // Bursts of one interval's requests pass; the average may not exceed the cap.
        if start.since(now) > span {
            return false;
        }
        self.allowed_at = start + span;
        true
    }

    /// Whether the device is being asked less often because it is silent.
    pub(super) fn is_backed_off(&self) -> bool {
        self.misses >= MISSES_BEFORE_BACK_OFF
    }

    /// Whether nobody waits for it at the interval that is due at `due`: it did not answer last time.
    pub(super) fn is_silent(&self, due: WallTime, interval: Nanos) -> bool {
        let Some(open) = self.pending else { return self.misses > 0 };
        !open.awaited || self.may_stand_aside(due, interval)
    }

    /// How long the next request is waited for.
    pub(super) fn patience(&self) -> Nanos {
        if self.is_backed_off() { self.timeout.min(BACK_OFF) } else { self.timeout }
    }

    /// Compares the uptime of an answer with the last one; `true` if the agent restarted. `asked` is
    /// when it was asked, if it had been silent before.
    pub(super) fn restarted(
        &mut self,
        uptime_cs: u32,
        received: WallTime,
        asked: Option<WallTime>,
    ) -> bool {
        let last = self.uptime.replace((uptime_cs, received));
        last.is_some_and(|(before, at)| {
            let elapsed_cs = centiseconds(received.since(at));
            let silent_cs = asked.map(|asked| centiseconds(asked.since(at)));
            went_back(before, uptime_cs, elapsed_cs)
                || silent_cs.is_some_and(|silent_cs| fell_short(before, uptime_cs, silent_cs))
        })
    }
}

/// A span in hundredths of a second, as `sysUpTime` counts.
fn centiseconds(span: Nanos) -> u64 {
    span.get() / 10_000_000
}

/// Whether `sysUpTime` went back. It wraps after 497 days, so going back is a restart unless the last
/// value was within the elapsed span, and a minute of clock error, of the wrap.
fn went_back(before: u32, after: u32, elapsed_cs: u64) -> bool {
    const MINUTE_CS: u64 = 6_000;
    after < before && u64::from(u32::MAX - before) > elapsed_cs + MINUTE_CS
}

/// Whether `sysUpTime` advanced by less than a silence of `silent_cs` took: the agent was gone
/// meanwhile, and has been up again for longer than before it. Some agents count whole seconds, and
/// a clock may be off by a thousandth.
fn fell_short(before: u32, after: u32, silent_cs: u64) -> bool {
    const COARSE_CS: u64 = 110;
    let advanced = u64::from(after.wrapping_sub(before));
    advanced + COARSE_CS + silent_cs / 1_000 < silent_cs
}

/// The length of a list, or a position in one, that a device has: rows are at most thousands.
fn short(length: usize) -> u32 {
    u32::try_from(length).expect("a device has fewer than 2^32 requests")
}

/// Span between two requests at a cap of `rate_max` requests per second.
fn spacing(rate_max: u32) -> Nanos {
    Nanos::new(1_000_000_000 / u64::from(rate_max.max(1)))
}

/// The values of a row that the agent is asked for.
pub(super) fn asked(row: &RowPlan) -> impl Iterator<Item = &ValuePlan> {
    row.values.iter().filter(|value| !matches!(value.convert, Convert::Constant(_)))
}

/// The series of a plan in their order.
fn series_keys(plan: &[RowPlan]) -> impl Iterator<Item = (Table, Option<String>, usize)> + '_ {
    plan.iter()
        .flat_map(|row| asked(row).map(|value| (row.table, row.instance.clone(), value.column)))
}

#[cfg(test)]
mod tests {
    use super::{fell_short, went_back};

    #[test]
    fn an_uptime_that_goes_back_is_a_restart_and_one_that_wraps_is_none() {
        assert!(went_back(500, 20, 300));
        assert!(!went_back(500, 800, 300));
        assert!(!went_back(u32::MAX - 100, 200, 300));
    }

    #[test]
    fn an_uptime_that_grew_by_less_than_the_silence_is_a_restart() {
        // Up for 5 s, gone for 10 s, and up again for 9 s.
        assert!(fell_short(500, 900, 1_900));
        assert!(!fell_short(500, 2_400, 1_900));
        // An agent that counts whole seconds, and a wrap.
        assert!(!fell_short(500, 500, 105));
        assert!(!fell_short(u32::MAX - 99, 900, 1_000));
        assert!(fell_short(u32::MAX - 99, 900, 2_000));
    }
}
