//! The instances of an agent in the order of their OIDs, for lookups on encoded OIDs.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use crate::Oid;

/// Instances in lexicographic order, addressed by position.
#[derive(Debug, Clone)]
pub struct Instances {
    /// Content octets of all OIDs, one after the other.
    bytes: Vec<u8>,
    /// For each instance: where its OID ends, and how many octets of it name the object type.
    ends: Vec<(u32, u8)>,
    generation: u64,
}

/// Where an OID is among the instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Find {
    /// The instance at this position.
    At(usize),
    /// No such instance, of an object type that has others (noSuchInstance).
    NoInstance,
    /// No such object type (noSuchObject).
    NoObject,
}

impl Instances {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Differs between any two sets of instances of the process: equal means equal positions.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The OID's content octets.
    ///
    /// # Panics
    ///
    /// If there is no such position.
    #[inline]
    pub fn oid(&self, position: usize) -> &[u8] {
        let start = if position == 0 { 0 } else { self.ends[position - 1].0 };
        &self.bytes[start as usize..self.ends[position].0 as usize]
    }

    /// Finds the instance with this OID (content octets).
    pub fn find(&self, oid: &[u8]) -> Find {
        let after = self.first_from(oid);
        if after < self.len() && self.oid(after) == oid {
            return Find::At(after);
        }
        let neighbours = [after.checked_sub(1), Some(after).filter(|&at| at < self.len())];
        let same_object = neighbours.into_iter().flatten().any(|position| {
            let object = usize::from(self.ends[position].1);
            oid.starts_with(&self.oid(position)[..object])
        });
        if same_object { Find::NoInstance } else { Find::NoObject }
    }

    /// The position of the first instance after this OID (content octets); [`Self::len`] if none.
    pub fn next(&self, oid: &[u8]) -> usize {
        let at = self.first_from(oid);
        if at < self.len() && self.oid(at) == oid { at + 1 } else { at }
    }

    /// The position of the first instance that is not before `oid`.
    fn first_from(&self, oid: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if compare_encoded(self.oid(middle), oid) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Compares two OIDs by arc from their content octets.
///
/// Octets alone sort wrongly where arcs have different lengths: 16384 is `81 80 00`, less in octets
/// than 16383, `ff 7f`.
pub fn compare_encoded(left: &[u8], right: &[u8]) -> Ordering {
    let Some(differs) = left.iter().zip(right).position(|(a, b)| a != b) else {
        return left.len().cmp(&right.len());
    };
    let start =
        left[..differs].iter().rposition(|octet| octet & 0x80 == 0).map_or(0, |end| end + 1);
    arc(&left[start..]).cmp(&arc(&right[start..]))
}

/// The arc at the front; saturates, which only meets OIDs that no instance has.
fn arc(octets: &[u8]) -> u64 {
    let mut arc = 0_u64;
    for &octet in octets {
        arc = arc.saturating_mul(0x80).saturating_add(u64::from(octet & 0x7f));
        if octet & 0x80 == 0 {
            break;
        }
    }
    arc
}

/// Collects instances in any order; each comes with something of the caller's.
#[derive(Debug)]
pub struct InstancesBuilder<T> {
    entries: Vec<(Oid, u8, T)>,
}

impl<T> Default for InstancesBuilder<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T> InstancesBuilder<T> {
    /// Adds instance `index` of the object type `object`: `&[0]` for a scalar.
    ///
    /// # Panics
    /// When the OID of the object type has more than 255 octets.
    pub fn add(&mut self, object: &Oid, index: &[u32], with: T) {
        let octets = u8::try_from(object.encoded().len()).expect("object types have short OIDs");
        self.entries.push((object.child(index), octets, with));
    }

    /// Removes the instances for which `keep` says no.
    pub fn retain(&mut self, mut keep: impl FnMut(&Oid) -> bool) {
        self.entries.retain(|(oid, _, _)| keep(oid));
    }

    /// The instances in order, and what came with each, at the same positions. Of two with one OID
    /// the first is kept.
    ///
    /// # Panics
    ///
    /// With 4 GiB of OIDs, which no agent has.
    pub fn finish(mut self) -> (Instances, Vec<T>) {
        static GENERATIONS: AtomicU64 = AtomicU64::new(0);
        self.entries.sort_by(|left, right| left.0.cmp(&right.0));
        self.entries.dedup_by(|later, first| later.0 == first.0);
        let mut instances = Instances {
            bytes: Vec::new(),
            ends: Vec::with_capacity(self.entries.len()),
            generation: GENERATIONS.fetch_add(1, Memory::Relaxed),
        };
        let mut with = Vec::with_capacity(self.entries.len());
        for (oid, object, value) in self.entries {
            oid.encode_into(&mut instances.bytes);
            let end = u32::try_from(instances.bytes.len()).expect("fewer than 2^32 octets of OIDs");
            instances.ends.push((end, object));
            with.push(value);
        }
        (instances, with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(text: &str) -> Oid {
        text.parse().unwrap()
    }

    fn sample() -> Instances {
        let mut builder = InstancesBuilder::default();
        builder.add(&oid("1.3.6.1.2.1.2.2.1.10"), &[70_000], ());
        builder.add(&oid("1.3.6.1.2.1.2.2.1.10"), &[3], ());
        builder.add(&oid("1.3.6.1.2.1.2.2.1.10"), &[16_383], ());
        builder.add(&oid("1.3.6.1.2.1.1.3"), &[0], ());
        builder.finish().0
    }

    #[test]
    fn instances_are_found_and_followed_in_the_order_of_their_arcs() {
        let instances = sample();
        let names: Vec<String> = (0..instances.len())
            .map(|position| Oid::decode(instances.oid(position)).unwrap().to_string())
            .collect();
        assert_eq!(
            names,
            [
                "1.3.6.1.2.1.1.3.0",
                "1.3.6.1.2.1.2.2.1.10.3",
                "1.3.6.1.2.1.2.2.1.10.16383",
                "1.3.6.1.2.1.2.2.1.10.70000",
            ]
        );
        for (text, found) in [
            ("1.3.6.1.2.1.2.2.1.10.3", Find::At(1)),
            ("1.3.6.1.2.1.2.2.1.10.70000", Find::At(3)),
            ("1.3.6.1.2.1.2.2.1.10.70001", Find::NoInstance),
            ("1.3.6.1.2.1.2.2.1.10.2", Find::NoInstance),
            ("1.3.6.1.2.1.1.3", Find::NoInstance),
            ("1.3.6.1.2.1.2.2.1.11.3", Find::NoObject),
        ] {
            assert_eq!(instances.find(&oid(text).encoded()), found, "{text}");
        }
        assert_eq!(instances.next(&oid("1.3.6").encoded()), 0);
        assert_eq!(instances.next(&oid("1.3.6.1.2.1.2.2.1.10.3").encoded()), 2);
        assert_eq!(instances.next(&oid("1.3.6.1.2.1.2.2.1.10.16384").encoded()), 3);
        assert_eq!(instances.next(&oid("1.3.6.1.2.1.2.2.1.10.70000").encoded()), 4);
    }

    proptest::proptest! {
        #[test]
        fn encoded_oids_sort_as_their_arcs(
            left in proptest::collection::vec(0_u32..40_000, 0..5),
            right in proptest::collection::vec(0_u32..40_000, 0..5),
        ) {
            let (left, right) = (oid("1.3").child(&left), oid("1.3").child(&right));
            proptest::prop_assert_eq!(
                compare_encoded(&left.encoded(), &right.encoded()),
                left.cmp(&right)
            );
        }
    }
}
