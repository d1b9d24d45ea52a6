//! The paper's six sets of values: in the cluster file's words, as columns, and as a request.

use meikyo_snmp::tables::Table;
use meikyo_snmp::{Oid, Pdu, PduType, Version, message};

/// A value that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Its table and column.
    pub(crate) table: Table,
    pub(crate) column: &'static str,
    /// Columns of the agent's tables that give it; one of them in a request at least.
    objects: &'static [&'static str],
    /// The interface or the path that it is measured of; empty for the host as a whole.
    subject: &'static str,
    /// The column's unit in the agent's.
    factor: i64,
}

/// The paper's five values: RX, TX, disk used, disk available, load.
pub(crate) const SLOTS: [Measured; 5] = [
    Measured {
        table: Table::Interfaces,
        column: "in_octets",
        objects: &["1.3.6.1.2.1.31.1.1.1.6"],
        subject: "eth0",
        factor: 1,
    },
    Measured {
        table: Table::Interfaces,
        column: "out_octets",
        objects: &["1.3.6.1.2.1.31.1.1.1.10"],
        subject: "eth0",
        factor: 1,
    },
    Measured {
        table: Table::Storage,
        column: "used_bytes",
        objects: &["1.3.6.1.4.1.2021.9.1.15", "1.3.6.1.4.1.2021.9.1.8"],
        subject: "/",
        factor: 1024,
    },
    Measured {
        table: Table::Storage,
        column: "available_bytes",
        objects: &["1.3.6.1.4.1.2021.9.1.13", "1.3.6.1.4.1.2021.9.1.7"],
        subject: "/",
        factor: 1024,
    },
    // In hundredths on both sides.
    Measured {
        table: Table::Load,
        column: "load_1min",
        objects: &["1.3.6.1.4.1.2021.10.1.5.1"],
        subject: "",
        factor: 1,
    },
];

impl Measured {
    /// Whether an agent's object, of this interface or path, gives the value.
    pub(crate) fn is_given_by(&self, oid: &Oid, subject: &str) -> bool {
        let of_columns =
            |column: &&str| oid.starts_with(&column.parse().expect("an OID of this file"));
        subject == self.subject && self.objects.iter().any(of_columns)
    }

    /// The agent's number as the recording keeps it; counters with all their 64 bits.
    pub(crate) const fn kept(&self, answered: u64) -> i64 {
        answered.cast_signed().wrapping_mul(self.factor)
    }
}

/// Objects as the farm's hosts number them: eth0 is interface 2, `/` is disk 1.
const SYS_UP_TIME: &str = "1.3.6.1.2.1.1.3.0";
const IF_NAME: &[&str] = &["1.3.6.1.2.1.31.1.1.1.1.2"];
const IN_OCTETS: &[&str] = &["1.3.6.1.2.1.31.1.1.1.6.2"];
const OUT_OCTETS: &[&str] = &["1.3.6.1.2.1.31.1.1.1.10.2"];
const DISK_PATH: &[&str] = &["1.3.6.1.4.1.2021.9.1.2.1"];
const AVAILABLE_KIB: &[&str] = &["1.3.6.1.4.1.2021.9.1.13.1", "1.3.6.1.4.1.2021.9.1.14.1"];
const USED_KIB: &[&str] = &["1.3.6.1.4.1.2021.9.1.15.1", "1.3.6.1.4.1.2021.9.1.16.1"];
const LOAD_1MIN: &[&str] = &["1.3.6.1.4.1.2021.10.1.5.1"];

/// The paper's six sets of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// RX octets.
    Rx,
    /// RX and TX octets.
    RxTx,
    /// Disk used.
    Used,
    /// Disk used and available.
    UsedAvailable,
    /// Load average.
    Load,
    /// All of the above together.
    Five,
}

impl Values {
    /// In the paper's order.
    pub(crate) const ALL: [Self; 6] =
        [Self::Rx, Self::RxTx, Self::Used, Self::UsedAvailable, Self::Load, Self::Five];

    /// The paper's words for it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Rx => "RX",
            Self::RxTx => "RX and TX",
            Self::Used => "disk used",
            Self::UsedAvailable => "disk used and available",
            Self::Load => "load",
            Self::Five => "all five",
        }
    }

    /// What the cluster file says.
    pub(crate) const fn measure(self) -> &'static [&'static str] {
        match self {
            Self::Rx => &["interface:eth0(in_octets)"],
            Self::RxTx => &["interface:eth0(in_octets,out_octets)"],
            Self::Used => &["disk:/(used_bytes)"],
            Self::UsedAvailable => &["disk:/(used_bytes,available_bytes)"],
            Self::Load => &["load(load_1min)"],
            Self::Five => &[
                "interface:eth0(in_octets,out_octets)",
                "disk:/(used_bytes,available_bytes)",
                "load(load_1min)",
            ],
        }
    }

    /// A request of the collector's size for these values: `sysUpTime.0`, then for each row the
    /// object that names it and its values, as the farm's hosts number them.
    pub(crate) fn request(self) -> Vec<u8> {
        let objects = self.object_list();
        let oids = objects.iter().map(|oid| oid.parse().expect("an OID of this file"));
        let oids: Vec<Oid> = oids.collect();
        // Four octets, as the collector's ids.
        let pdu = Pdu::request(PduType::Get, 0x0100_0000, &oids);
        let mut octets = Vec::new();
        message::encode_community(Version::V2c, b"public", &pdu, &mut octets);
        octets
    }

    const fn objects(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Rx => &[IF_NAME, IN_OCTETS],
            Self::RxTx => &[IF_NAME, IN_OCTETS, OUT_OCTETS],
            Self::Used => &[DISK_PATH, USED_KIB],
            Self::UsedAvailable => &[DISK_PATH, USED_KIB, AVAILABLE_KIB],
            Self::Load => &[LOAD_1MIN],
            Self::Five => {
                &[IF_NAME, IN_OCTETS, OUT_OCTETS, DISK_PATH, AVAILABLE_KIB, USED_KIB, LOAD_1MIN]
            }
        }
    }

    /// The objects of [`Self::request`].
    pub(crate) fn object_list(self) -> Vec<String> {
        let objects = self.objects().iter().copied().flatten();
        std::iter::once(&SYS_UP_TIME).chain(objects).map(|oid| (*oid).to_owned()).collect()
    }

    /// The values one by one.
    pub(crate) fn list(self) -> &'static [Measured] {
        match self {
            Self::Rx => &SLOTS[..1],
            Self::RxTx => &SLOTS[..2],
            Self::Used => &SLOTS[2..3],
            Self::UsedAvailable => &SLOTS[2..4],
            Self::Load => &SLOTS[4..],
            Self::Five => &SLOTS,
        }
    }
}
