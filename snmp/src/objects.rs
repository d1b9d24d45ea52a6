//! Names of objects: about 250 well-known ones, both ways, without any MIB file.

mod known;

use std::fmt;

use thiserror::Error;

use crate::{Oid, ParseOidError};

/// The type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// INTEGER, and enumerations.
    Integer,
    /// OCTET STRING that is text.
    Text,
    /// OCTET STRING that is not: addresses, dates.
    Octets,
    /// OBJECT IDENTIFIER.
    ObjectId,
    /// Counts up and wraps at 2^32.
    Counter32,
    /// Counts up and wraps at 2^64.
    Counter64,
    /// Goes up and down, and stays at its ends.
    Gauge32,
    /// TimeTicks, hundredths of a second.
    TimeTicks,
    /// Opaque: net-snmp's floats.
    Opaque,
}

impl Kind {
    /// Whether it counts up and wraps, so that only differences mean something.
    pub const fn is_counter(self) -> bool {
        matches!(self, Self::Counter32 | Self::Counter64)
    }
}

/// What instances an object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instances {
    /// One, `.0`.
    Scalar,
    /// One a row of its table.
    Column,
}

/// A well-known object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name, for example `ifHCInOctets`.
    pub name: &'static str,
    /// Its OID, without instance.
    pub oid: Oid,
    /// Its type.
    pub kind: Kind,
    /// What instances it has.
    pub instances: Instances,
}

/// An instance that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The whole OID.
    pub oid: Oid,
    /// The object, if it is a well-known one.
    pub object: Option<Object>,
}

/// Why a text names no object instance.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LookupError {
    /// No object has this name.
    #[error("`{name}` is no object that is known by name{}; objects can be written as OIDs, like `1.3.6.1.2.1.1.3.0`", Hint(.nearest))]
    UnknownName {
        /// The name as it was written, without an index.
        name: String,
        /// A known name that looks like it.
        nearest: Option<&'static str>,
    },
    /// A column needs the index of a row.
    #[error("`{name}` is a column of a table: add the index of a row, like `{name}.1`")]
    IndexMissing {
        /// The column, which is written with an index behind it.
        name: &'static str,
    },
    /// A scalar has one instance only.
    #[error("`{name}` has one instance only: write `{name}` or `{name}.0`")]
    NotAColumn {
        /// The scalar, whose only index is 0.
        name: &'static str,
    },
    /// The index is no row of dotted numbers.
    #[error("the index of `{text}` is not made of whole numbers with dots between them")]
    Index {
        /// Name and index as they were written.
        text: String,
    },
    /// It starts with a digit and is no OID.
    #[error(transparent)]
    Oid(#[from] ParseOidError),
}

/// The end of a sentence that proposes a name.
struct Hint<'a>(&'a Option<&'static str>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(formatter, " (`{name}` is)"),
            None => Ok(()),
        }
    }
}

/// Every well-known object, group by group.
pub fn all() -> impl Iterator<Item = Object> {
    known::GROUPS.iter().flat_map(|group| {
        group.objects.iter().map(|&(name, arcs, kind, instances)| Object {
            name,
            oid: Oid::from_slice(group.prefix).child(arcs),
            kind,
            instances,
        })
    })
}

/// The object with this name.
pub fn by_name(name: &str) -> Option<Object> {
    all().find(|object| object.name == name)
}

/// The object that this is an instance of, or is itself.
pub fn by_oid(oid: &Oid) -> Option<Object> {
    all().find(|object| oid.starts_with(&object.oid))
}

/// The name for people: `ifHCInOctets.3`, or the digits where no name is known.
pub fn name_of(oid: &Oid) -> String {
    let Some(object) = by_oid(oid) else { return oid.to_string() };
    let index = oid.below(&object.oid).unwrap_or_default();
    index.iter().fold(object.name.to_owned(), |name, arc| format!("{name}.{arc}"))
}

/// The instance that a text names: `ifHCInOctets.3`, `sysUpTime.0`, `sysUpTime`, or an OID.
///
/// # Errors
///
/// [`LookupError`] says what is wrong with it.
pub fn lookup(text: &str) -> Result<Instance, LookupError> {
    if text.starts_with(|first: char| first == '.' || first.is_ascii_digit()) {
        let oid: Oid = text.parse()?;
        let object = by_oid(&oid);
        return Ok(Instance { oid, object });
    }
    let (name, index) =
        text.split_once('.').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let Some(object) = by_name(name) else {
        let nearest = meikyo_places::nearest(name, all().map(|object| object.name));
        return Err(LookupError::UnknownName { name: name.into(), nearest });
    };
    let index = match (index, object.instances) {
        (None, Instances::Scalar) => vec![0],
        (None, Instances::Column) => {
            return Err(LookupError::IndexMissing { name: object.name });
        }
        (Some(index), _) => index
            .split('.')
            .map(|arc| arc.parse::<u32>().ok().filter(|_| !arc.starts_with('+')))
            .collect::<Option<Vec<u32>>>()
            .ok_or_else(|| LookupError::Index { text: text.into() })?,
    };
    if object.instances == Instances::Scalar && index != [0] {
        return Err(LookupError::NotAColumn { name: object.name });
    }
    Ok(Instance { oid: object.oid.child(&index), object: Some(object) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_oids_are_unique_and_lead_to_each_other() {
        let names: BTreeSet<_> = all().map(|object| object.name).collect();
        let oids: BTreeSet<_> = all().map(|object| object.oid).collect();
        assert_eq!((names.len(), oids.len()), (all().count(), all().count()));
        for object in all() {
            assert_eq!(by_name(object.name).unwrap(), object);
            assert_eq!(by_oid(&object.oid.child(&[7, 8])).unwrap(), object);
        }
    }

    /// From the RFCs and net-snmp's MIB files, one in each group that is measured.
    #[test]
    fn instances_are_where_the_mibs_say() {
        for (name, oid) in [
            ("sysUpTime", "1.3.6.1.2.1.1.3.0"),
            ("sysUpTime.0", "1.3.6.1.2.1.1.3.0"),
            ("ifDescr.2", "1.3.6.1.2.1.2.2.1.2.2"),
            ("ifHCInOctets.3", "1.3.6.1.2.1.31.1.1.1.6.3"),
            ("ifCounterDiscontinuityTime.1", "1.3.6.1.2.1.31.1.1.1.19.1"),
            ("hrStorageUsed.31", "1.3.6.1.2.1.25.2.3.1.6.31"),
            ("dskUsed.1", "1.3.6.1.4.1.2021.9.1.8.1"),
            ("laLoadInt.1", "1.3.6.1.4.1.2021.10.1.5.1"),
            ("ssCpuRawUser.0", "1.3.6.1.4.1.2021.11.50.0"),
            ("memAvailReal.0", "1.3.6.1.4.1.2021.4.6.0"),
            ("nsCacheTimeout.1.3.6.1.2.1.2.2", "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2"),
            ("1.3.6.1.2.1.1.5.0", "1.3.6.1.2.1.1.5.0"),
            (".1.3.9", "1.3.9"),
        ] {
            assert_eq!(lookup(name).unwrap().oid.to_string(), oid, "{name}");
        }
        assert_eq!(name_of(&"1.3.6.1.2.1.31.1.1.1.6.3".parse().unwrap()), "ifHCInOctets.3");
        assert_eq!(name_of(&"1.3.9.9".parse().unwrap()), "1.3.9.9");
        assert!(lookup("ifInOctets.1").unwrap().object.unwrap().kind.is_counter());
    }

    #[test]
    fn mistakes_are_told_with_the_remedy() {
        let told = |text: &str| lookup(text).unwrap_err().to_string();
        assert!(told("ifHCInOctet.3").contains("(`ifHCInOctets` is)"));
        assert!(!told("temperature").contains("is)"));
        assert!(told("ifInOctets").contains("like `ifInOctets.1`"));
        assert!(told("sysUpTime.1").contains("one instance only"));
        assert!(told("ifInOctets.x").contains("whole numbers"));
        assert!(told("1.3.x").contains("`x`"));
    }
}
