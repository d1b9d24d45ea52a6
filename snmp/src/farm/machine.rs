//! One simulated machine: its state, and the [`Mib`] that a request sees.

use meikyo_units::{Nanos, WallTime};
use meikyo_worlds::random::{below, draw};

use super::bridge::Bridge;
use super::cache::CacheClock;
use super::layout::Layout;
use super::objects::{CacheGroup, DISK_TOTAL_KIB, Form, Moving, Source};
use super::traffic::{Counter, Disk, Increments, Load};
use crate::agent::{Instances, Mib};
use crate::{ErrorStatus, Value, ValueRef};

/// Span of the load's windows: the kernel computes it every 5 s.
const LOAD_WINDOW: Nanos = Nanos::from_secs(5);

/// Streams of a machine's key; counters take the numbers from 0 on.
const DISK_STREAM: u64 = 1 << 32;
const LOAD_STREAM: u64 = 2 << 32;
const CPU_STREAM: u64 = 3 << 32;
const GAUGE_STREAM: u64 = 4 << 32;

/// What all machines of a farm share.
#[derive(Debug)]
pub(crate) struct World {
    /// The instant of step 0.
    pub(crate) origin: WallTime,
    pub(crate) step: Nanos,
    pub(crate) increments: Increments,
}

impl World {
    /// The step that `at` lies in.
    #[inline]
    pub(crate) fn step_at(&self, at: WallTime) -> u64 {
        at.since(self.origin).get() / self.step.get().max(1)
    }
}

/// A counter with what the agent's cache holds of it.
#[derive(Debug, Clone)]
struct CachedCounter {
    live: Counter,
    held_step: u64,
    held: u64,
}

/// The state of one machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) name: String,
    /// Key of everything random about it.
    pub(crate) key: u64,
    /// Which layout it has.
    pub(crate) layout: usize,
    pub(crate) started: WallTime,
    /// How often it has started.
    pub(crate) boots: u32,
    /// When the machine (not only its agent) started.
    pub(crate) booted: WallTime,
    /// sysUpTime when the interface counters jumped last.
    discontinuity_cs: u64,
    counters: Vec<CachedCounter>,
    disks: Vec<Disk>,
    load: Load,
    pub(crate) interface_cache: CacheClock,
    pub(crate) host_cache: CacheClock,
    /// What a switch can be told; `None` for a host.
    pub(crate) bridge: Option<Box<Bridge>>,
}

/// Where the octet counters of a machine stand at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterStart {
    /// Anywhere below 2^40.
    Random,
    /// So that the 32-bit counters wrap within the first 100 steps or so.
    Before32BitWrap,
    /// So that the 64-bit counters wrap within the first 100 steps or so.
    Before64BitWrap,
}

impl CounterStart {
    fn value(self, key: u64) -> u64 {
        let little = below(draw(key, u64::MAX), 1 << 24);
        match self {
            Self::Random => below(draw(key, u64::MAX), 1 << 40),
            Self::Before32BitWrap => (7 << 32) - little,
            Self::Before64BitWrap => u64::MAX - little,
        }
    }
}

impl Machine {
    /// A machine that has been running for some days.
    pub(crate) fn new(
        name: String,
        key: u64,
        (started, boots): (WallTime, u32),
        layout: (usize, &Layout),
        start: CounterStart,
        world: &World,
    ) -> Self {
        let (layout, shape) = (layout.0, &layout.1.shape);
        let slots = shape.interfaces.len() as u64 * 4;
        let counters = (0..slots)
            .map(|slot| {
                let key = draw(key, slot);
                let live = Counter::starting_at(key, start.value(key), &world.increments);
                CachedCounter { live, held_step: u64::MAX, held: 0 }
            })
            .collect();
        Self {
            name,
            key,
            layout,
            booted: started.before(Nanos::from_secs(30)),
            started,
            boots,
            discontinuity_cs: 0,
            counters,
            disks: vec![Disk::default(); shape.disks.len()],
            load: Load::new(),
            interface_cache: CacheClock::default(),
            host_cache: CacheClock::default(),
            bridge: (!shape.host).then(|| Box::new(Bridge::new(shape.interfaces.len()))),
        }
    }

    /// Reads a part of every counter and whatever else lies apart.
    pub(crate) fn fetch(&self) -> u64 {
        let own = self.key ^ self.discontinuity_cs ^ self.load.fetch();
        let counters = self.counters.iter().fold(own, |read, own| read ^ own.held_step);
        self.disks.iter().fold(counters, |read, own| read ^ own.fetch())
    }

    /// The agent starts anew: sysUpTime from 0, one boot more, counters go on.
    pub(crate) fn restart(&mut self, now: WallTime) {
        self.started = now;
        self.boots += 1;
        self.discontinuity_cs = 0;
        self.interface_cache.restart(now);
        self.host_cache.restart(now);
    }

    /// The whole machine starts anew: as [`Self::restart`], every counter from 0, and a switch as it was
    /// delivered, since nobody saved what it was told.
    pub(crate) fn reboot(&mut self, now: WallTime, world: &World) {
        self.booted = now;
        if let Some(bridge) = &mut self.bridge {
            bridge.restart();
        }
        self.zero_counters(now, world);
        self.restart(now);
    }

    /// The interface counters begin at 0 again, said by ifCounterDiscontinuityTime.
    pub(crate) fn reset_counters(&mut self, now: WallTime, world: &World) {
        self.zero_counters(now, world);
        self.discontinuity_cs = self.uptime_cs(now);
    }

    fn zero_counters(&mut self, now: WallTime, world: &World) {
        let step = world.step_at(now);
        for (slot, counter) in (0..).zip(&mut self.counters) {
            let key = draw(self.key, slot);
            counter.live.restart_at(key, step, 0, &world.increments);
            counter.held_step = u64::MAX;
        }
        self.interface_cache.empty(now);
    }

    /// sysUpTime in hundredths of a second; the agent's 32 bits are its low ones.
    #[inline]
    pub(crate) fn uptime_cs(&self, now: WallTime) -> u64 {
        now.since(self.started).get() / 10_000_000
    }

    /// The counter in `slot` at `step`, or what the cache holds when it was filled at `held_step`.
    #[inline]
    fn count(&mut self, slot: u16, step: u64, held_step: Option<u64>, world: &World) -> u64 {
        let key = draw(self.key, slot.into());
        let Some(counter) = self.counters.get_mut(usize::from(slot)) else { return 0 };
        let Some(held_step) = held_step else {
            return counter.live.at(key, step, &world.increments);
        };
        if counter.held_step != held_step {
            counter.held_step = held_step;
            counter.held = counter.live.at(key, held_step, &world.increments);
        }
        counter.held
    }
}

/// A moving value that was answered, and what it really was at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) answered: u64,
    pub(crate) live: u64,
}

/// The machine as one request sees it.
pub(crate) struct MachineMib<'a> {
    machine: &'a mut Machine,
    layout: &'a Layout,
    world: &'a World,
    /// The status that the whole request is to be answered with, if it is to fail.
    error: Option<ErrorStatus>,
    /// What happens to it if it is to set something.
    set_fate: SetFate,
    /// What was answered, if that is to be kept.
    held: Option<&'a mut Vec<Held>>,
    now: Moment,
    interfaces: Moment,
    host: Moment,
    buffer: [u8; 24],
}

/// What happens to a request to set something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetFate {
    Done,
    Refused(ErrorStatus),
    /// Answered like one that was done.
    Forgotten,
}

/// An instant and its step.
#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    at: WallTime,
    step: u64,
}

impl<'a> MachineMib<'a> {
    pub(crate) fn new(
        machine: &'a mut Machine,
        layout: &'a Layout,
        world: &'a World,
        (error, set_fate): (Option<ErrorStatus>, SetFate),
        held: Option<&'a mut Vec<Held>>,
    ) -> Self {
        let moment = Moment::default();
        Self {
            machine,
            layout,
            world,
            error,
            set_fate,
            held,
            now: moment,
            interfaces: moment,
            host: moment,
            buffer: [0; 24],
        }
    }

    /// The value of `moving` at `moment`; `held` says that the moment is that of a cache.
    #[inline]
    fn number(&mut self, moving: Moving, moment: Moment, held: bool) -> u64 {
        let machine = &mut *self.machine;
        let step = moment.step;
        match moving {
            Moving::Uptime => machine.uptime_cs(moment.at),
            Moving::HostUptime => moment.at.since(machine.booted).get() / 10_000_000,
            Moving::EngineBoots => machine.boots.into(),
            Moving::EngineTime => machine.uptime_cs(moment.at) / 100,
            Moving::Count { slot, shift } => {
                let held = held.then_some(step);
                machine.count(slot, step, held, self.world) >> shift
            }
            Moving::Discontinuity => machine.discontinuity_cs,
            Moving::DiskUsed(disk) => machine.disk_used_kib(disk, step),
            Moving::DiskAvailable(disk) => DISK_TOTAL_KIB - machine.disk_used_kib(disk, step),
            Moving::DiskPercent(disk) => machine.disk_used_kib(disk, step) * 100 / DISK_TOTAL_KIB,
            Moving::Load(term) => {
                let window =
                    moment.at.floor(LOAD_WINDOW).as_nanos().cast_unsigned() / LOAD_WINDOW.get();
                let key = draw(machine.key, LOAD_STREAM);
                machine.load.hundredths(key, window, term.into())
            }
            Moving::Cpu(kind) => machine.cpu_ticks(kind, moment.at),
            Moving::Gauge { stream, least, spread } => {
                let random = draw(machine.key ^ (GAUGE_STREAM + u64::from(stream)), step);
                u64::from(least) + below(random, spread.into())
            }
            Moving::CacheTimeout => machine
                .interface_cache
                .timeout()
                .map_or(0, |timeout| timeout.as_micros() / 1_000_000),
        }
    }

    #[inline]
    fn answer(&mut self, moving: Moving) -> u64 {
        let (moment, held) = match moving.cached_with() {
            None => (self.now, false),
            Some(CacheGroup::Interfaces) => {
                (self.interfaces, self.machine.interface_cache.is_caching())
            }
            Some(CacheGroup::Host) => (self.host, self.machine.host_cache.is_caching()),
        };
        let answered = self.number(moving, moment, held);
        if self.held.is_some() {
            let live = if held { self.number(moving, self.now, false) } else { answered };
            if let Some(kept) = &mut self.held {
                kept.push(Held { answered, live });
            }
        }
        answered
    }
}

impl Machine {
    fn disk_used_kib(&mut self, disk: u8, step: u64) -> u64 {
        let key = draw(self.key, DISK_STREAM + u64::from(disk));
        let Some(disk) = self.disks.get_mut(usize::from(disk)) else { return 0 };
        (DISK_TOTAL_KIB / 4 + disk.used_kib(key, step)).min(DISK_TOTAL_KIB)
    }

    /// Ticks since the machine started: of 40 in 100 ms (four CPUs) 12 user, 3 system, 1 wait, with
    /// a jitter that stays below each slope, so that no counter goes back.
    fn cpu_ticks(&self, kind: u8, at: WallTime) -> u64 {
        let tenths = at.since(self.booted).get() / 100_000_000;
        let random = draw(self.key ^ CPU_STREAM, tenths);
        let (user, system) = (12 * tenths + below(random, 12), 3 * tenths + (random & 1));
        match kind {
            0 => user,
            1 => system,
            2 => 40 * tenths + 100 - user - system - tenths,
            _ => tenths,
        }
    }
}

impl Mib for MachineMib<'_> {
    fn begin(&mut self, now: WallTime) -> Result<(), ErrorStatus> {
        self.now = Moment { at: now, step: self.world.step_at(now) };
        let machine = &mut *self.machine;
        let key = machine.key;
        self.interfaces = self.now;
        self.host = self.now;
        if let Some(at) = machine.interface_cache.filled_at(now, key) {
            self.interfaces = Moment { at, step: self.world.step_at(at) };
        }
        if let Some(at) = machine.host_cache.filled_at(now, !key) {
            self.host = Moment { at, step: self.world.step_at(at) };
        }
        self.error.map_or(Ok(()), Err)
    }

    fn instances(&self) -> &Instances {
        &self.layout.instances
    }

    #[inline]
    fn value(&mut self, position: usize) -> ValueRef<'_> {
        let layout = self.layout;
        match &layout.sources[position] {
            Source::Fixed(Value::OctetString(octets)) => ValueRef::OctetString(octets),
            Source::Fixed(Value::Integer(number)) => ValueRef::Integer(*number),
            Source::Fixed(Value::Counter32(number)) => ValueRef::Counter32(*number),
            Source::Fixed(Value::Counter64(number)) => ValueRef::Counter64(*number),
            Source::Fixed(Value::Gauge32(number)) => ValueRef::Gauge32(*number),
            Source::Fixed(Value::TimeTicks(number)) => ValueRef::TimeTicks(*number),
            Source::Fixed(Value::ObjectId(oid)) => {
                let encoded = oid.encoded();
                let length = encoded.len().min(self.buffer.len());
                self.buffer[..length].copy_from_slice(&encoded[..length]);
                ValueRef::ObjectId(&self.buffer[..length])
            }
            Source::Fixed(_) => ValueRef::Null,
            Source::Name => ValueRef::OctetString(self.machine.name.as_bytes()),
            Source::PhysicalAddress(interface) => {
                let tail = self.machine.key.to_be_bytes();
                self.buffer[..6]
                    .copy_from_slice(&[2, tail[0], tail[1], tail[2], tail[3], *interface]);
                ValueRef::OctetString(&self.buffer[..6])
            }
            Source::Bridge(object) => {
                let bridge = self.machine.bridge.as_deref();
                bridge.map_or(ValueRef::NoSuchInstance, |bridge| bridge.value(*object))
            }
            Source::Moving(moving, form) => {
                let number = self.answer(*moving);
                shown(number, *form, &mut self.buffer)
            }
        }
    }

    fn check_set(&self, position: usize, value: ValueRef<'_>) -> Result<(), ErrorStatus> {
        if let SetFate::Refused(status) = self.set_fate {
            return Err(status);
        }
        match (&self.layout.sources[position], value) {
            (Source::Bridge(object), _) => {
                let bridge = self.machine.bridge.as_deref();
                bridge.map_or(Err(ErrorStatus::NotWritable), |bridge| bridge.check(*object, value))
            }
            (Source::Moving(Moving::CacheTimeout, _), ValueRef::Integer(seconds)) => {
                // As net-snmp 5.9, which takes no negative timeout.
                if (0..=i64::from(i32::MAX)).contains(&seconds) {
                    Ok(())
                } else {
                    Err(ErrorStatus::WrongValue)
                }
            }
            (Source::Moving(Moving::CacheTimeout, _), _) => Err(ErrorStatus::WrongType),
            _ => Err(ErrorStatus::NotWritable),
        }
    }

    fn check_new(&self, oid: &[u8], value: ValueRef<'_>) -> Result<(), ErrorStatus> {
        if let SetFate::Refused(status) = self.set_fate {
            return Err(status);
        }
        let bridge = self.machine.bridge.as_deref();
        bridge.map_or(Err(ErrorStatus::NoCreation), |bridge| bridge.check_new(oid, value))
    }

    fn set_new(&mut self, oid: &[u8], value: ValueRef<'_>) {
        if self.set_fate == SetFate::Forgotten {
            return;
        }
        if let Some(bridge) = &mut self.machine.bridge {
            bridge.set_new(oid, value);
        }
    }

    fn set(&mut self, position: usize, value: ValueRef<'_>) {
        if self.set_fate == SetFate::Forgotten {
            return;
        }
        if let (Source::Bridge(object), Some(bridge)) =
            (&self.layout.sources[position], &mut self.machine.bridge)
        {
            bridge.set(*object, value);
            return;
        }
        let seconds = value.as_u64().unwrap_or(0);
        self.machine.interface_cache.set_timeout(Nanos::from_secs(seconds));
    }
}

/// The number as a value of this form.
#[inline]
fn shown(number: u64, form: Form, buffer: &mut [u8; 24]) -> ValueRef<'_> {
    let low = u32::try_from(number & 0xffff_ffff).expect("masked to 32 bits");
    match form {
        Form::Counter64 => ValueRef::Counter64(number),
        Form::Counter32 => ValueRef::Counter32(low),
        Form::Gauge32 => ValueRef::Gauge32(low),
        Form::HighGauge32 => {
            ValueRef::Gauge32(u32::try_from(number >> 32).expect("32 bits are left"))
        }
        // Saturates, as a gauge would.
        Form::Integer => ValueRef::Integer(i32::try_from(number).unwrap_or(i32::MAX).into()),
        Form::TimeTicks => ValueRef::TimeTicks(low),
        Form::HundredthsText => ValueRef::OctetString(hundredths_text(number, buffer)),
    }
}

/// `number` hundredths with two decimals, written at the end of `buffer`.
fn hundredths_text(mut number: u64, buffer: &mut [u8; 24]) -> &[u8] {
    let mut at = buffer.len();
    let mut digits = 0;
    while number > 0 || digits < 3 {
        if digits == 2 {
            at -= 1;
            buffer[at] = b'.';
        }
        at -= 1;
        buffer[at] = b'0' + u8::try_from(number % 10).expect("a digit");
        number /= 10;
        digits += 1;
    }
    &buffer[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_are_written_with_two_decimals() {
        let text = |number| String::from_utf8(hundredths_text(number, &mut [0; 24]).to_vec());
        assert_eq!(text(0).unwrap(), "0.00");
        assert_eq!(text(7).unwrap(), "0.07");
        assert_eq!(text(12_345).unwrap(), "123.45");
        assert_eq!(text(u64::MAX).unwrap(), "184467440737095516.15");
    }
}
