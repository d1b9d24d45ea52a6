//! Agreement of a majority on one value, the [`Charter`]: a register that is read and changed as a whole.
//!
//! The protocol is `CASPaxos` (D. Rystsov, "`CASPaxos`: Replicated State Machines without logs", 2018): any
//! host may propose; it has a majority promise not to listen to lower ballots and to tell what they have
//! accepted, changes the newest of that, and has a majority accept the result. There is no leader
//! whose loss would have to be noticed first, and no log to be cut.
//!
//! A host that lost its disk has forgotten what it promised. It votes again only once it was admitted
//! as another incarnation, by a majority that it is no part of; votes of an incarnation that is no
//! member are not counted. So two majorities always share a host that remembers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::charter::{Change, Charter, Incarnation, Rejected};

/// The number of a proposal; no two hosts have the same, nor two lives of one host's daemon.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Ballot {
    /// The greater part.
    pub round: u64,
    /// The place of the host that proposes.
    pub place: usize,
    /// The life of its daemon: what it proposed before it was restarted is another proposal.
    pub life: u64,
}

/// What a host must not forget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// It listens to no lower ballot.
    pub promised: Ballot,
    /// The ballot of the charter that it accepted last.
    pub accepted: Ballot,
    /// The charter that it accepted last.
    pub charter: Charter,
}

impl Vote {
    /// The vote of a host that was asked nothing.
    pub fn first(founding: Charter) -> Self {
        Self { promised: Ballot::default(), accepted: Ballot::default(), charter: founding }
    }

    /// Promises not to listen to lower ballots, or says which it has promised.
    ///
    /// # Errors
    /// The ballot that it has promised to listen to instead.
    pub fn promise(&mut self, ballot: Ballot) -> Result<(), Ballot> {
        if ballot < self.promised {
            return Err(self.promised);
        }
        self.promised = ballot;
        Ok(())
    }

    /// Accepts a charter, unless it has promised not to.
    ///
    /// # Errors
    /// The ballot that it has promised to listen to instead.
    pub fn accept(&mut self, ballot: Ballot, charter: &Charter) -> Result<(), Ballot> {
        self.promise(ballot)?;
        self.accepted = ballot;
        self.charter.clone_from(charter);
        Ok(())
    }
}

/// What a proposal wants of all hosts next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Promise this ballot, and tell what was accepted.
    Promise(Ballot),
    /// Accept this charter, proposed with this ballot.
    Accept(Ballot, Charter),
}

/// How a proposal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// This holds; and whether the change was made or what forbade it.
    Decided(Ballot, Charter, Result<(), Rejected>),
    /// Somebody else proposes with this ballot.
    Overtaken(Ballot),
}

#[derive(Debug, Clone)]
enum Phase {
    Promising(BTreeMap<usize, (Incarnation, Ballot, Charter)>),
    Accepting {
        charter: Charter,
        answer: Result<(), Rejected>,
        accepted: BTreeMap<usize, Incarnation>,
    },
}

/// One try at a change.
#[derive(Debug, Clone)]
pub struct Proposal {
    ballot: Ballot,
    change: Change,
    hosts: usize,
    phase: Phase,
}

/// More than half of `hosts`.
pub const fn majority(hosts: usize) -> usize {
    hosts / 2 + 1
}

impl Proposal {
    /// Begins; everybody is to be asked [`Proposal::ask`], the proposing host too.
    pub const fn new(ballot: Ballot, change: Change, hosts: usize) -> Self {
        Self { ballot, change, hosts, phase: Phase::Promising(BTreeMap::new()) }
    }

    /// The ballot that this try was begun with.
    pub const fn ballot(&self) -> Ballot {
        self.ballot
    }

    /// The change that it tries.
    pub const fn change(&self) -> &Change {
        &self.change
    }

    /// What everybody is to be asked now, again and again until they answer.
    pub fn ask(&self) -> Ask {
        match &self.phase {
            Phase::Promising(_) => Ask::Promise(self.ballot),
            Phase::Accepting { charter, .. } => Ask::Accept(self.ballot, charter.clone()),
        }
    }

    /// The place whose vote does not count: that of a host that is to be admitted.
    const fn without(&self) -> Option<usize> {
        match self.change {
            Change::Admit { place, .. } => Some(place),
            _ => None,
        }
    }

    /// A host has promised. Whether everybody is to be asked something else from now on.
    ///
    /// # Panics
    /// If the place is none of the charter's.
    pub fn promised(
        &mut self,
        place: usize,
        incarnation: Incarnation,
        ballot: Ballot,
        accepted: Ballot,
        charter: Charter,
    ) -> bool {
        let without = self.without();
        let Phase::Promising(promises) = &mut self.phase else { return false };
        if ballot != self.ballot || Some(place) == without {
            return false;
        }
        promises.insert(place, (incarnation, accepted, charter));
        let newest = promises.values().max_by_key(|(_, accepted, _)| *accepted);
        let (_, _, newest) = newest.expect("one was added");
        let counted = promises
            .iter()
            .filter(|(place, (incarnation, ..))| newest.members[**place] == *incarnation)
            .count();
        if counted < majority(self.hosts) {
            return false;
        }
        // Where the change is not possible, what was found is accepted again: then it is known to hold.
        let (charter, answer) = match newest.changed(&self.change) {
            Ok(charter) => (charter, Ok(())),
            Err(rejected) => (newest.clone(), Err(rejected)),
        };
        self.phase = Phase::Accepting { charter, answer, accepted: BTreeMap::new() };
        true
    }

    /// A host has accepted. The outcome, once a majority has.
    pub fn accepted(
        &mut self,
        place: usize,
        incarnation: Incarnation,
        ballot: Ballot,
    ) -> Option<Outcome> {
        let (without, majority) = (self.without(), majority(self.hosts));
        let Phase::Accepting { charter, answer, accepted } = &mut self.phase else { return None };
        if ballot != self.ballot || Some(place) == without || charter.members[place] != incarnation
        {
            return None;
        }
        accepted.insert(place, incarnation);
        (accepted.len() >= majority)
            .then(|| Outcome::Decided(self.ballot, charter.clone(), *answer))
    }

    /// A host listens to a higher ballot. The outcome, if that ends this try.
    pub fn refused(&self, ballot: Ballot, promised: Ballot) -> Option<Outcome> {
        (ballot == self.ballot && promised > ballot).then_some(Outcome::Overtaken(promised))
    }
}
