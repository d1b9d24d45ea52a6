//! Which host keeps which block.
//!
//! An image is cut into blocks, and blocks into stripes: a stripe has `k` blocks of every host of the
//! group. Every stripe has one code word per host, numbered as the host that its first data block is
//! of: word `c` has data block `j` of host `c + j`, and its parity `p` is kept by host `c + k + p` (all
//! modulo N). With one parity block and k = N - 1 this is the ring of the `SCore` checkpoints: the
//! block goes from host `c` around the ring, every host XORs the next of its own blocks onto it, and
//! the host before `c` keeps the result, which has none of its own blocks in it.
//!
//! Nothing here computes parity ([`crate::coding`]) or sends it ([`crate::schedule`]).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Most hosts of a group: a loss must stay rare within one.
pub const HOSTS_MAX: usize = 64;

/// Most parity blocks of a code word.
pub const PARITY_MAX: usize = 8;

/// How a group protects what its hosts hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Each host's image once more on its neighbour.
    Partner,
    /// One XOR block per N - 1 data blocks, around the ring.
    Ring,
    /// So many parity blocks per N minus as many data blocks.
    ReedSolomon(usize),
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partner => f.write_str("partner"),
            Self::Ring => f.write_str("ring"),
            Self::ReedSolomon(parity) => write!(f, "rs{parity}"),
        }
    }
}

/// A text that names no scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scheme; allowed are `partner`, `ring`, and `rs2` to `rs8`")]
pub struct ParseSchemeError(String);

impl FromStr for Scheme {
    type Err = ParseSchemeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseSchemeError(text.to_owned());
        match text {
            "partner" => Ok(Self::Partner),
            "ring" => Ok(Self::Ring),
            _ => {
                let parity = text.strip_prefix("rs").and_then(|number| number.parse().ok());
                parity
                    .filter(|parity| (2..=PARITY_MAX).contains(parity))
                    .map(Self::ReedSolomon)
                    .ok_or_else(unknown)
            }
        }
    }
}

/// Why a group cannot be protected so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The scheme needs more hosts.
    #[error("`{scheme}` needs a group of at least {least} hosts, and this one has {hosts}")]
    TooFew {
        /// What the group should be protected by.
        scheme: Scheme,
        /// How many hosts it needs.
        least: usize,
        /// How many there are.
        hosts: usize,
    },
    /// The group is too large.
    #[error("a group has at most {HOSTS_MAX} hosts, and this one has {0}: make several groups")]
    TooMany(usize),
}

/// One block of a code word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shard {
    /// Data block `0..k`.
    Data(usize),
    /// Parity block `0..m`.
    Parity(usize),
}

/// The geometry of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    scheme: Scheme,
    hosts: usize,
    data: usize,
    parity: usize,
}

impl Layout {
    /// The geometry of `hosts` hosts under a scheme.
    ///
    /// # Errors
    /// When the scheme needs more hosts, or the group has more than [`HOSTS_MAX`].
    pub const fn new(scheme: Scheme, hosts: usize) -> Result<Self, LayoutError> {
        let (least, parity) = match scheme {
            Scheme::Partner => (2, 1),
            Scheme::Ring => (3, 1),
            Scheme::ReedSolomon(parity) => (parity + 1, parity),
        };
        if hosts < least {
            return Err(LayoutError::TooFew { scheme, least, hosts });
        }
        if hosts > HOSTS_MAX {
            return Err(LayoutError::TooMany(hosts));
        }
        let data = match scheme {
            Scheme::Partner => 1,
            Scheme::Ring | Scheme::ReedSolomon(_) => hosts - parity,
        };
        Ok(Self { scheme, hosts, data, parity })
    }

    /// The scheme that the geometry follows from.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// How many hosts the group has; also how many code words a stripe has.
    pub const fn hosts(&self) -> usize {
        self.hosts
    }

    /// Data blocks per code word, and per host and stripe.
    pub const fn data(&self) -> usize {
        self.data
    }

    /// Parity blocks per code word, and per host and stripe.
    pub const fn parity(&self) -> usize {
        self.parity
    }

    /// All blocks of a code word, data first.
    pub fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        let (data, parity) = (self.data, self.parity);
        (0..data).map(Shard::Data).chain((0..parity).map(Shard::Parity))
    }

    /// The host that keeps a block of code word `word`.
    pub const fn host_of(&self, word: usize, shard: Shard) -> usize {
        let distance = match shard {
            Shard::Data(index) => index,
            Shard::Parity(index) => self.data + index,
        };
        (word + distance) % self.hosts
    }

    /// The code word that a host's block is part of.
    pub const fn word_of(&self, host: usize, shard: Shard) -> usize {
        let distance = match shard {
            Shard::Data(index) => index,
            Shard::Parity(index) => self.data + index,
        };
        (host + self.hosts - distance) % self.hosts
    }

    /// How many stripes an image of `len` octets has, with blocks of `block` octets.
    ///
    /// # Panics
    /// If `block` is zero.
    pub const fn stripes(&self, len: u64, block: u64) -> u64 {
        len.div_ceil(self.data as u64 * block)
    }

    /// Whether everything can be had back when these hosts are lost together.
    pub fn survives(&self, lost: &BTreeSet<usize>) -> bool {
        (0..self.hosts).all(|word| {
            let missing = self.shards().filter(|&shard| lost.contains(&self.host_of(word, shard)));
            missing.count() <= self.parity
        })
    }

    /// How many hosts can be lost, whichever they are.
    pub const fn losses(&self) -> usize {
        self.parity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_the_papers() {
        // Host 0 starts: its first block goes to 1, 2 and 3 in turn, and 3 of 4 hosts have a block in
        // it; the last, which is the one before the first, keeps the parity.
        let ring = Layout::new(Scheme::Ring, 4).unwrap();
        let hosts = |word| ring.shards().map(move |shard| ring.host_of(word, shard));
        assert_eq!(hosts(0).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(hosts(2).collect::<Vec<_>>(), [2, 3, 0, 1]);
        assert_eq!((ring.data(), ring.parity()), (3, 1));
        // 400 MB in blocks of 1 MB: 133 stripes of three and one of one.
        assert_eq!(ring.stripes(400_000_000, 1_000_000), 134);
    }

    #[test]
    fn every_host_keeps_each_block_of_a_stripe_once_and_no_word_has_two_blocks_on_one_host() {
        for (scheme, hosts) in all_up_to(9) {
            let layout = Layout::new(scheme, hosts).unwrap();
            let mut kept = BTreeSet::new();
            for word in 0..hosts {
                let of_word: BTreeSet<_> =
                    layout.shards().map(|shard| layout.host_of(word, shard)).collect();
                assert_eq!(of_word.len(), layout.data() + layout.parity(), "{scheme} {hosts}");
                for shard in layout.shards() {
                    let host = layout.host_of(word, shard);
                    assert_eq!(layout.word_of(host, shard), word);
                    assert!(kept.insert((host, shard)));
                }
            }
            assert_eq!(kept.len(), hosts * (layout.data() + layout.parity()));
        }
    }

    #[test]
    fn what_losses_are_survived_is_what_is_known_of_each_scheme() {
        let survives = |scheme, hosts, lost: &[usize]| {
            Layout::new(scheme, hosts).unwrap().survives(&lost.iter().copied().collect())
        };
        // A copy on the neighbour survives every loss without two neighbours.
        assert!(survives(Scheme::Partner, 6, &[0, 2, 4]));
        assert!(!survives(Scheme::Partner, 6, &[0, 1]) && !survives(Scheme::Partner, 6, &[5, 0]));
        for hosts in 3..=6 {
            for pattern in 0_u32..1 << hosts {
                let lost: Vec<_> = (0..hosts).filter(|host| pattern >> host & 1 == 1).collect();
                assert_eq!(survives(Scheme::Ring, hosts, &lost), lost.len() <= 1);
                for parity in 2..hosts {
                    let scheme = Scheme::ReedSolomon(parity);
                    assert_eq!(survives(scheme, hosts, &lost), lost.len() <= parity);
                }
            }
        }
    }

    #[test]
    fn schemes_are_named_and_groups_that_are_too_small_are_refused() {
        for text in ["partner", "ring", "rs2", "rs8"] {
            assert_eq!(text.parse::<Scheme>().unwrap().to_string(), text);
        }
        let unknown = "rs9".parse::<Scheme>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "`rs9` is not a scheme; allowed are `partner`, `ring`, and `rs2` to `rs8`"
        );
        let small = Layout::new(Scheme::Ring, 2).unwrap_err();
        assert_eq!(
            small.to_string(),
            "`ring` needs a group of at least 3 hosts, and this one has 2"
        );
    }

    /// Every scheme on every number of hosts that it takes.
    fn all_up_to(most: usize) -> Vec<(Scheme, usize)> {
        let mut schemes = vec![Scheme::Partner, Scheme::Ring];
        schemes.extend((2..=PARITY_MAX).map(Scheme::ReedSolomon));
        let on_all = |scheme| (2..=most).map(move |hosts| (scheme, hosts));
        let taken = |&(scheme, hosts): &(Scheme, usize)| Layout::new(scheme, hosts).is_ok();
        schemes.into_iter().flat_map(on_all).filter(taken).collect()
    }
}
