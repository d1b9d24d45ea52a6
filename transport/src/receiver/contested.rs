//! Blocks of collectors that stand by for each other, see [`standby`](super::standby).

use std::collections::{BTreeMap, BTreeSet};

use meikyo_recording::origin::Ranges;
use meikyo_recording::{Arrived, Origin, PackedRows, Received, Source};

use super::standby::{Act, Group};
use super::store::accounted;
use super::{NOT_WRITTEN, Output, Party, Place, Receiver, Ticket, damaged};
use crate::gaps::{self, Turn};
use crate::limits::WINDOW_BYTES;
use crate::now::Now;
use crate::wire::{Code, Gap, Hello, Reason, Refusal};

/// The groups of each stream, by what their collectors are called together.
pub(super) type Groups = BTreeMap<Place, BTreeMap<String, Group>>;

/// What a stream has on the disk when it is opened.
#[derive(Debug, Clone, Default)]
pub struct OnDisk {
    /// Numbers that are accounted for.
    pub received: Received,
    /// Which collector's rows were taken when, in the order in which that was decided.
    pub turns: Vec<Turn>,
    /// The greatest time of its rows, those of the receiver's own tables left out.
    pub newest_ns: Option<i64>,
    /// The newest of its blocks, in the order in which they arrived.
    pub arrived: Vec<Arrived>,
}

/// Turns whose rows are not on the disk yet: one that is lost is stored again.
pub(super) type TurnsUnderWay = BTreeMap<Ticket, (Place, Turn)>;

impl Receiver {
    /// A collector with others beside it is welcome.
    pub(super) fn joined(&mut self, now: Now, hello: &Hello) {
        let Some(identity) = &hello.identity else { return };
        for declared in &hello.streams {
            let place = Place::new(hello.cluster.as_deref(), &declared.stream);
            let Some(store) = self.stores.get(&place) else { continue };
            let mut owed: BTreeMap<u64, Ranges> = BTreeMap::new();
            for held in hello.holds.iter().filter(|held| held.stream == declared.stream) {
                let (sender, stream) = (hello.sender.clone(), held.stream.clone());
                let source = Source { sender, boot: held.boot, stream };
                let known = accounted(&store.held, &source);
                for (first, last) in held.ranges.iter().filter(|(first, last)| first <= last) {
                    let ranges = owed.entry(held.boot).or_default();
                    known.holes(*first, *last).for_each(|(first, last)| ranges.add(first, last));
                }
            }
            owed.retain(|_, ranges| ranges.iter().next().is_some());
            let group = self.groups.entry(place).or_default().entry(identity.clone());
            let group = group.or_insert_with(|| {
                let mut group = Group::new(now.monotonic, identity);
                group.restore(&store.turns, &store.known);
                group
            });
            group.greeted(
                now.monotonic,
                (&hello.sender, hello.boot),
                declared.tables.clone(),
                owed,
            );
        }
        self.tell_roles();
    }

    /// A collector's session has ended.
    pub(super) fn left(&mut self, sender: &str) {
        for group in self.groups.values_mut().flat_map(BTreeMap::values_mut) {
            group.gone(self.now, sender);
        }
    }

    /// Takes a block of a collector that has others beside it.
    pub(super) fn contested(
        &mut self,
        now: Now,
        (place, identity): (Place, &str),
        rows: PackedRows,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        // Before any rows that they are about.
        self.store_lost_turns(now);
        let groups = self.groups.get_mut(&place);
        let Some(group) = groups.and_then(|groups| groups.get_mut(identity)) else { return Ok(()) };
        let sender = &origin.source.sender;
        if group.has(sender, origin.source.boot, origin.first) {
            self.counts.repeated += 1;
            return Ok(());
        }
        let unsynced = self.unsynced.get(sender).copied().unwrap_or(0);
        let bytes = rows.payload().len() as u64;
        if unsynced + group.unsettled_bytes(sender) + bytes > 2 * WINDOW_BYTES {
            let text = format!(
                "more than {} octets were sent without an acknowledgement",
                2 * WINDOW_BYTES
            );
            return Err(Refusal { code: Code::TooLarge, text });
        }
        self.known.came(place.cluster.as_ref(), sender, rows.times().1);
        group.came(now.monotonic, rows, origin);
        self.act(now, &place, identity)
    }

    /// Lets time pass for what is held back.
    pub(super) fn settle(&mut self, now: Now) {
        let all = self.groups.iter();
        let all: Vec<(Place, String)> = all
            .flat_map(|(place, groups)| groups.keys().map(|of| (place.clone(), of.clone())))
            .collect();
        for (place, identity) in all {
            if let Some(group) =
                self.groups.get_mut(&place).and_then(|groups| groups.get_mut(&identity))
            {
                group.settle(now.monotonic);
            }
            // One whose rows cannot be stored was told so when they came.
            drop(self.act(now, &place, &identity));
        }
    }

    /// Does what a group decided.
    pub(super) fn act(&mut self, now: Now, place: &Place, identity: &str) -> Result<(), Refusal> {
        let groups = self.groups.get_mut(place);
        let Some(group) = groups.and_then(|groups| groups.get_mut(identity)) else { return Ok(()) };
        let acts = group.take_acts();
        let mut has_turned = false;
        for act in acts {
            match act {
                Act::Turn(turn) => {
                    has_turned = true;
                    self.store_turn(now, place.clone(), turn)?;
                }
                Act::Store(rows, origin) => self.store(place.clone(), rows, origin)?,
                Act::Spare { sender, boot, first, last } => {
                    let (stream, at) = (place.stream.clone(), now.wall.as_nanos());
                    let (rows, from_ns, until_ns, reason) = (Some(0), at, at, Reason::Spare);
                    let gap = Gap { boot, stream, first, last, rows, from_ns, until_ns, reason };
                    let rows = gaps::gap_block(&sender, &gap, 0);
                    let rows = rows.map_err(|error| damaged(&error.to_string()))?;
                    let origin = gaps::origin_of(&sender, &gap);
                    self.store(place.clone(), rows, origin)?;
                }
            }
        }
        if has_turned {
            self.tell_roles();
        }
        Ok(())
    }

    fn store_turn(&mut self, now: Now, place: Place, turn: Turn) -> Result<(), Refusal> {
        let rows = gaps::turn_block(now.wall, &turn);
        let rows = rows.map_err(|error| damaged(&error.to_string()))?;
        let ticket = self.ticket();
        self.turns_under_way.insert(ticket, (place.clone(), turn));
        self.outputs.push_back(Output::Store { ticket, place, rows });
        Ok(())
    }

    /// Everything up to a ticket is on the disk.
    pub(super) fn turns_synced(&mut self, place: &Place, ticket: Ticket) {
        self.turns_under_way.retain(|&of, (at, _)| at != place || of > ticket);
    }

    /// The row of a turn could not be stored, if that is what it was.
    pub(super) fn turn_lost(&mut self, place: &Place, ticket: Ticket) {
        if let Some((_, turn)) = self.turns_under_way.remove(&ticket) {
            self.turns_lost.push((place.clone(), turn));
        }
    }

    /// Those who lost blocks, and those who stand by for them: what was spare with these blocks comes again.
    pub(super) fn with_those_beside(
        &self,
        place: &Place,
        lost: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let groups = || self.groups.get(place).into_iter().flat_map(BTreeMap::values);
        let beside = |sender: &String| {
            let own = groups().filter(|group| group.has_member(sender));
            own.flat_map(|group| group.others_than(sender)).collect::<Vec<_>>()
        };
        let beside: Vec<String> = lost.iter().flat_map(beside).collect();
        lost.into_iter().chain(beside).collect()
    }

    /// A block could not be stored: what others stood by with comes again.
    pub(super) fn contested_lost(&mut self, place: &Place, lost: &Origin) {
        let groups = self.groups.get_mut(place).into_iter().flat_map(BTreeMap::values_mut);
        let number = (lost.source.boot, lost.first);
        let others: Vec<String> =
            groups.flat_map(|group| group.lost(&lost.source.sender, number)).collect();
        for other in others {
            self.end_session_of(&other, NOT_WRITTEN);
        }
    }

    /// Stores turns again that could not be stored.
    pub(super) fn store_lost_turns(&mut self, now: Now) {
        for (place, turn) in std::mem::take(&mut self.turns_lost) {
            // It was made a block of before.
            drop(self.store_turn(now, place, turn));
        }
    }

    /// A stream was opened: what it has on the disk holds.
    pub(super) fn groups_opened(&mut self, place: &Place) {
        let Some(store) = self.stores.get(place) else { return };
        self.turns_under_way.retain(|_, (at, _)| at != place);
        self.turns_lost.retain(|(at, _)| at != place);
        for group in self.groups.get_mut(place).into_iter().flat_map(BTreeMap::values_mut) {
            group.restore(&store.turns, &store.known);
        }
        self.tell_roles();
    }

    /// Says of every collector with others beside it whether it is active.
    fn tell_roles(&mut self) {
        for (place, groups) in &self.groups {
            for (identity, group) in groups {
                self.known.roles(place.cluster.as_ref(), identity, group.active());
            }
        }
    }
}

impl Party {
    /// Those that stand by for each other, of which it is one, in one of its streams.
    pub(super) fn group_at<'a>(
        &self,
        groups: &'a mut Groups,
        place: &Place,
    ) -> Option<&'a mut Group> {
        groups.get_mut(place)?.get_mut(self.identity.as_deref()?)
    }
}
