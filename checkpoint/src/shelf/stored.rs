//! A generation as it is read: nothing is given out that was not compared with its checksum.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::{IMAGE, MANIFEST, PARITY};
use crate::exchange::Blocks;
use crate::geometry::{Geometry, MANIFEST_BYTES_MAX};
use crate::layout::Shard;
use crate::manifest::{Manifest, ManifestError};

/// Why a generation cannot be read here.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoredError {
    /// A file is not there or cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The manifest is none: the generation was never whole here, or has been damaged.
    #[error("`{path}` is not whole")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ManifestError,
    },
}

/// A block that is not what was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The stripe that the block is of.
    pub stripe: u32,
    /// Which of the host's blocks in it.
    pub shard: Shard,
}

/// A generation of this host on its disk.
#[derive(Debug)]
pub struct Stored {
    directory: PathBuf,
    manifest: Manifest,
    geometry: Geometry,
    checksum: u32,
    image: File,
    parity: File,
}

impl Stored {
    /// Opens a generation; its blocks are checked as they are read.
    ///
    /// # Errors
    /// When it is not whole.
    pub fn open(directory: &Path) -> Result<Self, OpenStoredError> {
        let read = |name: &str| {
            let path = directory.join(name);
            File::open(&path).map_err(|source| OpenStoredError::Read { path, source })
        };
        let path = directory.join(MANIFEST);
        let mut octets = Vec::new();
        let limited = read(MANIFEST)?.take(MANIFEST_BYTES_MAX).read_to_end(&mut octets);
        limited.map_err(|source| OpenStoredError::Read { path: path.clone(), source })?;
        let (manifest, geometry) =
            Manifest::read(&octets).map_err(|source| OpenStoredError::Manifest { path, source })?;
        let (image, parity) = (read(IMAGE)?, read(PARITY)?);
        let directory = directory.to_owned();
        Ok(Self {
            directory,
            checksum: Manifest::checksum(&octets),
            manifest,
            geometry,
            image,
            parity,
        })
    }

    /// What it says of itself.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its blocks.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The checksum of its manifest.
    pub const fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Forces all of it to the disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.image.sync_all()?;
        self.parity.sync_all()?;
        File::open(self.directory.join(MANIFEST))?.sync_all()?;
        super::sync_directory(&self.directory)
    }

    /// Every block that cannot be read or is not what was stored.
    pub fn damages(&self) -> Vec<Damage> {
        let layout = *self.geometry.layout();
        let shards = move |_| {
            let data = (0..layout.data()).map(Shard::Data);
            data.chain((0..layout.parity()).map(Shard::Parity))
        };
        let all = (0..self.geometry.stripes())
            .flat_map(|stripe| shards(stripe).map(move |shard| (stripe, shard)));
        let mut scratch = Vec::new();
        all.filter(|&(stripe, shard)| self.block(stripe, shard, &mut scratch).is_err())
            .map(|(stripe, shard)| Damage { stripe, shard })
            .collect()
    }

    /// Gives the image, block by block.
    ///
    /// # Errors
    /// What `give` said, or that a block is damaged.
    pub fn read_image(&self, mut give: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut scratch = Vec::new();
        for index in 0..self.geometry.image_blocks(self.manifest.place) {
            let (stripe, shard) = self.geometry.image_block(index);
            give(self.block(stripe, shard, &mut scratch)?)?;
        }
        Ok(())
    }
}

impl Blocks for Stored {
    fn block<'a>(
        &'a self,
        stripe: u32,
        shard: Shard,
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        let (file, table, name) = match shard {
            Shard::Data(_) => (&self.image, &self.manifest.image, IMAGE),
            Shard::Parity(_) => (&self.parity, &self.manifest.parity, PARITY),
        };
        scratch.resize(self.geometry.len_of(self.manifest.place, stripe, shard), 0);
        if scratch.is_empty() {
            return Ok(scratch);
        }
        let offset = self.geometry.offset(stripe, shard);
        file.read_exact_at(scratch, offset)?;
        let index = usize::try_from(self.geometry.index(stripe, shard)).ok();
        let expected = index.and_then(|index| table.get(index)).copied();
        if expected != Some(crc32fast::hash(scratch)) {
            let text = format!("`{name}` is damaged in the block that begins at octet {offset}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(scratch)
    }
}
