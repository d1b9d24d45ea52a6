//! Which blocks of an image are others than in an earlier generation.

use std::io;

use crate::exchange::Blocks as _;
use crate::increment::{Hash, hash_of};
use crate::pace::Pace;

use super::Stored;

/// An image compared with that of an earlier generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    changed: Vec<bool>,
    hashes: Vec<Hash>,
}

impl Changes {
    /// Compares an image with a stored one of the same length: by hashes of its blocks where they are known, and else
    /// by reading it. Nothing is written, so that the pace limits only what of a processor is taken.
    ///
    /// # Errors
    /// When the stored image has to be read and cannot be, or is damaged.
    ///
    /// # Panics
    /// If the images differ in length.
    pub fn find(
        base: &Stored,
        known: Option<&[Hash]>,
        image: &[u8],
        pace: &Pace,
    ) -> io::Result<Self> {
        let (geometry, place) = (base.geometry(), base.manifest().place);
        assert_eq!(image.len() as u64, geometry.lens()[place], "images of one length are compared");
        let block = usize::try_from(geometry.block()).expect("a block fits memory");
        let hash = |octets: &[u8]| {
            pace.rest();
            hash_of(octets)
        };
        let hashes: Vec<Hash> = image.chunks(block).map(hash).collect();
        let known = known.filter(|known| known.len() == hashes.len());
        let mut scratch = Vec::new();
        let compare = |(index, octets): (u64, &[u8])| {
            let (stripe, shard) = geometry.image_block(index);
            Ok(base.block(stripe, shard, &mut scratch)? != octets)
        };
        let changed = match known {
            Some(known) => known.iter().zip(&hashes).map(|(old, new)| old != new).collect(),
            None => (0..).zip(image.chunks(block)).map(compare).collect::<io::Result<_>>()?,
        };
        Ok(Self { changed, hashes })
    }

    /// Whether this block of the image, counted from its begin, is another; one beyond its end is not.
    pub(super) fn has(&self, index: u64) -> bool {
        usize::try_from(index).is_ok_and(|at| self.changed.get(at) == Some(&true))
    }

    /// How many blocks are others.
    pub fn blocks(&self) -> u64 {
        self.changed.iter().map(|changed| u64::from(*changed)).sum()
    }

    /// The hashes of the image's blocks, for the next comparison.
    pub fn into_hashes(self) -> Vec<Hash> {
        self.hashes
    }
}
