//! The RLE/bit-packing hybrid of Parquet, from runs.
//!
//! See "RLE/Bit-Packing Hybrid" in
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>. A run of 8 or more equal
//! values becomes one header and the value; shorter ones are packed in groups of 8. What is put in
//! pieces is one run if the value is the same.

/// Values of a group that is packed; a run that is not repeated is a multiple of it.
const GROUP: usize = 8;

/// Encodes values of at most `width` bits, run by run.
#[derive(Debug)]
pub(super) struct Hybrid {
    width: u8,
    octets: Vec<u8>,
    /// Values that are packed once a long run or the end comes.
    pending: Vec<u32>,
    /// The run that was put last, which may go on.
    last: (u32, usize),
}

impl Hybrid {
    /// Appends to `octets`.
    pub(super) fn new(width: u8, octets: Vec<u8>) -> Self {
        Self { width, octets, pending: Vec::new(), last: (0, 0) }
    }

    /// Appends `value` `count` times.
    pub(super) fn put(&mut self, value: u32, count: usize) {
        if value == self.last.0 {
            self.last.1 += count;
        } else if count > 0 {
            self.end_run();
            self.last = (value, count);
        }
    }

    fn end_run(&mut self) {
        let (value, count) = std::mem::take(&mut self.last);
        let to_group = self.pending.len().next_multiple_of(GROUP) - self.pending.len();
        let first = if to_group + GROUP > count { count } else { to_group };
        self.pending.extend(std::iter::repeat_n(value, first));
        let rest = count - first;
        if rest > 0 {
            self.pack();
            self.header(rest << 1);
            let octets = usize::from(self.width).div_ceil(8);
            self.octets.extend_from_slice(&value.to_le_bytes()[..octets]);
        }
    }

    /// The octets.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_run();
        let whole = self.pending.len().next_multiple_of(GROUP);
        self.pending.resize(whole, 0);
        self.pack();
        self.octets
    }

    /// Writes what is pending, which is whole groups.
    fn pack(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.header((self.pending.len() / GROUP) << 1 | 1);
        let (mut bits, mut filled) = (0_u64, 0);
        for value in self.pending.drain(..) {
            bits |= u64::from(value) << filled;
            filled += u32::from(self.width);
            let whole = filled / 8;
            self.octets.extend_from_slice(&bits.to_le_bytes()[..whole as usize]);
            bits = bits.checked_shr(whole * 8).unwrap_or(0);
            filled -= whole * 8;
        }
    }

    /// Writes a header as an unsigned LEB128 number.
    fn header(&mut self, mut header: usize) {
        while header >= 0x80 {
            self.octets.push(header.to_le_bytes()[0] | 0x80);
            header >>= 7;
        }
        self.octets.push(header.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::Hybrid;

    #[test]
    fn short_runs_are_packed_as_in_the_example_of_the_format() {
        let mut packed = Hybrid::new(3, vec![]);
        (0..8).for_each(|value| packed.put(value, 1));
        assert_eq!(packed.finish(), [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn a_long_run_is_a_header_and_the_value_behind_whole_groups() {
        let mut runs = Hybrid::new(9, vec![7]);
        runs.put(300, 100);
        assert_eq!(runs.finish(), [7, 200, 1, 44, 1]);
        let mut mixed = Hybrid::new(1, vec![]);
        mixed.put(1, 2);
        mixed.put(0, 0);
        mixed.put(1, 1);
        mixed.put(0, 205);
        assert_eq!(mixed.finish(), [0b11, 0b111, 144, 3, 0]);
        let mut alone = Hybrid::new(0, vec![]);
        alone.put(0, 9);
        assert_eq!(alone.finish(), [18]);
    }
}
