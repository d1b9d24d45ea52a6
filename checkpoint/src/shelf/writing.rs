//! Blocks on their way to the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{IMAGE, PARITY, ShelfError, Shelved, create, create_directory, in_file};
use crate::exchange::Keep;
use crate::geometry::Geometry;
use crate::layout::Shard;
use crate::pace::Pace;
use crate::schedule::Schedule;

/// Blocks whose memory is kept for others.
const SPARE_BLOCKS_MAX: usize = 64;

/// The checksum of a block of no octets.
const EMPTY: u32 = 0;

/// Image and parity as they are written.
pub(super) struct Writing<'a> {
    geometry: &'a Geometry,
    pace: &'a Pace,
    image: File,
    parity: File,
    image_checksums: Vec<AtomicU32>,
    parity_checksums: Vec<AtomicU32>,
    spare: Mutex<Vec<Vec<u8>>>,
    /// Nobody needs what would still be written.
    is_stopped: AtomicBool,
}

impl<'a> Writing<'a> {
    pub(super) fn begin(shelved: &Shelved<'a>, schedule: &'a Schedule) -> Result<Self, ShelfError> {
        let geometry = schedule.geometry();
        create_directory(shelved.directory).map_err(in_file(shelved, ""))?;
        let file = |name| create(&shelved.directory.join(name)).map_err(in_file(shelved, name));
        let table = |blocks: u64| (0..blocks).map(|_| AtomicU32::new(EMPTY)).collect();
        Ok(Self {
            geometry,
            pace: shelved.pace,
            image: file(IMAGE)?,
            parity: file(PARITY)?,
            image_checksums: table(geometry.image_blocks(shelved.place)),
            parity_checksums: table(geometry.parity_blocks()),
            spare: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        })
    }

    /// Writes nothing more.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn write_image(&self, image: &[u8]) -> io::Result<()> {
        let block = usize::try_from(self.geometry.block()).expect("a block fits memory");
        for (octets, index) in image.chunks(block).zip(0..) {
            let (stripe, shard) = self.geometry.image_block(index);
            self.write(stripe, shard, octets)?;
        }
        Ok(())
    }

    pub(super) fn write(&self, stripe: u32, shard: Shard, octets: &[u8]) -> io::Result<()> {
        let (file, table) = match shard {
            Shard::Data(_) => (&self.image, &self.image_checksums),
            Shard::Parity(_) => (&self.parity, &self.parity_checksums),
        };
        let index = usize::try_from(self.geometry.index(stripe, shard));
        let checksum = index.ok().and_then(|index| table.get(index));
        let Some(checksum) = checksum else {
            // Beyond the end of an image there are no octets to write.
            return Ok(());
        };
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.pace.wait_for(octets.len());
        checksum.store(crc32fast::hash(octets), Ordering::Relaxed);
        file.write_all_at(octets, self.geometry.offset(stripe, shard))
    }

    /// Forces both files to the disk; the checksums of their blocks.
    pub(super) fn finish(self) -> io::Result<(Vec<u32>, Vec<u32>)> {
        self.image.sync_all()?;
        self.parity.sync_all()?;
        let plain = |table: Vec<AtomicU32>| table.into_iter().map(AtomicU32::into_inner).collect();
        Ok((plain(self.image_checksums), plain(self.parity_checksums)))
    }
}

impl Keep for Writing<'_> {
    fn keep(&self, stripe: u32, shard: Shard, octets: Vec<u8>) -> io::Result<()> {
        self.write(stripe, shard, &octets)?;
        let mut spare = self.spare.lock().expect("no thread panics under this lock");
        if spare.len() < SPARE_BLOCKS_MAX {
            spare.push(octets);
        }
        Ok(())
    }

    fn memory(&self) -> Vec<u8> {
        let mut spare = self.spare.lock().expect("no thread panics under this lock");
        spare.pop().unwrap_or_default()
    }
}

/// What a host keeps that only gives.
pub(super) struct NothingToKeep;

impl Keep for NothingToKeep {
    fn keep(&self, _: u32, _: Shard, _: Vec<u8>) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "this host has all that it keeps"))
    }
}
