//! A member's part in generations: coordinating one, taking one over, and writing.

use meikyo_units::SimTime;

use super::{
    AbortReason, Body, Event, Held, Member, MemberOptions, Prepared, REASON_BYTES_MAX, RESEND, Task,
};
use crate::charter::{Change, Commit, Generation, Opened, Reached};
use crate::level::{Keep, Level};

/// A generation that this host coordinates.
#[derive(Debug)]
pub(super) struct Saving {
    reached: Reached,
    drains: bool,
    level: Level,
    begun: Option<Opened>,
    /// The life of each host's daemon when it was begun.
    lives: Vec<Option<u64>>,
    /// How long each image is, and what its host can tell changes from.
    snapped: Vec<Option<(u64, Option<Generation>)>>,
    /// What all hosts are told to write: decided once, since all have to do the same.
    write: Option<(Vec<u64>, Option<Generation>)>,
    prepared: Vec<Option<u32>>,
    deadline: SimTime,
    resend_at: SimTime,
    failed: Option<AbortReason>,
}

impl Saving {
    pub(super) fn new(
        reached: Reached,
        (drains, level): (bool, Level),
        hosts: usize,
        deadline: SimTime,
    ) -> Self {
        Self {
            reached,
            drains,
            level,
            begun: None,
            lives: vec![None; hosts],
            snapped: vec![None; hosts],
            write: None,
            prepared: vec![None; hosts],
            deadline,
            resend_at: SimTime::START,
            failed: None,
        }
    }

    pub(super) const fn reached(&self) -> Reached {
        self.reached
    }

    pub(super) fn wanted(&self, options: &MemberOptions) -> Option<Change> {
        let MemberOptions { place: coordinator, life, keep, .. } = *options;
        let Some(begun) = self.begun else {
            let Self { reached, drains, level, .. } = *self;
            return Some(Change::Begin { reached, coordinator, life, drains, level });
        };
        if self.failed.is_some() {
            return Some(Change::Abort(begun.generation));
        }
        let manifests: Option<Vec<_>> =
            self.prepared.iter().map(|manifest| manifest.map(Some)).collect();
        Some(Change::Commit(commit(begun, self.write.clone()?.0, manifests?), keep))
    }

    /// What all are told to write, once all have said what they have.
    fn decide(&mut self, newest: Option<&Commit>) {
        let snapped: Option<Vec<_>> = self.snapped.iter().copied().collect();
        if self.write.is_some() {
            return;
        }
        let Some(snapped) = snapped else { return };
        let lens: Vec<u64> = snapped.iter().map(|(len, _)| *len).collect();
        let base = newest.filter(|newest| {
            newest.lens == lens && snapped.iter().all(|(_, base)| *base == Some(newest.generation))
        });
        let base = base.map(|newest| newest.generation);
        self.write = Some((lens, base));
        self.resend_at = SimTime::START;
    }
}

const fn commit(opened: Opened, lens: Vec<u64>, manifests: Vec<Option<u32>>) -> Commit {
    let Opened { generation, reached, version, drains, level, .. } = opened;
    Commit { generation, reached, version, lens, manifests, drains, level }
}

/// A generation whose coordinator is gone.
#[derive(Debug)]
pub(super) struct Takeover {
    opened: Opened,
    /// What each host has of it, of those that have answered.
    have: Vec<Option<Option<Prepared>>>,
    deadline: SimTime,
    resend_at: SimTime,
    wanted: Option<Change>,
}

impl Takeover {
    pub(super) fn wanted(&self) -> Option<Change> {
        self.wanted.clone()
    }
}

impl Member {
    /// The snapshot of this host is taken, and has `len` octets.
    pub fn snapped(&mut self, generation: Generation, len: u64) {
        if let Some(held) = self.held.get_mut(&generation)
            && *held == Held::Snapping
        {
            *held = Held::Snapped(len);
            let base = self.base();
            self.answer_coordinator(generation, Body::Snapped { generation, len, base });
        }
    }

    /// The newest committed generation, if it is whole here.
    fn base(&self) -> Option<Generation> {
        let newest = self.charter()?.newest_number()?;
        matches!(self.held.get(&newest), Some(Held::Prepared(_))).then_some(newest)
    }

    /// Image, parity and manifest of this host are on its disk; the manifest has this checksum.
    pub fn prepared(&mut self, generation: Generation, manifest: u32) {
        match self.held.get(&generation) {
            Some(Held::Writing { lens }) => {
                let prepared = Prepared { lens: lens.clone(), manifest };
                self.held.insert(generation, Held::Prepared(prepared));
                self.answer_coordinator(generation, Body::Prepared { generation, manifest });
            }
            // It was given up while it was written.
            _ => self.tasks.push_back(Task::Free(generation)),
        }
    }

    /// This host could not take its snapshot, or not write; the reason is for a person.
    pub fn failed(&mut self, generation: Generation, reason: &str) {
        if let Some(held) = self.held.get_mut(&generation) {
            let reason = reason[..reason.floor_char_boundary(REASON_BYTES_MAX)].to_owned();
            *held = Held::Failed(reason.clone());
            self.answer_coordinator(generation, Body::Failed { generation, reason });
        }
    }

    fn answer_coordinator(&mut self, generation: Generation, body: Body) {
        let open = self.charter().and_then(|charter| charter.open);
        if let Some(open) = open.filter(|open| open.generation == generation) {
            self.send(open.coordinator, body);
        }
    }

    pub(super) fn handle_saving(&mut self, from: usize, body: Body) {
        match body {
            Body::Snapshot { generation, reached } => {
                self.asked_for_snapshot(from, generation, reached);
            }
            Body::Write { generation, lens, base } => {
                self.asked_to_write(from, generation, lens, base);
            }
            Body::Snapped { generation, len, base } => {
                if let Some(saving) = self.saving_of(generation) {
                    saving.snapped[from] = Some((len, base));
                }
            }
            Body::Prepared { generation, manifest } => {
                if let Some(saving) = self.saving_of(generation) {
                    saving.prepared[from] = Some(manifest);
                }
            }
            Body::Failed { generation, reason } => {
                if let Some(saving) = self.saving_of(generation) {
                    saving.failed.get_or_insert(AbortReason::Failed(from, reason));
                }
            }
            Body::Ask(generation) => {
                let prepared = match self.held.get(&generation) {
                    Some(Held::Prepared(prepared)) => Some(prepared.clone()),
                    _ => None,
                };
                self.send(from, Body::Have { generation, prepared });
            }
            Body::Have { generation, prepared } => {
                self.rebuild_learned(from, generation, prepared.is_some());
                if let Some(takeover) = &mut self.takeover
                    && takeover.opened.generation == generation
                {
                    takeover.have[from] = Some(prepared);
                }
            }
            _ => {}
        }
    }

    fn saving_of(&mut self, generation: Generation) -> Option<&mut Saving> {
        let is_it =
            |saving: &&mut Saving| saving.begun.is_some_and(|begun| begun.generation == generation);
        self.saving.as_mut().filter(is_it)
    }

    fn is_open(&self, generation: Generation) -> bool {
        let open = self.charter().and_then(|charter| charter.open);
        open.is_some_and(|open| open.generation == generation)
    }

    fn asked_for_snapshot(&mut self, from: usize, generation: Generation, reached: Reached) {
        if !self.is_open(generation) {
            return;
        }
        let answer = match self.held.get(&generation) {
            None => {
                self.held.insert(generation, Held::Snapping);
                self.tasks.push_back(Task::Snapshot { generation, reached });
                return;
            }
            Some(Held::Snapped(len)) => Body::Snapped { generation, len: *len, base: self.base() },
            Some(Held::Failed(reason)) => Body::Failed { generation, reason: reason.clone() },
            Some(_) => return,
        };
        self.send(from, answer);
    }

    fn asked_to_write(
        &mut self,
        from: usize,
        generation: Generation,
        lens: Vec<u64>,
        base: Option<Generation>,
    ) {
        if !self.is_open(generation) || lens.len() != self.hosts() {
            return;
        }
        let answer = match self.held.get(&generation) {
            Some(Held::Snapped(len)) if lens[self.options.place] == *len => {
                // The version that it was begun under, also where a member was admitted meanwhile:
                // what is rebuilt later must be the same, octet for octet.
                let open = self.charter().and_then(|charter| charter.open);
                let (version, level) =
                    open.map_or((0, Level::Disk), |open| (open.version, open.level));
                self.held.insert(generation, Held::Writing { lens: lens.clone() });
                self.tasks.push_back(Task::Write { generation, version, level, lens, base });
                return;
            }
            Some(Held::Prepared(whole)) => Body::Prepared { generation, manifest: whole.manifest },
            Some(Held::Failed(reason)) => Body::Failed { generation, reason: reason.clone() },
            // The daemon was restarted between snapshot and writing.
            None => Body::Failed { generation, reason: "its snapshot is gone".to_owned() },
            Some(_) => return,
        };
        self.send(from, answer);
    }

    pub(super) fn advance_saving(&mut self, now: SimTime) {
        let hosts = self.hosts();
        let dead = (0..hosts).find(|&place| self.detection.is_dead(place));
        let newest = self.known.as_ref().and_then(|(_, charter)| charter.newest());
        let Some(saving) = &mut self.saving else { return };
        saving.decide(newest);
        let Some(begun) = saving.begun else {
            if now >= saving.deadline {
                self.saving = None;
                self.tell(Event::Busy);
            }
            return;
        };
        let restarted = (0..hosts).find(|&place| {
            let is_other = |begun: u64| self.lives[place].is_some_and(|life| life != begun);
            saving.prepared[place].is_none() && saving.lives[place].is_some_and(is_other)
        });
        if let Some(place) = restarted {
            // What the program handed over is gone, and it will not do so again.
            saving.failed.get_or_insert(AbortReason::Restarted(place));
        } else if let Some(place) = dead
            && saving.prepared[place].is_none()
        {
            saving.failed.get_or_insert(AbortReason::Dead(place));
        } else if now >= saving.deadline {
            saving.failed.get_or_insert(AbortReason::Timeout);
        }
        if saving.failed.is_some() || now < saving.resend_at {
            return;
        }
        saving.resend_at = now + RESEND;
        let Opened { generation, reached, .. } = begun;
        let write = saving.write.clone();
        let behind: Vec<usize> =
            (0..hosts).filter(|&place| saving.prepared[place].is_none()).collect();
        let unsnapped: Vec<bool> = saving.snapped.iter().map(Option::is_none).collect();
        for place in behind {
            match &write {
                Some((lens, base)) => {
                    self.send(place, Body::Write { generation, lens: lens.clone(), base: *base });
                }
                None if unsnapped[place] => {
                    self.send(place, Body::Snapshot { generation, reached })
                }
                None => {}
            }
        }
    }

    /// What the charter says of the generation that this host coordinates.
    pub(super) fn saving_learned(&mut self) {
        let Some((_, charter)) = &self.known else { return };
        let Some(saving) = &mut self.saving else { return };
        let MemberOptions { place, life, .. } = self.options;
        match (saving.begun, charter.open) {
            (None, Some(open)) if open.coordinator == place && open.life == life => {
                saving.begun = Some(open);
                saving.lives.clone_from(&self.lives);
            }
            (None, Some(_)) => {
                self.saving = None;
                self.tell(Event::Busy);
            }
            (Some(begun), open) if open != Some(begun) => {
                let failed = saving.failed.take().unwrap_or(AbortReason::Elsewhere);
                let is_committed = charter.commit_of(begun.generation).is_some();
                self.saving = None;
                if !is_committed {
                    self.tell(Event::Aborted(begun.generation, failed));
                }
            }
            _ => {}
        }
    }

    /// Looks whether the coordinator of the open generation is gone, and this host is the one to end it.
    pub(super) fn advance_takeover(&mut self, now: SimTime) {
        let hosts = self.hosts();
        let me = self.options.place;
        let Some(opened) = self.charter().and_then(|charter| charter.open) else { return };
        let coordinator = opened.coordinator;
        // A begin that was given up can still have been agreed on; only its proposer knows that.
        let is_mine = coordinator == me;
        let is_coordinated =
            self.saving.as_ref().is_some_and(|saving| saving.begun == Some(opened));
        let has_forgotten = if is_mine {
            !is_coordinated
        } else {
            self.lives[coordinator].is_some_and(|life| life != opened.life)
        };
        let is_gone = has_forgotten || self.detection.is_dead(coordinator);
        let is_first = is_mine || (0..me).all(|place| self.detection.is_dead(place));
        if !self.is_member() || !is_gone || !is_first {
            // The one that is to end it may have been away for a moment.
            if self.takeover.as_ref().is_some_and(|takeover| takeover.wanted.is_none()) {
                self.takeover = None;
            }
            return;
        }
        let deadline = now + self.options.save_timeout;
        let takeover = self.takeover.get_or_insert_with(|| Takeover {
            opened,
            have: vec![None; hosts],
            deadline,
            resend_at: now,
            wanted: None,
        });
        if takeover.wanted.is_some() {
            return;
        }
        let silent: Vec<usize> =
            (0..hosts).filter(|&place| takeover.have[place].is_none()).collect();
        let are_all_dead = silent.iter().all(|&place| self.detection.is_dead(place));
        if are_all_dead || now >= takeover.deadline {
            let MemberOptions { layout, keep, .. } = self.options;
            let change = decided(takeover, keep, are_all_dead, |missing| {
                layout.survives(&missing.iter().copied().collect())
            });
            takeover.wanted = Some(change);
        } else if now >= takeover.resend_at {
            takeover.resend_at = now + RESEND;
            let generation = opened.generation;
            for place in silent {
                self.send(place, Body::Ask(generation));
            }
        }
    }

    pub(super) fn takeover_learned(&mut self) {
        let open = self.charter().and_then(|charter| charter.open);
        if self.takeover.as_ref().is_some_and(|takeover| Some(takeover.opened) != open) {
            self.takeover = None;
        }
    }
}

/// What becomes of a generation whose coordinator is gone: it is whole if everybody has all of it, or
/// everybody but dead hosts that parity makes up for.
fn decided(
    takeover: &Takeover,
    keep: Keep,
    all_answered: bool,
    survives: impl Fn(&[usize]) -> bool,
) -> Change {
    let has = |place: usize| takeover.have[place].as_ref().and_then(Option::as_ref);
    let hosts = takeover.have.len();
    let missing: Vec<usize> = (0..hosts).filter(|&place| has(place).is_none()).collect();
    let silent = missing.iter().all(|&place| takeover.have[place].is_none());
    let lens = (0..hosts).find_map(has).map(|prepared| prepared.lens.clone());
    match lens {
        Some(lens) if all_answered && silent && survives(&missing) => {
            let manifests = (0..hosts).map(|place| has(place).map(|whole| whole.manifest));
            Change::Commit(commit(takeover.opened, lens, manifests.collect()), keep)
        }
        _ => Change::Abort(takeover.opened.generation),
    }
}
