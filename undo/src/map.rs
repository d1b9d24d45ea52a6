//! An ordered map that remembers.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::RangeBounds;

use crate::Wire;
use crate::bytes_of_inside;
use crate::log::Log;
use crate::state::{Change, Place, State};

/// A B-tree of keys and values, in the order of the keys.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(bound(deserialize = "K: Ord + serde::Deserialize<'de>, V: serde::Deserialize<'de>"))]
pub struct Map<K, V>(BTreeMap<K, V>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V> Map<K, V> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of `key`.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// Whether there is an entry for `key`.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// The entries whose keys are in `range`, in order.
    pub fn range<Q: Ord + ?Sized>(
        &self,
        range: impl RangeBounds<Q>,
    ) -> impl DoubleEndedIterator<Item = (&K, &V)>
    where
        K: Borrow<Q>,
    {
        self.0.range(range)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0.iter()
    }
}

impl<K: Ord + Clone + Send + 'static, V: Clone + Send + 'static> Map<K, V> {
    /// Sets the value of `key`, and gives the one that it replaced.
    pub fn insert<L: Log>(&mut self, log: &mut L, key: K, value: V) -> Option<V> {
        let place = Place::of(self);
        if !L::KEEPS {
            return self.0.insert(key, value);
        }
        let old = self.0.insert(key.clone(), value);
        log.value(place, 0, (key, old.clone()));
        old
    }

    /// Sets the value of `key` if it has none, and says whether it had none: one search instead of
    /// the two of [`Map::contains_key`] and [`Map::insert`].
    pub fn insert_new<L: Log>(&mut self, log: &mut L, key: K, value: V) -> bool {
        let place = Place::of(self);
        let Entry::Vacant(entry) = self.0.entry(key) else { return false };
        if L::KEEPS {
            log.value(place, 0, (entry.key().clone(), None::<V>));
        }
        entry.insert(value);
        true
    }

    /// Removes the entry of `key`, and gives its value.
    pub fn remove<Q: Ord + ?Sized, L: Log>(&mut self, log: &mut L, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, value) = self.0.remove_entry(key)?;
        if L::KEEPS {
            log.value(Place::of(self), 0, (key, Some(value.clone())));
        }
        Some(value)
    }
}

impl<K: Ord + Send + Wire + 'static, V: Send + Wire + 'static> State for Map<K, V> {
    const COPIED: bool = false;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        if !change.is_at(self) {
            return false;
        }
        match change.old_value::<(K, Option<V>)>() {
            (key, Some(value)) => drop(self.0.insert(key, value)),
            (key, None) => drop(self.0.remove(&key)),
        }
        true
    }

    bytes_of_inside!();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Forget, UndoLog};

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u16),
        InsertNew(u8, u16),
        Remove(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u8..20, any::<u16>()).prop_map(|(key, value)| Step::Insert(key, value)),
            (0_u8..20, any::<u16>()).prop_map(|(key, value)| Step::InsertNew(key, value)),
            (0_u8..20).prop_map(Step::Remove),
        ]
    }

    fn apply(map: &mut Map<u8, u16>, log: &mut impl Log, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Insert(key, value) => drop(map.insert(log, *key, *value)),
                Step::InsertNew(key, value) => {
                    let old = map.get(key).copied();
                    assert_eq!(map.insert_new(log, *key, *value), old.is_none());
                    assert_eq!(map.get(key).copied(), old.or(Some(*value)));
                }
                Step::Remove(key) => drop(map.remove(log, key)),
            }
        }
    }

    proptest! {
        #[test]
        fn any_changes_are_taken_back_from_any_mark(
            early in proptest::collection::vec(step(), 0..30),
            late in proptest::collection::vec(step(), 0..60),
        ) {
            let mut map = Map::default();
            let mut log = UndoLog::new();
            apply(&mut map, &mut log, &early);
            let (before, start) = (map.clone(), log.mark());
            log.forget_before(start);
            apply(&mut map, &mut log, &late);

            let mut plain = Map::default();
            apply(&mut plain, &mut Forget, &early);
            apply(&mut plain, &mut Forget, &late);
            prop_assert_eq!(&map, &plain);

            log.revert(start, log.mark(), &mut map).unwrap();
            prop_assert_eq!(map, before);
        }
    }
}
