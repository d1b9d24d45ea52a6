//! This host as an agent sees it: its real counters from /proc and /sys, read anew for every
//! request, so that every answer is fresh.
//!
//! Reading costs about 50 µs a request and more only for what is asked. Network file systems are
//! not served: asking one whose server is gone would hang the agent.

mod disks;
mod interfaces;
mod kernel;
mod tree;

use std::io;
use std::path::PathBuf;

use meikyo_units::WallTime;

use self::disks::Disk;
use self::interfaces::Interface;
use self::kernel::{Cpu, Memory};
use self::tree::{Shape, What};
use super::{Engine, Instances, Mib};
use crate::usm::EngineId;
use crate::{ErrorStatus, Value, ValueRef};

/// Where the kernel shows its values.
#[derive(Debug, Clone)]
pub struct Roots {
    /// Where the kernel's `/proc` is mounted; a copy in tests.
    pub proc: PathBuf,
    /// Where the kernel's `/sys` is mounted; a copy in tests.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into() }
    }
}

/// Seconds from the Unix epoch to 2020-01-01.
const BOOTS_EPOCH_S: u64 = 1_577_836_800;

impl Engine {
    /// The engine of this host's agent when it starts at `now`.
    ///
    /// Its id comes from /etc/machine-id (RFC 3411, `SnmpEngineID`, format 5), or, without one,
    /// from the host's name. snmpEngineBoots must grow at every start and is usually kept on the
    /// disk; here it is the number of seconds since 2020, which grows as well and needs no file to
    /// be written.
    pub fn of_this_host(now: WallTime) -> Self {
        let machine = std::fs::read_to_string("/etc/machine-id")
            .ok()
            .filter(|id| id.trim().len() >= 16)
            .unwrap_or_else(|| kernel::host_name(&Roots::default()));
        let key = machine.trim().bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, octet| {
            (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        // Saturates below the count that RFC 3414 reserves for an engine that must be made anew.
        let seconds = now.since(WallTime::default()).get() / 1_000_000_000;
        let boots = u32::try_from(seconds.saturating_sub(BOOTS_EPOCH_S))
            .unwrap_or(u32::MAX)
            .min(0x7fff_fffe);
        Self::new(engine_id(key), boots, now)
    }
}

/// An engine id of format 5 with these octets.
fn engine_id(key: u64) -> EngineId {
    // The enterprise number that RFC 5612 sets aside for documentation: the project has none.
    let id = [&[0x80, 0x00, 0x7e, 0xd9, 0x05], &key.to_be_bytes()[..]].concat();
    EngineId::from_slice(&id).expect("13 octets are an engine id")
}

/// This host's values as a MIB that can only be read.
#[derive(Debug)]
pub struct Host {
    roots: Roots,
    boots: u32,
    started: WallTime,
    now: WallTime,
    shape: Shape,
    instances: Instances,
    what: Vec<What>,
    interfaces: Vec<Interface>,
    disks: Vec<Disk>,
    load: Option<[u64; 3]>,
    cpu: Option<Cpu>,
    memory: Option<Memory>,
    /// Holds the octets of the value that was answered last.
    octets: Vec<u8>,
}

impl Host {
    /// The host as it is now, behind this engine.
    ///
    /// # Errors
    ///
    /// If /proc cannot be read.
    pub fn new(roots: Roots, engine: &Engine) -> io::Result<Self> {
        let shape = Shape::default();
        let (instances, what) = shape.instances(&roots);
        let mut host = Self {
            roots,
            boots: engine.boots,
            started: engine.started,
            now: engine.started,
            shape,
            instances,
            what,
            interfaces: Vec::new(),
            disks: Vec::new(),
            load: None,
            cpu: None,
            memory: None,
            octets: Vec::new(),
        };
        host.refresh()?;
        Ok(host)
    }

    /// Reads what decides which instances there are, and forgets every value.
    fn refresh(&mut self) -> io::Result<()> {
        let uptime_cs = self.uptime_cs();
        self.interfaces = interfaces::read(&self.roots, &self.interfaces, uptime_cs)?;
        self.disks = disks::read(&self.roots)?;
        (self.load, self.cpu, self.memory) = (None, None, None);
        let shape = Shape {
            interfaces: self.interfaces.iter().map(|interface| interface.index).collect(),
            disks: self.disks.len(),
        };
        if shape != self.shape {
            (self.instances, self.what) = shape.instances(&self.roots);
            self.shape = shape;
        }
        Ok(())
    }

    fn uptime_cs(&self) -> u64 {
        self.now.since(self.started).get() / 10_000_000
    }

    /// The value, `None` where the kernel does not say it.
    fn read(&mut self, what: &What) -> Option<Value> {
        let roots = &self.roots;
        Some(match *what {
            What::Fixed(ref value) => value.clone(),
            What::Uptime => Value::TimeTicks(low(self.uptime_cs())),
            What::EngineBoots => Value::Integer(self.boots.into()),
            What::EngineTime => integer(self.uptime_cs() / 100),
            What::HostUptime => Value::TimeTicks(low(kernel::uptime_cs(roots)?)),
            What::Name => Value::OctetString(kernel::host_name(roots).into_bytes()),
            What::InterfaceCount => integer(u64::try_from(self.interfaces.len()).ok()?),
            What::Interface(number, column) => self.interfaces.get(number)?.cell(column, roots)?,
            What::InterfaceX(number, column) => {
                self.interfaces.get(number)?.extended_cell(column, roots)?
            }
            What::Disk(number, column) => self.disks.get_mut(number)?.cell(column)?,
            What::DiskStorage(number, column) => {
                self.disks.get_mut(number)?.storage_cell(column)?
            }
            What::Load(term, column) => {
                let load = *self.load.get_or_insert(kernel::load(roots)?).get(term)?;
                kernel::load_cell(load, column)?
            }
            What::Cpu(column) => {
                if self.cpu.is_none() {
                    self.cpu = kernel::cpu(roots);
                }
                self.cpu.as_ref()?.cell(column)?
            }
            What::Memory(column) => self.memory()?.cell(column)?,
            What::MemoryStorage(column) => self.memory()?.storage_cell(column)?,
            What::MemorySize => integer(self.memory()?.total_kib),
        })
    }

    fn memory(&mut self) -> Option<&Memory> {
        if self.memory.is_none() {
            self.memory = kernel::memory(&self.roots);
        }
        self.memory.as_ref()
    }
}

/// The low 32 bits.
fn low(number: u64) -> u32 {
    u32::try_from(number & 0xffff_ffff).expect("masked to 32 bits")
}

/// As an Integer32, which saturates.
fn integer(number: u64) -> Value {
    Value::Integer(i32::try_from(number).unwrap_or(i32::MAX).into())
}

impl Mib for Host {
    fn begin(&mut self, now: WallTime) -> Result<(), ErrorStatus> {
        self.now = now;
        self.refresh().map_err(|_| ErrorStatus::GenErr)
    }

    fn instances(&self) -> &Instances {
        &self.instances
    }

    fn value(&mut self, position: usize) -> ValueRef<'_> {
        let what = self.what[position].clone();
        let Some(value) = self.read(&what) else { return ValueRef::NoSuchInstance };
        match value {
            Value::Integer(number) => ValueRef::Integer(number),
            Value::Counter32(number) => ValueRef::Counter32(number),
            Value::Counter64(number) => ValueRef::Counter64(number),
            Value::Gauge32(number) => ValueRef::Gauge32(number),
            Value::TimeTicks(number) => ValueRef::TimeTicks(number),
            Value::OctetString(octets) => {
                self.octets = octets;
                ValueRef::OctetString(&self.octets)
            }
            Value::ObjectId(oid) => {
                self.octets = oid.encoded();
                ValueRef::ObjectId(&self.octets)
            }
            Value::Opaque(octets) => {
                self.octets = octets;
                ValueRef::Opaque(&self.octets)
            }
            _ => ValueRef::NoSuchInstance,
        }
    }
}
