//! Where the blocks of one generation lie: images of given lengths, cut by a layout.

use crate::coding::BLOCK_UNIT;
use crate::layout::{Layout, Shard};

/// Smallest block.
pub const BLOCK_MIN: u32 = 64;

const _: () = assert!(BLOCK_MIN as usize == BLOCK_UNIT, "the least block is the code's unit");

/// Largest block: what a host takes memory for when another says that one comes.
pub const BLOCK_MAX: u32 = 4 << 20;

/// The block that is taken when nothing else is asked for; it fits the cache beside another.
pub const BLOCK_DEFAULT: u32 = 256 << 10;

/// Largest image of a host.
pub const IMAGE_MAX: u64 = 1 << 46;

/// Longest manifest that is read; a longer one is not written, since there is no such [`Geometry`].
pub const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// Most blocks of image and parity on a host: a checksum of each, of at most five octets, stands in the manifest
/// beside some numbers per host.
const BLOCKS_MAX: u64 = (MANIFEST_BYTES_MAX - (64 << 10)) / 5;

/// Why there is no such geometry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// A block of that size is not possible.
    #[error(
        "a block of {0} octets is not possible: {BLOCK_MIN} to {BLOCK_MAX}, a multiple of {BLOCK_UNIT}"
    )]
    Block(u32),
    /// There are not as many images as hosts.
    #[error("{images} images are not those of {hosts} hosts")]
    Images {
        /// How many lengths of images were given.
        images: usize,
        /// How many hosts the layout has.
        hosts: usize,
    },
    /// The checksums of so many blocks do not fit a manifest.
    #[error(
        "an image of {longest} octets in blocks of {block} has {blocks} blocks with parity, and a host keeps at \
         most {BLOCKS_MAX}: take larger blocks"
    )]
    Blocks {
        /// Blocks of the longest image and of parity.
        blocks: u64,
        /// Octets of the longest image.
        longest: u64,
        /// Octets of a block.
        block: u32,
    },
    /// An image is too large.
    #[error("an image of {0} octets is larger than {IMAGE_MAX}")]
    Image(u64),
}

/// The blocks of one generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    layout: Layout,
    block: u32,
    lens: Vec<u64>,
    stripes: u32,
}

impl Geometry {
    /// The blocks of images of `lens` octets, one of each host.
    ///
    /// # Errors
    /// When the block's size or an image's length is not possible.
    pub fn new(layout: Layout, block: u32, lens: Vec<u64>) -> Result<Self, GeometryError> {
        if !(BLOCK_MIN..=BLOCK_MAX).contains(&block) || !block.is_multiple_of(BLOCK_MIN) {
            return Err(GeometryError::Block(block));
        }
        if lens.len() != layout.hosts() {
            return Err(GeometryError::Images { images: lens.len(), hosts: layout.hosts() });
        }
        let longest = lens.iter().copied().max().unwrap_or(0);
        if longest > IMAGE_MAX {
            return Err(GeometryError::Image(longest));
        }
        let stripes = u32::try_from(layout.stripes(longest, block.into()));
        let stripes = stripes.map_err(|_| GeometryError::Image(longest))?;
        let blocks = longest.div_ceil(block.into()) + u64::from(stripes) * layout.parity() as u64;
        if blocks > BLOCKS_MAX {
            return Err(GeometryError::Blocks { blocks, longest, block });
        }
        Ok(Self { layout, block, lens, stripes })
    }

    /// Which host keeps which block.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Octets of a whole block.
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// Octets of each host's image.
    pub fn lens(&self) -> &[u64] {
        &self.lens
    }

    /// How many stripes there are.
    pub const fn stripes(&self) -> u32 {
        self.stripes
    }

    /// The number of a block among the blocks of its kind on its host, in the order of their files.
    pub const fn index(&self, stripe: u32, shard: Shard) -> u64 {
        match shard {
            Shard::Data(at) => stripe as u64 * self.layout.data() as u64 + at as u64,
            Shard::Parity(at) => stripe as u64 * self.layout.parity() as u64 + at as u64,
        }
    }

    /// Where a block begins in the file of its kind.
    pub const fn offset(&self, stripe: u32, shard: Shard) -> u64 {
        self.index(stripe, shard) * self.block as u64
    }

    /// Octets of a block: fewer at an image's end, and none beyond.
    ///
    /// # Panics
    /// If the host is none of the group's.
    pub fn len_of(&self, host: usize, stripe: u32, shard: Shard) -> usize {
        match shard {
            Shard::Data(_) => {
                let left = self.lens[host].saturating_sub(self.offset(stripe, shard));
                usize::try_from(left.min(self.block.into())).expect("a block fits memory")
            }
            Shard::Parity(_) => self.word_len(stripe, self.layout.word_of(host, shard)),
        }
    }

    /// Octets of the blocks of a code word as they are coded: the longest of its data blocks, rounded up
    /// to what the code takes, and the others filled with zeros.
    pub fn word_len(&self, stripe: u32, word: usize) -> usize {
        let data = (0..self.layout.data()).map(Shard::Data);
        let len = |shard| self.len_of(self.layout.host_of(word, shard), stripe, shard);
        data.map(len).max().unwrap_or(0).next_multiple_of(BLOCK_UNIT)
    }

    /// How many blocks a host's image has.
    pub fn image_blocks(&self, host: usize) -> u64 {
        self.lens[host].div_ceil(self.block.into())
    }

    /// How many blocks a file of parity has, those of no octets counted.
    pub const fn parity_blocks(&self) -> u64 {
        self.stripes as u64 * self.layout.parity() as u64
    }

    /// The stripe and block of an image that has this number.
    ///
    /// # Panics
    /// If no image has so many blocks.
    pub fn image_block(&self, index: u64) -> (u32, Shard) {
        let data = self.layout.data() as u64;
        let stripe = u32::try_from(index / data).expect("a block of an image lies in a stripe");
        (
            stripe,
            Shard::Data(usize::try_from(index % data).expect("it is below the blocks of a word")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Scheme;

    #[test]
    fn blocks_cover_every_image_once_and_parity_is_as_long_as_the_longest() {
        for (scheme, hosts) in [
            (Scheme::Ring, 3),
            (Scheme::Ring, 5),
            (Scheme::Partner, 4),
            (Scheme::ReedSolomon(2), 5),
        ] {
            let layout = Layout::new(scheme, hosts).unwrap();
            let lens: Vec<u64> = (0..hosts as u64).map(|host| host * 517).collect();
            let geometry = Geometry::new(layout, 128, lens.clone()).unwrap();
            for (host, &len) in lens.iter().enumerate() {
                let mut next = 0;
                for stripe in 0..geometry.stripes() {
                    for at in 0..layout.data() {
                        let shard = Shard::Data(at);
                        let octets = geometry.len_of(host, stripe, shard) as u64;
                        if octets > 0 {
                            assert_eq!(geometry.offset(stripe, shard), next);
                            let index = geometry.index(stripe, shard);
                            assert_eq!(geometry.image_block(index), (stripe, shard));
                            next += octets;
                        }
                    }
                }
                assert_eq!(next, len);
                assert_eq!(geometry.image_blocks(host), len.div_ceil(128));
            }
            for stripe in 0..geometry.stripes() {
                for word in 0..hosts {
                    let lens = (0..layout.data()).map(|at| {
                        let shard = Shard::Data(at);
                        geometry.len_of(layout.host_of(word, shard), stripe, shard)
                    });
                    let longest = lens.max().unwrap();
                    let coded = geometry.word_len(stripe, word);
                    assert!(coded >= longest && coded < longest + 64 && coded.is_multiple_of(64));
                }
            }
        }
    }

    #[test]
    fn sizes_that_are_not_possible_are_refused() {
        let layout = Layout::new(Scheme::Ring, 3).unwrap();
        let refused = |block, lens: Vec<u64>| Geometry::new(layout, block, lens).unwrap_err();
        assert_eq!(refused(100, vec![0; 3]), GeometryError::Block(100));
        assert_eq!(refused(8 << 20, vec![0; 3]), GeometryError::Block(8 << 20));
        assert_eq!(refused(64, vec![0; 2]), GeometryError::Images { images: 2, hosts: 3 });
        assert_eq!(refused(64, vec![u64::MAX; 3]), GeometryError::Image(u64::MAX));
        // Two blocks of parity for four of an image, and five octets of each of 256 MiB of manifest.
        let most = (256_u64 << 20) / 5 * 2 / 3 * 64;
        let error = refused(64, vec![most; 3]);
        assert!(
            matches!(error, GeometryError::Blocks { longest, .. } if longest == most),
            "{error}"
        );
        Geometry::new(layout, 64, vec![most / 1_000 * 999; 3]).unwrap();
    }
}
