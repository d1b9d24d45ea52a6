//! What was mapped where in each process, as time went on.
//!
//! A process keeps what it has mapped until it executes another program; one that begins has what the
//! one that began it had. A number that is used again belongs to another process from then on.

use std::collections::BTreeMap;
use std::rc::Rc;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as its process sees it.
    pub path: Rc<str>,
    /// Its build ID, hexadecimal.
    pub build_id: Option<Rc<str>>,
    /// Octets from its begin.
    pub offset: u64,
}

/// Code that was mapped.
#[derive(Debug, Clone)]
struct Mapped {
    time: i64,
    address: u64,
    size: u64,
    offset: u64,
    path: Rc<str>,
    build_id: Option<Rc<str>>,
}

/// What a process had from some time on.
#[derive(Debug, Clone, Default)]
struct Era {
    from: i64,
    mapped: Vec<Mapped>,
}

/// What was mapped in every process of a host.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    processes: BTreeMap<u64, Vec<Era>>,
}

impl AddressSpaces {
    /// Code was mapped. Rows must be given in the order of their times.
    pub fn mapped(
        &mut self,
        (time, pid): (i64, u64),
        [address, size, offset]: [u64; 3],
        path: &Rc<str>,
        build_id: Option<&Rc<str>>,
    ) {
        let eras = self.processes.entry(pid).or_default();
        if eras.is_empty() {
            eras.push(Era::default());
        }
        let (path, build_id) = (Rc::clone(path), build_id.map(Rc::clone));
        if let Some(era) = eras.last_mut() {
            era.mapped.push(Mapped { time, address, size, offset, path, build_id });
        }
    }

    /// A process executed another program.
    pub fn executed(&mut self, time: i64, pid: u64) {
        self.processes.entry(pid).or_default().push(Era { from: time, mapped: Vec::new() });
    }

    /// A process began another one.
    pub fn forked(&mut self, time: i64, pid: u64, parent: u64) {
        let of_parent = self.processes.get(&parent).and_then(|eras| eras.last());
        let mapped = of_parent.map(|era| era.mapped.clone()).unwrap_or_default();
        self.processes.entry(pid).or_default().push(Era { from: time, mapped });
    }

    /// Where an address of a process lay at a time; `None` where nothing is known to be mapped there.
    pub fn place(&self, time: i64, pid: u64, address: u64) -> Option<Place> {
        let eras = self.processes.get(&pid)?;
        let at = eras.partition_point(|era| era.from <= time).saturating_sub(1);
        let covers = |mapped: &&Mapped| {
            address.checked_sub(mapped.address).is_some_and(|into| into < mapped.size)
        };
        let mapped = &eras.get(at)?.mapped;
        let before = mapped.iter().rev().find(|mapped| mapped.time <= time && covers(mapped));
        // What was read from /proc stands with the time when it was read.
        let mapped = before.or_else(|| mapped.iter().find(covers))?;
        let offset = address - mapped.address + mapped.offset;
        let (path, build_id) = (Rc::clone(&mapped.path), mapped.build_id.clone());
        Some(Place { path, build_id, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_at(spaces: &AddressSpaces, time: i64, pid: u64, address: u64) -> Option<(String, u64)> {
        let place = spaces.place(time, pid, address)?;
        Some((place.path.to_string(), place.offset))
    }

    #[test]
    fn an_address_means_what_was_mapped_then() {
        let mut spaces = AddressSpaces::default();
        let [a, b, c] = ["a", "b", "c"].map(Rc::<str>::from);
        spaces.mapped((10, 7), [0x1000, 0x1000, 0], &a, None);
        spaces.mapped((20, 7), [0x1000, 0x1000, 0x3000], &b, None);
        spaces.executed(30, 7);
        spaces.mapped((31, 7), [0x5000, 0x10, 0], &c, None);
        assert_eq!(path_at(&spaces, 15, 7, 0x1800), Some(("a".into(), 0x800)));
        assert_eq!(path_at(&spaces, 25, 7, 0x1800), Some(("b".into(), 0x3800)));
        assert_eq!(path_at(&spaces, 35, 7, 0x1800), None);
        assert_eq!(path_at(&spaces, 35, 7, 0x500f), Some(("c".into(), 0xf)));
        assert_eq!(path_at(&spaces, 35, 7, 0x5010), None);
        // Before it was first heard of: the mapping that covers it.
        assert_eq!(path_at(&spaces, 5, 7, 0x1800), Some(("a".into(), 0x800)));
        assert_eq!(path_at(&spaces, 15, 8, 0x1800), None);
    }

    #[test]
    fn a_process_has_what_the_one_had_that_began_it_and_a_number_can_be_used_again() {
        let mut spaces = AddressSpaces::default();
        let [a, b] = ["a", "b"].map(Rc::<str>::from);
        spaces.mapped((10, 7), [0x1000, 0x1000, 0], &a, None);
        spaces.forked(20, 8, 7);
        spaces.executed(30, 7);
        spaces.mapped((31, 7), [0x1000, 0x1000, 0], &b, None);
        assert_eq!(path_at(&spaces, 40, 8, 0x1001), Some(("a".into(), 1)));
        spaces.forked(50, 8, 7);
        assert_eq!(path_at(&spaces, 49, 8, 0x1001), Some(("a".into(), 1)));
        assert_eq!(path_at(&spaces, 51, 8, 0x1001), Some(("b".into(), 1)));
    }
}
