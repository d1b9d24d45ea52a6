//! Numbers as magnitude and rest.
//!
//! What is hard to foresee of a number that a clock or a loader chose is noise in its low bits, which
//! no compressor makes shorter; what it can make shorter is how large the numbers are. So the two are
//! kept apart: an octet says the length of a number in bits and the bit behind its highest one, and
//! is compressed with its neighbours; the bits below are stored as they are. On times of samples this
//! comes within 0.03 octets of what an arithmetic coder needs, and the magnitudes and the noise in
//! one stream of varints need 0.25 octets more (`docs/profiling.md`).

use std::borrow::Cow;

use super::Octets;
use super::sections::{Section, SectionReader, SectionWriter};

/// Bits of a number that its magnitude says: the highest one and the next.
const SAID: u32 = 2;

/// About how many bits the magnitude of a number takes.
const MAGNITUDE_BITS: u64 = 4;

/// About how many bits a number takes as magnitude and rest.
pub(super) fn bits_of(number: u64) -> u64 {
    MAGNITUDE_BITS + u64::from(u64::BITS - number.leading_zeros()).saturating_sub(u64::from(SAID))
}

/// Appends numbers as two sections.
pub(super) fn put(
    numbers: impl Iterator<Item = u64>,
    sections: &mut SectionWriter,
    out: &mut Vec<u8>,
) {
    let mut magnitudes = std::mem::take(&mut sections.octets);
    magnitudes.clear();
    let mut rest = Bits::in_place_of(std::mem::take(&mut sections.bits));
    for number in numbers {
        let length = u64::BITS - number.leading_zeros();
        if length < SAID {
            magnitudes.push(number.to_le_bytes()[0]);
            continue;
        }
        let below = length - SAID;
        // The two highest bits of the number are 10 or 11.
        magnitudes.push((u64::from(length) << 1 | (number >> below & 1)).to_le_bytes()[0]);
        rest.put(number & ((1 << below) - 1), below);
    }
    sections.put(&magnitudes, out);
    let rest = rest.finish();
    sections.put_stored(&rest, out);
    (sections.octets, sections.bits) = (magnitudes, rest);
}

/// Numbers as they lie in a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Magnitudes<'a> {
    magnitudes: Section<'a>,
    rest: Section<'a>,
}

impl<'a> Magnitudes<'a> {
    /// Takes `count` numbers from a body.
    pub(super) fn decode(octets: &mut Octets<'a>, count: usize, room: &mut usize) -> Option<Self> {
        let magnitudes = Section::decode(octets, room)?;
        let rest = Section::decode(octets, room)?;
        (magnitudes.len == count).then_some(Self { magnitudes, rest })
    }

    /// The numbers; `None` when the bits are not as many as the magnitudes say.
    pub(super) fn numbers(&self, reader: &mut SectionReader) -> Option<Vec<u64>> {
        let magnitudes = self.magnitudes.octets(reader)?;
        let mut rest = TakenBits::new(self.rest.octets(reader)?);
        let mut numbers = Vec::with_capacity(magnitudes.len());
        for &magnitude in magnitudes.iter() {
            let length = u32::from(magnitude >> 1);
            numbers.push(match magnitude {
                0 | 1 => u64::from(magnitude),
                // No number of two bits or more begins with a zero, and none has more than 64.
                _ if !(SAID..=u64::BITS).contains(&length) => return None,
                _ => {
                    let below = length - SAID;
                    let high = (2 | u64::from(magnitude & 1)) << below;
                    high | rest.bits(below)?
                }
            });
        }
        rest.is_at_end().then_some(numbers)
    }
}

/// Bits one behind the other, the lowest first.
#[derive(Debug, Default)]
struct Bits {
    octets: Vec<u8>,
    pending: u64,
    /// Bits in `pending`, fewer than 64.
    filled: u32,
}

impl Bits {
    /// None yet, in the room of octets that nobody needs.
    fn in_place_of(mut octets: Vec<u8>) -> Self {
        octets.clear();
        Self { octets, ..Self::default() }
    }

    fn put(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.filled;
        self.filled += count;
        if self.filled >= u64::BITS {
            self.octets.extend_from_slice(&self.pending.to_le_bytes());
            self.filled -= u64::BITS;
            // What of them found no room.
            self.pending = bits.unbounded_shr(count - self.filled);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let octets = self.filled.div_ceil(8) as usize;
        self.octets.extend_from_slice(&self.pending.to_le_bytes()[..octets]);
        self.octets
    }
}

/// The bits of a section while they are taken.
struct TakenBits<'a> {
    octets: Cow<'a, [u8]>,
    taken: usize,
}

impl<'a> TakenBits<'a> {
    fn new(octets: Cow<'a, [u8]>) -> Self {
        Self { octets, taken: 0 }
    }

    /// The next `count` bits, at most 62.
    #[inline]
    fn bits(&mut self, count: u32) -> Option<u64> {
        let end = self.taken + count as usize;
        if end > self.octets.len() * 8 {
            return None;
        }
        let from = self.taken / 8;
        // Nearly always they lie within eight octets, and these before the end.
        if count <= u64::BITS - 8
            && let Some(octets) = self.octets.get(from..).and_then(|rest| rest.first_chunk())
        {
            let bits = u64::from_le_bytes(*octets) >> (self.taken % 8) & ((1 << count) - 1);
            self.taken = end;
            return Some(bits);
        }
        let mut word = [0; 16];
        let there = self.octets.get(from..).unwrap_or_default();
        let there = &there[..there.len().min(9)];
        word[..there.len()].copy_from_slice(there);
        let bits = u128::from_le_bytes(word) >> (self.taken % 8) & ((1 << count) - 1);
        self.taken = end;
        u64::try_from(bits).ok()
    }

    fn is_at_end(&self) -> bool {
        self.taken.div_ceil(8) == self.octets.len()
    }
}
