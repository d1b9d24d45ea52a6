//! What a simulated host or switch is built like, and where the values of its objects come from.

use super::script::Action;
use crate::agent::InstancesBuilder;
use crate::{Oid, Value};

/// Counters of an interface, in the order of their slots.
pub(crate) const COUNTERS_PER_INTERFACE: u16 = 4;
/// Kibibytes of a simulated disk: 1 TiB, so that the high halves of dskTable matter for bytes only.
pub(crate) const DISK_TOTAL_KIB: u64 = 1 << 30;
/// A value that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moving {
    /// Hundredths of a second since the agent started.
    Uptime,
    /// Hundredths of a second since the machine started.
    HostUptime,
    /// snmpEngineBoots.
    EngineBoots,
    /// snmpEngineTime, seconds.
    EngineTime,
    /// A counter of an interface.
    Count {
        slot: u16,
        /// Packets are octets of their own stream by 2^shift.
        shift: u8,
    },
    /// sysUpTime of the last discontinuity of the interface counters.
    Discontinuity,
    /// Kibibytes.
    DiskUsed(u8),
    /// Kibibytes.
    DiskAvailable(u8),
    /// Per cent used.
    DiskPercent(u8),
    /// Load average in hundredths.
    Load(u8),
    /// CPU ticks: 0 user, 1 system, 2 idle, 3 wait.
    Cpu(u8),
    /// Anything from `least` on, drawn anew at every step from less than `spread` numbers.
    Gauge {
        /// Gauges of one stream swing together.
        stream: u8,
        least: u32,
        spread: u32,
    },
    /// Seconds that the interface table is cached.
    CacheTimeout,
}

impl Moving {
    /// Which cache the value stands behind.
    pub(crate) const fn cached_with(self) -> Option<CacheGroup> {
        match self {
            Self::Count { .. } => Some(CacheGroup::Interfaces),
            Self::DiskUsed(_)
            | Self::DiskAvailable(_)
            | Self::DiskPercent(_)
            | Self::Load(_)
            | Self::Cpu(_)
            | Self::Gauge { .. } => Some(CacheGroup::Host),
            _ => None,
        }
    }
}

/// Values that an agent reads from its system at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheGroup {
    /// ifTable and ifXTable.
    Interfaces,
    /// Disks, load, CPU, memory.
    Host,
}

/// How a moving value is put into a varbind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Counter64,
    /// The low 32 bits.
    Counter32,
    /// The low 32 bits.
    Gauge32,
    /// Bits 32 to 63.
    HighGauge32,
    /// Saturates at 2^31 - 1.
    Integer,
    TimeTicks,
    /// An OCTET STRING with two decimals.
    HundredthsText,
}

/// Something of a bridge that is read or written; ports count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BridgeObject {
    /// `dot1qVlanStaticName`.
    Name(u16),
    /// `dot1qVlanStaticEgressPorts`.
    Egress(u16),
    /// `dot1qVlanForbiddenEgressPorts`.
    Forbidden(u16),
    /// `dot1qVlanStaticUntaggedPorts`.
    Untagged(u16),
    /// `dot1qVlanStaticRowStatus`.
    Row(u16),
    /// `dot1qPvid`.
    Pvid(u16),
    /// `dot1qPortAcceptableFrameTypes`.
    Frames(u16),
    /// `dot1qPortIngressFiltering`.
    Filtering(u16),
    /// `dot1dStpPortEnable`.
    Stp(u16),
    /// `dot3PauseAdminMode`.
    Pause(u16),
    /// `ifAdminStatus`.
    Admin(u16),
    /// `dot1dTpAgingTime`.
    Ageing,
    /// `dot1qNumVlans`.
    Count,
}

/// Where the value of an instance comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The same for all agents of this layout.
    Fixed(Value),
    Name,
    /// The MAC address of interface number so.
    PhysicalAddress(u8),
    Moving(Moving, Form),
    /// A setting of a switch.
    Bridge(BridgeObject),
}

/// What a simulated machine is built like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Names of the interfaces.
    pub(crate) interfaces: Vec<String>,
    /// Paths of the disks; a switch has none.
    pub(crate) disks: Vec<String>,
    /// Whether it has load, CPU and memory.
    pub(crate) host: bool,
    /// How far interface indexes were moved by renumbering.
    pub(crate) rotation: u32,
    /// Subtrees that are missing.
    pub(crate) hidden: Vec<Oid>,
    /// Interfaces that are gone by name, and disks by path.
    pub(crate) detached: Vec<String>,
    /// VLANs that a switch has rows of; none of a host.
    pub(crate) vlans: Vec<u16>,
}

impl Shape {
    /// ifIndex of interface number `interface`. The first of a host is the loopback interface and
    /// stays 1; the others move around, so that an index that is still there means another
    /// interface: the worst that an agent can do.
    pub(crate) fn if_index(&self, interface: u32) -> u32 {
        let fixed = u32::from(self.host);
        let moving = u32::try_from(self.interfaces.len()).expect("options bound the interfaces");
        let moving = moving.saturating_sub(fixed);
        if interface < fixed || moving == 0 {
            return interface + 1;
        }
        fixed + 1 + (interface - fixed + self.rotation) % moving
    }
}

impl Shape {
    /// The shape that the machine has after this, if another.
    pub(crate) fn after(&self, action: &Action) -> Option<Self> {
        let mut shape = self.clone();
        match action {
            Action::Renumber | Action::RestartRenumbered => {
                let moving = shape.interfaces.len().saturating_sub(usize::from(self.host)).max(1);
                let moving = u32::try_from(moving).expect("options bound the interfaces");
                // Bounded, so that a farm has few layouts however often it is renumbered.
                shape.rotation = (shape.rotation + 1) % moving;
            }
            Action::Hide(oid) => shape.hidden.push(oid.clone()),
            Action::Show(oid) => shape.hidden.retain(|hidden| hidden != oid),
            Action::Detach(name) if !shape.detached.contains(name) => {
                shape.detached.push(name.clone());
            }
            Action::Attach(name) => shape.detached.retain(|detached| detached != name),
            _ => return None,
        }
        Some(shape)
    }
}

/// The instances of a machine while they are listed.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) builder: InstancesBuilder<Source>,
}

impl Tree {
    pub(super) fn add(&mut self, table: &[u32], column: u32, index: &[u32], source: Source) {
        self.builder.add(&Oid::from_slice(table).child(&[column]), index, source);
    }

    pub(super) fn fixed(&mut self, object: &[u32], index: &[u32], value: Value) {
        self.builder.add(&Oid::from_slice(object), index, Source::Fixed(value));
    }

    pub(super) fn cell(&mut self, table: &[u32], column: u32, index: &[u32], value: Value) {
        self.add(table, column, index, Source::Fixed(value));
    }

    pub(super) fn moving(
        &mut self,
        table: &[u32],
        column: u32,
        index: &[u32],
        moving: Moving,
        form: Form,
    ) {
        self.add(table, column, index, Source::Moving(moving, form));
    }
}
