//! What was mapped where in each process, as time went on.
//!
//! A process keeps what it has mapped until it executes another program; one that begins has what the
//! one that began it had. A number that is used again belongs to another process from then on, and so
//! does one that was there when another recording began, maybe after a boot.

use std::collections::BTreeMap;
use std::rc::Rc;

/// A file as a process had mapped it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappedFile {
    /// The file, as its process sees it.
    pub path: Rc<str>,
    /// Its build ID, hexadecimal.
    pub build_id: Option<Rc<str>>,
    /// Its inode where it has none.
    pub inode: Option<u64>,
    /// Where it has none, when it was first seen mapped, ns since the epoch; else 0.
    pub since: i64,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// What lay there, as its process had mapped it.
    pub file: MappedFile,
    /// Octets from its begin.
    pub offset: u64,
}

/// A process of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// The host, by the number that the caller gives it.
    pub host: usize,
    /// Its number there.
    pub pid: u64,
}

/// Code that was mapped.
#[derive(Debug, Clone)]
struct Mapped {
    time: i64,
    address: u64,
    size: u64,
    offset: u64,
    file: MappedFile,
}

/// What was mapped, some of which others share.
#[derive(Debug, Clone, Default)]
struct Layer {
    mapped: Vec<Mapped>,
    /// What was mapped before, which does not change any more.
    below: Option<Rc<Self>>,
    /// Layers below this one.
    depth: usize,
}

/// Layers that lie upon each other at most, before they are made one.
const LAYERS_MAX: usize = 64;

impl Layer {
    /// What is mapped, the newest first.
    fn newest_first(&self) -> impl Iterator<Item = &Mapped> {
        let layers = std::iter::successors(Some(self), |layer| layer.below.as_deref());
        layers.flat_map(|layer| layer.mapped.iter().rev())
    }

    /// What is mapped now as the begin of another process, which shares it.
    fn shared(&mut self) -> Self {
        if !self.mapped.is_empty() {
            if self.depth >= LAYERS_MAX {
                let mut all: Vec<Mapped> = self.newest_first().cloned().collect();
                all.reverse();
                *self = Self { mapped: all, below: None, depth: 0 };
            }
            let whole = std::mem::take(self);
            self.depth = whole.depth + 1;
            self.below = Some(Rc::new(whole));
        }
        Self { mapped: Vec::new(), below: self.below.clone(), depth: self.depth }
    }
}

/// What a process had from some time on.
#[derive(Debug, Clone, Default)]
struct Era {
    from: i64,
    top: Layer,
}

/// When what a process had mapped changed, in the order of time.
fn changes_of(eras: &[Era]) -> Vec<i64> {
    let mapped = eras.iter().flat_map(|era| era.top.newest_first()).map(|mapped| mapped.time);
    let mut changes: Vec<i64> = eras.iter().map(|era| era.from).chain(mapped).collect();
    changes.sort_unstable();
    changes.dedup();
    changes
}

/// What was mapped in every process of some hosts.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    processes: BTreeMap<Process, Vec<Era>>,
}

impl AddressSpaces {
    /// Code was mapped. Rows must be given in the order of their times.
    pub fn mapped(
        &mut self,
        (time, process): (i64, Process),
        [address, size, offset]: [u64; 3],
        file: MappedFile,
    ) {
        let eras = self.processes.entry(process).or_default();
        if eras.is_empty() {
            eras.push(Era::default());
        }
        if let Some(era) = eras.last_mut() {
            era.top.mapped.push(Mapped { time, address, size, offset, file });
        }
    }

    /// A process executed another program.
    pub fn executed(&mut self, time: i64, process: Process) {
        self.begin(time, process, Layer::default());
    }

    /// A process was there when recording began: nothing that was known of its number before is about
    /// it. Each of its threads may say so.
    pub fn there(&mut self, time: i64, process: Process) {
        let last = self.processes.get(&process).and_then(|eras| eras.last());
        if last.is_none_or(|era| era.from != time) {
            self.begin(time, process, Layer::default());
        }
    }

    /// A process began another one.
    pub fn forked(&mut self, time: i64, process: Process, parent: Process) {
        let of_parent = self.processes.get_mut(&parent).and_then(|eras| eras.last_mut());
        let top = of_parent.map(|era| era.top.shared()).unwrap_or_default();
        self.begin(time, process, top);
    }

    fn begin(&mut self, from: i64, process: Process, top: Layer) {
        self.processes.entry(process).or_default().push(Era { from, top });
    }

    /// Since when a process was what it was at a time: it began, executed its program, or was there when
    /// that was written down; `None` where nothing is known about it.
    pub fn since(&self, time: i64, process: Process) -> Option<i64> {
        let eras = self.processes.get(&process)?;
        eras[..eras.partition_point(|era| era.from <= time)].last().map(|era| era.from)
    }

    /// When what a process had mapped changed, in the order of time: between two of these instants its
    /// addresses mean what they mean.
    pub fn changes(&self, process: Process) -> Vec<i64> {
        changes_of(self.processes.get(&process).map(Vec::as_slice).unwrap_or_default())
    }

    /// As [`AddressSpaces::changes`], of every process.
    pub(crate) fn all_changes(&self) -> impl Iterator<Item = (Process, Vec<i64>)> {
        self.processes.iter().map(|(process, eras)| (*process, changes_of(eras)))
    }

    /// Where an address of a process lay at a time; `None` where nothing is known to be mapped there.
    pub fn place(&self, time: i64, process: Process, address: u64) -> Option<Place> {
        let eras = self.processes.get(&process)?;
        let at = eras.partition_point(|era| era.from <= time).saturating_sub(1);
        let covers = |mapped: &&Mapped| {
            address.checked_sub(mapped.address).is_some_and(|into| into < mapped.size)
        };
        let top = &eras.get(at)?.top;
        let before = top.newest_first().find(|mapped| mapped.time <= time && covers(mapped));
        // Before it was first heard of, an address is what it was when it was.
        let mapped = before.or_else(|| top.newest_first().filter(covers).last())?;
        // Whoever maps chooses both: what lies beyond the last octet of all files is in none.
        let offset = (address - mapped.address).wrapping_add(mapped.offset);
        Some(Place { file: mapped.file.clone(), offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: Process = Process { host: 0, pid: 7 };
    const EIGHT: Process = Process { host: 0, pid: 8 };

    fn file(name: &str) -> MappedFile {
        MappedFile { path: name.into(), build_id: None, inode: None, since: 0 }
    }

    fn path_at(
        spaces: &AddressSpaces,
        time: i64,
        process: Process,
        address: u64,
    ) -> Option<(String, u64)> {
        let place = spaces.place(time, process, address)?;
        Some((place.file.path.to_string(), place.offset))
    }

    #[test]
    fn an_address_means_what_was_mapped_then() {
        let mut spaces = AddressSpaces::default();
        spaces.mapped((10, SEVEN), [0x1000, 0x1000, 0], file("a"));
        spaces.mapped((20, SEVEN), [0x1000, 0x1000, 0x3000], file("b"));
        spaces.executed(30, SEVEN);
        spaces.mapped((31, SEVEN), [0x5000, 0x10, 0], file("c"));
        assert_eq!(path_at(&spaces, 15, SEVEN, 0x1800), Some(("a".into(), 0x800)));
        assert_eq!(path_at(&spaces, 25, SEVEN, 0x1800), Some(("b".into(), 0x3800)));
        assert_eq!(path_at(&spaces, 35, SEVEN, 0x1800), None);
        assert_eq!(path_at(&spaces, 35, SEVEN, 0x500f), Some(("c".into(), 0xf)));
        assert_eq!(path_at(&spaces, 35, SEVEN, 0x5010), None);
        // Before it was first heard of: the mapping that covers it.
        assert_eq!(path_at(&spaces, 5, SEVEN, 0x1800), Some(("a".into(), 0x800)));
        assert_eq!(path_at(&spaces, 15, EIGHT, 0x1800), None);
    }

    #[test]
    fn a_process_has_what_the_one_had_that_began_it_and_a_number_can_be_used_again() {
        let mut spaces = AddressSpaces::default();
        spaces.mapped((10, SEVEN), [0x1000, 0x1000, 0], file("a"));
        spaces.forked(20, EIGHT, SEVEN);
        spaces.executed(30, SEVEN);
        spaces.mapped((31, SEVEN), [0x1000, 0x1000, 0], file("b"));
        assert_eq!(path_at(&spaces, 40, EIGHT, 0x1001), Some(("a".into(), 1)));
        spaces.forked(50, EIGHT, SEVEN);
        assert_eq!(path_at(&spaces, 49, EIGHT, 0x1001), Some(("a".into(), 1)));
        assert_eq!(path_at(&spaces, 51, EIGHT, 0x1001), Some(("b".into(), 1)));
    }

    #[test]
    fn what_is_there_when_a_recording_goes_on_is_another_process_and_so_is_one_of_another_host() {
        let mut spaces = AddressSpaces::default();
        spaces.mapped((10, SEVEN), [0x1000, 0x1000, 0], file("a"));
        // Each of its threads says that it is there.
        spaces.there(30, SEVEN);
        spaces.mapped((30, SEVEN), [0x5000, 0x1000, 0], file("b"));
        spaces.there(30, SEVEN);
        assert_eq!(path_at(&spaces, 20, SEVEN, 0x1001), Some(("a".into(), 1)));
        assert_eq!(path_at(&spaces, 40, SEVEN, 0x1001), None);
        assert_eq!(path_at(&spaces, 40, SEVEN, 0x5001), Some(("b".into(), 1)));
        assert_eq!([20, 40].map(|time| spaces.since(time, SEVEN)), [Some(0), Some(30)]);
        let elsewhere = Process { host: 1, ..SEVEN };
        assert_eq!(path_at(&spaces, 20, elsewhere, 0x1001), None);
    }

    #[test]
    fn an_offset_that_somebody_made_up_stops_nothing() {
        let mut spaces = AddressSpaces::default();
        spaces.mapped((10, SEVEN), [0x1000, u64::MAX, u64::MAX], file("a"));
        assert_eq!(path_at(&spaces, 15, SEVEN, 0x1002), Some(("a".into(), 1)));
    }

    #[test]
    fn processes_share_what_they_had_in_common_and_know_what_one_has_mapped_since() {
        let mut spaces = AddressSpaces::default();
        for at in 0..1_000 {
            spaces.mapped((10, SEVEN), [at << 12, 0x1000, 0], file(&format!("old {at}")));
        }
        // A server that begins processes and maps something between, more often than layers are kept.
        let count = 3 * i64::try_from(LAYERS_MAX).unwrap();
        for at in 0..count {
            let address = 0x1000_0000 + (at.unsigned_abs() << 12);
            spaces.mapped((100 + at, SEVEN), [address, 0x1000, 0], file(&format!("new {at}")));
            let begun = Process { host: 0, pid: 1_000 + at.unsigned_abs() };
            spaces.forked(100 + at, begun, SEVEN);
        }
        for at in 0..count {
            let begun = Process { host: 0, pid: 1_000 + at.unsigned_abs() };
            assert_eq!(path_at(&spaces, 900, begun, 0x5001), Some(("old 5".into(), 1)));
            for (other, is_there) in [(0, true), (at, true), (at + 1, false)] {
                let address = 0x1000_0000 + (other.unsigned_abs() << 12);
                let expected = is_there.then(|| (format!("new {other}"), 0));
                assert_eq!(path_at(&spaces, 900, begun, address), expected, "{at}, {other}");
            }
        }
        let own = |eras: &Vec<Era>| eras.iter().map(|era| era.top.mapped.len()).sum::<usize>();
        assert_eq!(spaces.processes.values().map(own).sum::<usize>(), 0);
        let mut layers: BTreeMap<*const Layer, usize> = BTreeMap::new();
        for era in spaces.processes.values().flatten() {
            let mut below = era.top.below.as_ref();
            while let Some(layer) = below {
                layers.insert(Rc::as_ptr(layer), layer.mapped.len());
                below = layer.below.as_ref();
            }
        }
        // One copy for each time that the layers were made one, and not one for each process.
        assert!(layers.values().sum::<usize>() < 5 * 1_200, "{}", layers.values().sum::<usize>());
    }
}
