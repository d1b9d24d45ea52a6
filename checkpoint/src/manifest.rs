//! What a host has of one generation, in a file of its own that says whether it is whole.
//!
//! A manifest is written last, when image and parity are on the disk, and ends with a checksum over all
//! of it. So a generation whose manifest cannot be read was never whole, and one whose manifest can be
//! read says of every stored block what it must be. The same generation of the same host always has the
//! same manifest, octet for octet: also after it was rebuilt.

use serde::{Deserialize, Serialize};

use crate::charter::Generation;
use crate::geometry::{Geometry, GeometryError};
use crate::layout::{Layout, LayoutError, Scheme};

/// The first octets of a manifest: what it is, and the version of its form.
const MAGIC: [u8; 8] = *b"meikyoC1";

/// What a host has of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The generation that image and parity are of.
    pub generation: Generation,
    /// The membership version that it was written under.
    pub version: u64,
    /// The place of the host.
    pub place: usize,
    /// The scheme that the parity follows.
    pub scheme: Scheme,
    /// Octets of a whole block.
    pub block: u32,
    /// Octets of each host's image.
    pub lens: Vec<u64>,
    /// The CRC-32 of each block of the image.
    pub image: Vec<u32>,
    /// The CRC-32 of each block of the parity.
    pub parity: Vec<u32>,
}

/// Why octets are no manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is too short, or begins otherwise.
    #[error("it does not begin as a manifest of this version does")]
    Foreign,
    /// Its checksum is that of something else.
    #[error("its checksum is {found:08x}, and that of its octets {computed:08x}")]
    Checksum {
        /// What stands in it.
        found: u32,
        /// What it should be.
        computed: u32,
    },
    /// Its octets mean nothing.
    #[error("its fields cannot be read")]
    Fields,
    /// There is no such group.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// There are no such blocks.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// It has not as many checksums as blocks.
    #[error("it has {found} checksums for {blocks} blocks")]
    Blocks {
        /// Checksums.
        found: u64,
        /// How many blocks there are by its lengths.
        blocks: u64,
    },
}

impl Manifest {
    /// As octets.
    ///
    /// # Panics
    /// Never: what a manifest is made of can be written to memory.
    pub fn octets(&self) -> Vec<u8> {
        let octets = postcard::to_extend(self, MAGIC.to_vec());
        let mut octets = octets.expect("numbers and lists of numbers can be written");
        let checksum = crc32fast::hash(&octets);
        octets.extend_from_slice(&checksum.to_le_bytes());
        octets
    }

    /// The checksum that a manifest ends with, which is what a group agrees on.
    ///
    /// # Panics
    /// If the octets are none that [`Manifest::octets`] gave.
    pub fn checksum(octets: &[u8]) -> u32 {
        let last = octets.last_chunk().expect("a manifest ends with its checksum");
        u32::from_le_bytes(*last)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// When it is none, was written in part or has been damaged.
    pub fn read(octets: &[u8]) -> Result<(Self, Geometry), ManifestError> {
        let (rest, last) = octets.split_last_chunk().ok_or(ManifestError::Foreign)?;
        let fields = rest.strip_prefix(&MAGIC).ok_or(ManifestError::Foreign)?;
        let (found, computed) = (u32::from_le_bytes(*last), crc32fast::hash(rest));
        if found != computed {
            return Err(ManifestError::Checksum { found, computed });
        }
        let manifest: Self = postcard::from_bytes(fields).map_err(|_| ManifestError::Fields)?;
        let layout = Layout::new(manifest.scheme, manifest.lens.len())?;
        if manifest.place >= layout.hosts() {
            return Err(ManifestError::Fields);
        }
        let geometry = Geometry::new(layout, manifest.block, manifest.lens.clone())?;
        let tables = [
            (manifest.image.len() as u64, geometry.image_blocks(manifest.place)),
            (manifest.parity.len() as u64, geometry.parity_blocks()),
        ];
        match tables.into_iter().find(|(found, blocks)| found != blocks) {
            Some((found, blocks)) => Err(ManifestError::Blocks { found, blocks }),
            None => Ok((manifest, geometry)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            generation: Generation(7),
            version: 2,
            place: 1,
            scheme: Scheme::Ring,
            block: 64,
            lens: vec![100, 200, 300],
            image: vec![1, 2, 3, 4],
            parity: vec![5, 6, 7],
        }
    }

    #[test]
    fn a_manifest_is_read_as_written_and_any_changed_octet_or_missing_end_is_found() {
        let octets = manifest().octets();
        let (read, geometry) = Manifest::read(&octets).unwrap();
        assert_eq!((read, geometry.stripes()), (manifest(), 3));
        for at in 0..octets.len() {
            for bit in 0..8 {
                let mut damaged = octets.clone();
                damaged[at] ^= 1 << bit;
                assert!(Manifest::read(&damaged).is_err(), "octet {at}, bit {bit}");
            }
            assert!(Manifest::read(&octets[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn tables_that_do_not_fit_the_blocks_are_refused() {
        let short = Manifest { image: vec![1, 2, 3], ..manifest() }.octets();
        let error = Manifest::read(&short).unwrap_err();
        assert_eq!(error, ManifestError::Blocks { found: 3, blocks: 4 });
        let alone = Manifest { lens: vec![100], ..manifest() }.octets();
        assert!(matches!(Manifest::read(&alone), Err(ManifestError::Layout(_))));
    }
}
