//! VLAN identifiers and sets of them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A VLAN identifier (IEEE 802.1Q): 1 to 4094. 0 means a priority tag, 4095 is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vlan(u16);

impl Vlan {
    /// The VLAN that every port of a switch is in before it is configured.
    pub const DEFAULT: Self = Self(1);
    /// The greatest identifier that a frame can carry as a VLAN: 4094.
    pub const MAX: Self = Self(4094);

    /// The VLAN with this identifier; `None` unless it is 1 to 4094.
    pub const fn new(id: u16) -> Option<Self> {
        if id >= 1 && id <= 4094 { Some(Self(id)) } else { None }
    }

    /// The 12 bits that a frame carries: 1 to 4094.
    pub const fn id(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Vlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text is no VLAN, or no set of VLANs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not {what}; allowed are numbers from 1 to 4094{example}")]
pub struct ParseVlanError {
    text: String,
    what: &'static str,
    example: &'static str,
}

impl FromStr for Vlan {
    type Err = ParseVlanError;

    fn from_str(text: &str) -> Result<Self, ParseVlanError> {
        text.parse().ok().and_then(Self::new).ok_or_else(|| ParseVlanError {
            text: text.into(),
            what: "a VLAN",
            example: "",
        })
    }
}

const WORDS: usize = 64;

/// A set of VLANs; 512 bytes, whatever it holds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct VlanSet([u64; WORDS]);

impl VlanSet {
    /// The set without any VLAN.
    pub const EMPTY: Self = Self([0; WORDS]);

    const fn bit(vlan: Vlan) -> (usize, u64) {
        (vlan.0 as usize / 64, 1 << (vlan.0 % 64))
    }

    /// Whether the set holds the VLAN.
    pub const fn contains(&self, vlan: Vlan) -> bool {
        let (word, bit) = Self::bit(vlan);
        self.0[word] & bit != 0
    }

    /// Adds the VLAN; false if it was there.
    pub const fn insert(&mut self, vlan: Vlan) -> bool {
        let (word, bit) = Self::bit(vlan);
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Takes the VLAN out; false if it was not there.
    pub const fn remove(&mut self, vlan: Vlan) -> bool {
        let (word, bit) = Self::bit(vlan);
        let there = self.0[word] & bit != 0;
        self.0[word] &= !bit;
        there
    }

    /// How many VLANs it holds.
    ///
    /// # Panics
    /// Never: a word has 64 bits at most.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| usize::try_from(word.count_ones()).expect("64 at most")).sum()
    }

    /// Whether no VLAN is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The VLANs of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Vlan> + '_ {
        (0_u16..).step_by(64).zip(&self.0).flat_map(|(first, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = u16::try_from(left.trailing_zeros()).ok().filter(|&bit| bit < 64)?;
                left &= left - 1;
                Some(Vlan(first + bit))
            })
        })
    }

    /// The VLANs that are in one of the sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The VLANs that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The VLANs of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
}

impl Default for VlanSet {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl FromIterator<Vlan> for VlanSet {
    fn from_iter<I: IntoIterator<Item = Vlan>>(vlans: I) -> Self {
        let mut set = Self::EMPTY;
        set.extend(vlans);
        set
    }
}

impl Extend<Vlan> for VlanSet {
    fn extend<I: IntoIterator<Item = Vlan>>(&mut self, vlans: I) {
        for vlan in vlans {
            self.insert(vlan);
        }
    }
}

/// As switches write it: `101-104,110`; nothing for the empty set.
impl fmt::Display for VlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut vlans = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = vlans.next() {
            let mut last = first;
            while let Some(next) = vlans.next_if(|next| next.0 == last.0 + 1) {
                last = next;
            }
            write!(f, "{comma}{first}")?;
            if last != first {
                write!(f, "-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for VlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromStr for VlanSet {
    type Err = ParseVlanError;

    /// Reads `101-104,110`; the empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, ParseVlanError> {
        let wrong = || ParseVlanError {
            text: text.into(),
            what: "a set of VLANs",
            example: ", as `101-104,110`",
        };
        let mut set = Self::EMPTY;
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: Vlan = first.trim().parse().map_err(|_| wrong())?;
            let last: Vlan = last.trim().parse().map_err(|_| wrong())?;
            if last < first {
                return Err(wrong());
            }
            set.extend((first.0..=last.0).map(Vlan));
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_is_read_back_as_it_is_written(ids in proptest::collection::btree_set(1_u16..=4094, 0..40)) {
            let set: VlanSet = ids.iter().filter_map(|&id| Vlan::new(id)).collect();
            prop_assert_eq!(set.len(), ids.len());
            let held: BTreeSet<u16> = set.iter().map(Vlan::id).collect();
            prop_assert_eq!(held, ids);
            prop_assert_eq!(set.to_string().parse::<VlanSet>().unwrap(), set);
        }
    }

    #[test]
    fn runs_are_folded() {
        let set: VlanSet = [101, 102, 103, 110].into_iter().filter_map(Vlan::new).collect();
        assert_eq!(set.to_string(), "101-103,110");
    }

    #[test]
    fn what_is_no_vlan_is_refused() {
        for text in ["0", "4095", "7-", "9-7", "a", "1,,2", "-"] {
            assert!(text.parse::<VlanSet>().is_err(), "{text}");
        }
        assert_eq!(
            "4095".parse::<Vlan>().unwrap_err().to_string(),
            "`4095` is not a VLAN; allowed are numbers from 1 to 4094"
        );
    }
}
