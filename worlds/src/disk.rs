//! A disk: what was synced stays, what was only written can tear when the power goes.
//!
//! A process that is killed loses nothing that it wrote; the kernel has it. A power cut keeps of each
//! file what was synced and a random part of what was appended since, whose end can be octets that
//! nobody wrote. A file that was removed shortly before can be there again.

use std::collections::BTreeMap;

use crate::random::Random;

/// Why the disk did not do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskError {
    /// There is no room.
    Full,
    /// There is no such file.
    Missing,
}

#[derive(Debug, Clone, Default)]
struct Content {
    octets: Vec<u8>,
    synced: usize,
}

/// Files by name, and what a power cut would leave of them.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    files: BTreeMap<String, Content>,
    /// Files that were removed since the disk was last synced as a whole.
    removed: BTreeMap<String, Content>,
    /// Octets that fit; everything does when that is `None`.
    room: Option<usize>,
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets only so many octets fit from now on; what is there stays.
    pub fn set_room(&mut self, room: Option<usize>) {
        self.room = room;
    }

    /// Appends to a file, which is made where there is none. Without room a part may be written.
    ///
    /// # Errors
    /// [`DiskError::Full`] when not everything fits.
    pub fn append(&mut self, name: &str, octets: &[u8]) -> Result<(), DiskError> {
        let left = self.room.map_or(usize::MAX, |room| room.saturating_sub(self.used()));
        let fits = octets.len().min(left);
        let content = self.files.entry(name.to_owned()).or_default();
        content.octets.extend_from_slice(&octets[..fits]);
        if fits == octets.len() { Ok(()) } else { Err(DiskError::Full) }
    }

    /// Cuts a file to a length.
    ///
    /// # Errors
    /// [`DiskError::Missing`] when there is no such file.
    pub fn truncate(&mut self, name: &str, len: usize) -> Result<(), DiskError> {
        let content = self.files.get_mut(name).ok_or(DiskError::Missing)?;
        content.octets.truncate(len);
        content.synced = content.synced.min(len);
        Ok(())
    }

    /// Forces a file to the disk.
    ///
    /// # Errors
    /// [`DiskError::Missing`] when there is no such file.
    pub fn sync(&mut self, name: &str) -> Result<(), DiskError> {
        let content = self.files.get_mut(name).ok_or(DiskError::Missing)?;
        content.synced = content.octets.len();
        Ok(())
    }

    /// What a file holds.
    ///
    /// # Errors
    /// [`DiskError::Missing`] when there is no such file.
    pub fn read(&self, name: &str) -> Result<&[u8], DiskError> {
        Ok(&self.files.get(name).ok_or(DiskError::Missing)?.octets)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// [`DiskError::Missing`] when there is no such file.
    pub fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        let content = self.files.remove(name).ok_or(DiskError::Missing)?;
        self.removed.insert(name.to_owned(), content);
        Ok(())
    }

    /// The names of all files, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Octets in all files.
    pub fn used(&self) -> usize {
        self.files.values().map(|content| content.octets.len()).sum()
    }

    /// The power goes: what was not synced tears.
    pub fn cut_power(&mut self, random: &mut Random) {
        for (name, content) in std::mem::take(&mut self.removed) {
            if random.once_in(2) {
                self.files.entry(name).or_insert(content);
            }
        }
        for content in self.files.values_mut() {
            let unsynced = content.octets.len() - content.synced;
            let kept = content.synced + random.index(unsynced + 1);
            content.octets.truncate(kept);
            // Blocks that were allocated and never written.
            let unwritten = random.index(unsynced + content.synced - kept + 1);
            if random.once_in(3) {
                content.octets.resize(kept + unwritten, 0);
            }
            content.synced = content.octets.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_survives_every_power_cut_and_what_was_not_sometimes_tears() {
        let (mut torn, mut zeros, mut back) = (0, 0, 0);
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut disk = Disk::new();
            disk.append("a", b"synced").unwrap();
            disk.sync("a").unwrap();
            disk.append("a", b", not synced").unwrap();
            disk.append("b", b"gone").unwrap();
            disk.remove("b").unwrap();
            assert_eq!(disk.read("b"), Err(DiskError::Missing));
            disk.cut_power(&mut random);
            let left = disk.read("a").unwrap();
            assert!(left.starts_with(b"synced"), "seed {seed}");
            assert!(left.len() <= "synced, not synced".len());
            torn += u32::from(left.len() < 18);
            zeros += u32::from(left.ends_with(&[0]));
            back += u32::from(disk.names().any(|name| name == "b"));
        }
        assert!(torn > 100 && zeros > 20 && (50..150).contains(&back), "{torn} {zeros} {back}");
    }

    #[test]
    fn a_full_disk_takes_what_fits_and_says_so() {
        let mut disk = Disk::new();
        disk.set_room(Some(10));
        disk.append("a", b"12345678").unwrap();
        assert_eq!(disk.append("b", b"9012"), Err(DiskError::Full));
        assert_eq!((disk.read("b").unwrap(), disk.used()), (&b"90"[..], 10));
        disk.remove("a").unwrap();
        disk.truncate("b", 0).unwrap();
        disk.append("b", b"9012").unwrap();
        assert_eq!(disk.names().collect::<Vec<_>>(), ["b"]);
    }
}
