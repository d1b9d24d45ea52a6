//! What a host's image holds when programs name their arrays: a table of the arrays of every rank on the host,
//! then their octets.
//!
//! An array that is a block of a larger one says where it lies in it, so that a program on another number of
//! ranks finds its own blocks in those of others. Nothing here reads or writes files.
//!
//! Form (`docs/checkpoint-format.md`): the eight octets `meikyoI1`, the length of the table and its CRC-32 (eight
//! and four octets, little-endian), four zeros, the table, zeros to a multiple of 64, then the arrays in the order of
//! the table, each filled with zeros to a multiple of 64.

use serde::{Deserialize, Serialize};

/// The first octets of an image with a table.
const MAGIC: [u8; 8] = *b"meikyoI1";

/// Octets before the table.
pub const HEAD_BYTES: usize = 24;

/// Longest table: some 100,000 arrays.
pub const TABLE_BYTES_MAX: u64 = 16 << 20;

/// Where arrays begin.
const ALIGN: u64 = 64;

/// Most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 8;

/// Longest name of an array, in octets.
pub const NAME_BYTES_MAX: usize = 200;

/// What a rank says of one of its arrays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// The name, the same on all ranks that have a block of it.
    pub name: String,
    /// The type of an element, for example `f64`: it must be the same when it is restored.
    pub element: String,
    /// Octets of an element.
    pub element_bytes: u32,
    /// Elements in each dimension of what this rank has, the slowest dimension first.
    pub shape: Vec<u64>,
    /// The same of the whole array, of which this rank has a block; nothing for an array that only this rank has.
    pub whole: Vec<u64>,
    /// Where this rank's block begins in each dimension.
    pub first: Vec<u64>,
}

/// The arrays of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Its number.
    pub rank: u32,
    /// How many ranks the program has.
    pub ranks: u32,
    /// Its arrays, in the order of their octets.
    pub arrays: Vec<Array>,
}

/// Why there is no such image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It begins otherwise: the program has handed over a file of its own making.
    #[error("this image has no table of arrays")]
    Foreign,
    /// Its table is not what was written.
    #[error("the table of arrays is damaged")]
    Damaged,
    /// An array cannot be.
    #[error("the array `{name}` of rank {rank} {what}")]
    Array {
        /// The rank that named it.
        rank: u32,
        /// What the program calls it.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl Array {
    /// Octets of it.
    pub fn bytes(&self) -> Option<u64> {
        let elements = self.shape.iter().try_fold(1_u64, |all, one| all.checked_mul(*one));
        elements?.checked_mul(self.element_bytes.into()).filter(|bytes| *bytes <= 1 << 46)
    }

    /// What is wrong with it.
    fn fault(&self) -> Option<&'static str> {
        let dimensions = self.shape.len();
        let lies_inside = |((shape, whole), first): ((&u64, &u64), &u64)| {
            first.checked_add(*shape).is_some_and(|end| end <= *whole)
        };
        if self.name.is_empty() || self.name.len() > NAME_BYTES_MAX {
            Some("has no name, or one of more than 200 octets")
        } else if dimensions == 0 || dimensions > DIMENSIONS_MAX {
            Some("has no dimension, or more than 8")
        } else if self.bytes().is_none() {
            Some("is too large")
        } else if self.whole.is_empty() && self.first.is_empty() {
            None
        } else if self.whole.len() != dimensions || self.first.len() != dimensions {
            Some("has not as many dimensions as what it is a block of")
        } else if !self.shape.iter().zip(&self.whole).zip(&self.first).all(lies_inside) {
            Some("does not lie inside of what it is a block of")
        } else {
            None
        }
    }
}

/// The table of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The ranks of the host.
    pub ranks: Vec<Rank>,
}

impl Table {
    /// Head and table as octets, up to where the first array begins.
    ///
    /// # Errors
    /// When an array cannot be.
    ///
    /// # Panics
    /// Never: what a table is made of can be written to memory.
    pub fn octets(&self) -> Result<Vec<u8>, ImageError> {
        self.check()?;
        let table = postcard::to_allocvec(self).expect("numbers and texts can be written");
        let mut octets = MAGIC.to_vec();
        octets.extend_from_slice(&(table.len() as u64).to_le_bytes());
        octets.extend_from_slice(&crc32fast::hash(&table).to_le_bytes());
        octets.extend_from_slice(&[0; 4]);
        octets.extend_from_slice(&table);
        octets.resize(octets.len().next_multiple_of(64), 0);
        Ok(octets)
    }

    /// Octets of the table that a head announces.
    ///
    /// # Errors
    /// When it is no head, or the table would be too long.
    ///
    /// # Panics
    /// Never: what is read is as long as it must be.
    pub fn announced(head: &[u8; HEAD_BYTES]) -> Result<u64, ImageError> {
        if head[..8] != MAGIC {
            return Err(ImageError::Foreign);
        }
        let len = u64::from_le_bytes(head[8..16].try_into().expect("it is eight octets"));
        if len > TABLE_BYTES_MAX { Err(ImageError::Damaged) } else { Ok(len) }
    }

    /// Reads a table with the head before it.
    ///
    /// # Errors
    /// When it is damaged, or has an array that cannot be.
    ///
    /// # Panics
    /// Never: what is read is as long as it must be.
    pub fn read(head: &[u8; HEAD_BYTES], table: &[u8]) -> Result<Self, ImageError> {
        let sum = u32::from_le_bytes(head[16..20].try_into().expect("it is four octets"));
        if Self::announced(head)? != table.len() as u64 || crc32fast::hash(table) != sum {
            return Err(ImageError::Damaged);
        }
        let table: Self = postcard::from_bytes(table).map_err(|_| ImageError::Damaged)?;
        table.check()?;
        Ok(table)
    }

    fn check(&self) -> Result<(), ImageError> {
        for rank in &self.ranks {
            for array in &rank.arrays {
                if let Some(what) = array.fault() {
                    let (rank, name) = (rank.rank, array.name.clone());
                    return Err(ImageError::Array { rank, name, what });
                }
            }
        }
        Ok(())
    }

    /// Every array with its rank, and where it lies behind the table.
    pub fn arrays(&self) -> impl Iterator<Item = (&Rank, &Array, u64)> {
        let all = self.ranks.iter().flat_map(|rank| rank.arrays.iter().map(move |of| (rank, of)));
        all.scan(0_u64, |next, (rank, array)| {
            let begin = *next;
            *next = begin.checked_add(array.bytes()?.next_multiple_of(ALIGN))?;
            Some((rank, array, begin))
        })
    }
}

/// Octets that an array takes in an image.
pub const fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN)
}

/// What a block of one array has of another block of the same array: a run of octets in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where it begins in what is saved.
    pub from: u64,
    /// Where it begins in what is wanted.
    pub to: u64,
    /// How long it is.
    pub bytes: u64,
}

/// The runs that a saved block has of a wanted one; none where they do not meet, and `None` where they are not
/// of the same array.
pub fn runs(saved: &Array, wanted: &Array) -> Option<Vec<Run>> {
    let is_same = saved.name == wanted.name
        && (saved.element == wanted.element && saved.element_bytes == wanted.element_bytes)
        && saved.whole == wanted.whole
        && !saved.whole.is_empty();
    if !is_same {
        return None;
    }
    let dimensions = saved.shape.len();
    let ends = |array: &Array, at: usize| array.first[at] + array.shape[at];
    let begin: Vec<u64> = (0..dimensions).map(|at| saved.first[at].max(wanted.first[at])).collect();
    let end: Vec<u64> = (0..dimensions).map(|at| ends(saved, at).min(ends(wanted, at))).collect();
    if begin.iter().zip(&end).any(|(begin, end)| begin >= end) {
        return Some(Vec::new());
    }
    let last = dimensions - 1;
    let element = u64::from(saved.element_bytes);
    let offset = |array: &Array, index: &[u64]| {
        let step = |sum: u64, at: usize| sum * array.shape[at] + (index[at] - array.first[at]);
        (0..dimensions).fold(0, step) * element
    };
    let mut index = begin.clone();
    let mut runs = Vec::new();
    loop {
        let bytes = (end[last] - begin[last]) * element;
        runs.push(Run { from: offset(saved, &index), to: offset(wanted, &index), bytes });
        // The next row of the part that both have, the last but one dimension first.
        let Some(at) = (0..last).rev().find(|&at| index[at] + 1 < end[at]) else {
            return Some(runs);
        };
        index[at] += 1;
        index[at + 1..].copy_from_slice(&begin[at + 1..]);
    }
}

#[cfg(test)]
mod tests {
    use meikyo_worlds::Random;

    use super::*;

    fn block(shape: [u64; 3], first: [u64; 3]) -> Array {
        Array {
            name: "t".to_owned(),
            element: "u16".to_owned(),
            element_bytes: 2,
            shape: shape.to_vec(),
            whole: vec![5, 6, 7],
            first: first.to_vec(),
        }
    }

    #[test]
    fn a_table_is_read_as_written_and_no_changed_octet_is_overlooked() {
        let arrays = vec![block([1, 2, 3], [0, 0, 4]), block([5, 6, 7], [0; 3])];
        let table = Table { ranks: vec![Rank { rank: 3, ranks: 8, arrays }] };
        let octets = table.octets().unwrap();
        let read = |octets: &[u8]| {
            let (head, rest) = octets.split_first_chunk().unwrap();
            let len = usize::try_from(Table::announced(head)?).unwrap();
            Table::read(head, rest.get(..len).ok_or(ImageError::Damaged)?)
        };
        assert_eq!(read(&octets).as_ref(), Ok(&table));
        let begins: Vec<u64> = table.arrays().map(|(_, _, begin)| begin).collect();
        assert_eq!((octets.len() % 64, begins), (0, vec![0, 64]));
        for at in (0..20).chain(24..octets.len() - 64) {
            let mut damaged = octets.clone();
            damaged[at] ^= 8;
            assert!(read(&damaged).is_err(), "octet {at}");
        }
    }

    #[test]
    fn arrays_that_cannot_be_are_refused_by_name() {
        let outside = block([1, 1, 4], [0, 0, 4]);
        let large =
            Array { shape: vec![u64::MAX, 2], whole: vec![], first: vec![], ..outside.clone() };
        for (array, what) in [(outside, "does not lie inside"), (large, "is too large")] {
            let table = Table { ranks: vec![Rank { rank: 1, ranks: 2, arrays: vec![array] }] };
            let told = table.octets().unwrap_err().to_string();
            assert!(told.starts_with("the array `t` of rank 1") && told.contains(what), "{told}");
        }
    }

    /// Two blocks of a small array are compared element by element.
    #[test]
    fn what_two_blocks_have_in_common_is_what_their_elements_say() {
        let mut random = Random::new(9);
        let mut met = 0;
        for _ in 0..500 {
            let mut any = || {
                let whole = [5, 6, 7];
                let first = whole.map(|most| random.below(most));
                let shape = [0, 1, 2].map(|at| 1 + random.below(whole[at] - first[at]));
                block(shape, first)
            };
            let (saved, wanted) = (any(), any());
            // Every element of the whole array has its number, and each block the numbers of its own.
            let numbers = |of: &Array| -> Vec<u64> {
                let range = |at: usize| of.first[at]..of.first[at] + of.shape[at];
                let rows = range(0).flat_map(|x| range(1).map(move |y| (x, y)));
                rows.flat_map(|(x, y)| range(2).map(move |z| (x * 6 + y) * 7 + z)).collect()
            };
            let (theirs, mine) = (numbers(&saved), numbers(&wanted));
            let mut filled = vec![None; mine.len()];
            for Run { from, to, bytes } in runs(&saved, &wanted).unwrap() {
                for at in 0..usize::try_from(bytes / 2).unwrap() {
                    let [from, to] = [from, to].map(|begin| usize::try_from(begin / 2).unwrap());
                    assert_eq!(filled[to + at].replace(theirs[from + at]), None);
                }
            }
            for (number, filled) in mine.iter().zip(filled) {
                assert_eq!(filled, theirs.contains(number).then_some(*number));
            }
            met += u32::from(!runs(&saved, &wanted).unwrap().is_empty());
        }
        assert!(met > 100, "{met}");
    }
}
