//! Different values, and their numbers.

use super::narrow_u32;

/// Different values, numbered as they are met: by open addressing, since a search in order takes several times as long.
pub(super) struct Met<T> {
    pub(super) values: Vec<T>,
    hashes: Vec<u64>,
    /// Numbers above zero by their hashes; at least half of the slots are empty.
    slots: Vec<u32>,
}

impl<T> Default for Met<T> {
    fn default() -> Self {
        Self { values: Vec::new(), hashes: Vec::new(), slots: Vec::new() }
    }
}

impl<T: PartialEq> Met<T> {
    const SLOTS_MIN: usize = 64;

    /// The number of a value that has this hash.
    pub(super) fn number(&mut self, value: T, hash: u64) -> u32 {
        if 2 * (self.values.len() + 1) > self.slots.len() {
            self.grow();
        }
        let is_it = |number: u32| self.values[number as usize - 1] == value;
        let slot = self.slot_of(hash, is_it);
        if self.slots[slot] == 0 {
            self.values.push(value);
            self.hashes.push(hash);
            self.slots[slot] = narrow_u32(self.values.len());
        }
        self.slots[slot] - 1
    }

    /// The slot of what has this hash, or the empty one that it is to have.
    fn slot_of(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = usize::try_from(hash >> 32).expect("32 bits") & mask;
        loop {
            match self.slots[slot] {
                0 => return slot,
                number if is_it(number) => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; Self::SLOTS_MIN.max(2 * self.slots.len())];
        for (number, &hash) in (1..).zip(&self.hashes) {
            let slot = self.slot_of(hash, |_| false);
            self.slots[slot] = number;
        }
    }
}

/// Fibonacci hashing (Knuth, "The Art of Computer Programming", volume 3, section 6.4): the high bits are even.
pub(super) fn hash_of(value: u64) -> u64 {
    value.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub(super) fn hash_of_text(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let last = rest.iter().fold(text.len() as u64, |word, &octet| word << 8 | u64::from(octet));
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words.chain([last]).fold(0, |hash, word| hash_of(hash.rotate_left(29) ^ word))
}
