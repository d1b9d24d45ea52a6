//! Levels in a virtual world: memory goes with the power and the disk with its host, and what must hold of what is kept on
//! each.

use std::collections::BTreeSet;

use meikyo_checkpoint::charter::{Commit, Generation, Incarnation};
use meikyo_checkpoint::level::Level;
use meikyo_checkpoint::register::majority;
use meikyo_units::Nanos;

use super::hosts::{Host, Storage};
use super::world::{Happening, World};

const MS: Nanos = Nanos::from_millis(1);

impl World {
    /// The newest generation on disk can be had back whatever has happened; one in memory unless more hosts have lost
    /// their memory than parity makes up for.
    pub(super) fn check_recoverable(&mut self) -> Result<(), String> {
        let newest_of = |level| {
            let of_level = self.commits.iter().filter(|(_, commit)| commit.level == level);
            of_level.map(|(generation, _)| *generation).next_back()
        };
        if let Some(newest) = newest_of(Level::Disk) {
            let lacking = self.lacking(newest);
            if !self.layout.survives(&lacking) {
                return Err(format!("{newest:?} is committed, and {lacking:?} do not have it"));
            }
        }
        let Some(newest) = newest_of(Level::Memory) else { return Ok(()) };
        let lacking = self.lacking(newest);
        let wiped = self.wiped.entry(newest).or_default();
        // What was rebuilt can be lost another time, and not for this reason.
        wiped.retain(|place| lacking.contains(place));
        let unexplained = &lacking - wiped;
        if !self.layout.survives(&unexplained) {
            let text = format!("{newest:?} is in memory, and {unexplained:?} do not have it");
            return Err(format!("{text}, whose power was never cut"));
        }
        self.seen.memory_beyond_parity += u64::from(!self.layout.survives(&lacking));
        Ok(())
    }

    /// A host has lost its memory, in which these generations were whole.
    pub(super) fn wipe(&mut self, place: usize, whole: Vec<Generation>) {
        for generation in whole {
            self.wiped.entry(generation).or_default().insert(place);
            self.ever_wiped.insert(generation);
        }
    }

    /// The oldest generation that may be told to who asked when this one was the newest: the one before is where too few
    /// hosts answer for the newest, and where memory was lost it may be the one before the newest on disk.
    pub(super) fn least_told(&self, newest: Option<Generation>) -> Option<Generation> {
        let newest = newest?;
        let before = |generation: Generation, may: &dyn Fn(&Commit) -> bool| {
            let mut older = self.commits.range(..generation).rev();
            older.find(|(_, commit)| may(commit)).map(|(older, _)| *older)
        };
        let is_on_disk = |commit: &Commit| commit.level == Level::Disk;
        let after = Generation(newest.0 + 1);
        let on_disk = before(after, &is_on_disk);
        let relaxed = on_disk.map(|disk| before(disk, &is_on_disk).unwrap_or(disk));
        let begin = relaxed.unwrap_or(Generation(0));
        // One that was committed since the question has freed what was there, and can be lost itself.
        if self.ever_wiped.range(begin..).next().is_some() {
            // Where nothing is on disk there may be nothing left.
            return relaxed;
        }
        Some(before(newest, &|_| true).unwrap_or(newest))
    }

    pub(super) fn free_oldest(&mut self, place: usize) -> Result<(), String> {
        if self.is_stopped(place) {
            return Ok(());
        }
        let Some(member) = self.hosts[place].member() else { return Ok(()) };
        let commits = member.charter().map_or(&[][..], |charter| &charter.commits);
        let Some(oldest) = commits.last().map(|commit| commit.generation) else { return Ok(()) };
        let before = commits.len();
        member.free(oldest);
        self.seen.freed += u64::from(before > 2);
        self.turn(place)
    }

    /// Where the next generation is kept: the first on disk, and the others as chance wants it, since every order has to
    /// do.
    pub(super) fn level(&mut self) -> Level {
        let has_disk = self.commits.values().any(|commit| commit.level == Level::Disk);
        if has_disk && self.random.once_in(2) { Level::Memory } else { Level::Disk }
    }

    /// A host is lost with its disk, and another takes its place; only as many at once as parity makes up
    /// for, and as leave a majority that remembers.
    pub(super) fn replace(&mut self, place: usize) {
        // Of the newest commit, and of what may be committed though nobody has told yet: as soon as all
        // but those that parity makes up for have written, it can be, and then another loss is one
        // more than the scheme survives.
        let newest = self.commits.last_key_value().map_or(Generation(0), |(newest, _)| *newest);
        let begun = self.learned.values().map(|charter| charter.last).max().unwrap_or_default();
        let on_disk = self.commits.values().filter(|commit| commit.level == Level::Disk);
        let newest = on_disk.map(|commit| commit.generation).next_back().unwrap_or(newest);
        let is_in_memory = |number: &Generation| self.in_memory.contains(number);
        let could_be = (newest.0..=begun.0 + 1).map(Generation);
        let could_be = could_be.filter(|number| !is_in_memory(number));
        let could_be = could_be.map(|number| self.lacking(number));
        let mut lost: BTreeSet<usize> =
            could_be.filter(|lacking| self.layout.survives(lacking)).flatten().collect();
        let remembers =
            |host: &Host| host.daemon.as_ref().is_some_and(|daemon| daemon.member.is_member());
        lost.extend(self.hosts.iter().filter(|host| !remembers(host)).map(|host| host.place));
        lost.insert(place);
        if !self.layout.survives(&lost)
            || self.hosts.len() - lost.len() < majority(self.hosts.len())
        {
            return;
        }
        self.seen.replaced += 1;
        self.next_incarnation += 1;
        let whole = self.hosts[place].storage.whole_in_memory();
        self.wipe(place, whole);
        let host = &mut self.hosts[place];
        host.daemon = None;
        host.storage = Storage::default();
        host.incarnation = Incarnation(self.next_incarnation);
        self.kill_launch();
        let span = MS * 20 + self.random.span(MS * 2_000);
        self.after(span, Happening::Start(place));
    }
}
