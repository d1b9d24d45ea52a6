//! What goes over a data connection: heads of 16 octets, each with a block behind it or nothing.

use crate::geometry::BLOCK_MAX;
use crate::increment::MASK_BYTES_MAX;

/// Most octets behind a head: a block, or the packed difference of one.
pub const PAYLOAD_MAX: u32 = BLOCK_MAX + MASK_BYTES_MAX;

/// Octets of a head.
pub const HEAD_BYTES: usize = 16;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A block on its way along a chain.
    Folded,
    /// A block for the host that codes.
    Part,
    /// A block for the host that keeps it.
    Result,
    /// One more block may be begun.
    Credit,
    /// Nothing more comes.
    End,
    /// There is nothing to carry, and the connection lives.
    Idle,
    /// From this stripe on, `len` blocks of the sender in this code word have not changed; where the sender codes,
    /// so many of the word's results. No block is behind the head.
    Same,
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What the receiver does with the block.
    pub kind: Kind,
    /// The code word.
    pub word: u16,
    /// The stripe that the code word is of.
    pub stripe: u32,
    /// Of a chain, how many have folded; of a part or a result, the number of the block in its word.
    pub stop: u16,
    /// Octets behind the head; of [`Kind::Same`], a number of stripes.
    pub len: u32,
}

/// Why a head is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// There is no such kind.
    #[error("a frame of kind {0} is not known")]
    Kind(u8),
    /// More octets would come than a block has.
    #[error("a block of {len} octets is announced, and the largest has {most}")]
    Len {
        /// What is announced.
        len: u32,
        /// What is possible.
        most: u32,
    },
    /// Octets that have to be zero are not.
    #[error("octets of a head that are not used are not zero")]
    Unused,
}

impl Head {
    /// A head without a block.
    pub const fn bare(kind: Kind) -> Self {
        Self { kind, word: 0, stripe: 0, stop: 0, len: 0 }
    }

    /// The head as it goes over a connection.
    pub fn octets(&self) -> [u8; HEAD_BYTES] {
        let mut octets = [0; HEAD_BYTES];
        octets[0] = match self.kind {
            Kind::Folded => 1,
            Kind::Part => 2,
            Kind::Result => 3,
            Kind::Credit => 4,
            Kind::End => 5,
            Kind::Idle => 6,
            Kind::Same => 7,
        };
        octets[2..4].copy_from_slice(&self.word.to_le_bytes());
        octets[4..8].copy_from_slice(&self.stripe.to_le_bytes());
        octets[8..10].copy_from_slice(&self.stop.to_le_bytes());
        octets[12..16].copy_from_slice(&self.len.to_le_bytes());
        octets
    }

    /// Reads a head; at most `most` octets are behind it, and never more than [`PAYLOAD_MAX`].
    ///
    /// # Errors
    /// When it is none.
    pub fn read(octets: &[u8; HEAD_BYTES], most: u32) -> Result<Self, HeadError> {
        let [kind, unused, w0, w1, s0, s1, s2, s3, p0, p1, u0, u1, l0, l1, l2, l3] = *octets;
        let kind = match kind {
            1 => Kind::Folded,
            2 => Kind::Part,
            3 => Kind::Result,
            4 => Kind::Credit,
            5 => Kind::End,
            6 => Kind::Idle,
            7 => Kind::Same,
            other => return Err(HeadError::Kind(other)),
        };
        if unused != 0 || u0 != 0 || u1 != 0 {
            return Err(HeadError::Unused);
        }
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        let most = match kind {
            Kind::Folded | Kind::Part | Kind::Result => most.min(PAYLOAD_MAX),
            Kind::Credit | Kind::End | Kind::Idle => 0,
            Kind::Same => u32::MAX,
        };
        if len > most {
            return Err(HeadError::Len { len, most });
        }
        Ok(Self {
            kind,
            word: u16::from_le_bytes([w0, w1]),
            stripe: u32::from_le_bytes([s0, s1, s2, s3]),
            stop: u16::from_le_bytes([p0, p1]),
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn heads_are_read_as_written_and_nothing_larger_than_a_block_is_announced(
            octets: [u8; HEAD_BYTES], kind in 0_u8..9, block in 64_u32..=PAYLOAD_MAX,
        ) {
            let mut octets = octets;
            octets[0] = kind;
            [octets[1], octets[10], octets[11]] = [0; 3];
            match Head::read(&octets, block) {
                Ok(head) => {
                    proptest::prop_assert_eq!(head.octets(), octets);
                    proptest::prop_assert!(head.len <= block || head.kind == Kind::Same);
                }
                Err(HeadError::Kind(kind)) => proptest::prop_assert!(kind == 0 || kind > 7),
                Err(HeadError::Len { len, most }) => proptest::prop_assert!(len > most),
                Err(HeadError::Unused) => proptest::prop_assert!(false),
            }
        }
    }
}
