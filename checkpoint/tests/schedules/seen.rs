//! What histories have shown, so that tame ones are noticed.

/// How often what happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(super) committed: u64,
    /// Parts of generations that were made of the one before.
    pub(super) updates: u64,
    pub(super) aborted: u64,
    pub(super) taken_over: u64,
    pub(super) kills: u64,
    pub(super) kills_while_writing: u64,
    pub(super) power_cuts: u64,
    pub(super) replaced: u64,
    pub(super) rebuilt: u64,
    pub(super) stops: u64,
    pub(super) cuts: u64,
    pub(super) full: u64,
    pub(super) fenced: u64,
    pub(super) refused_saves: u64,
    pub(super) false_deaths: u64,
    pub(super) lost: u64,
    pub(super) restarts: u64,
    pub(super) unconfirmed: u64,
    pub(super) launches: u64,
    pub(super) killed_launches: u64,
    pub(super) begun_launches: u64,
    /// Launches that went on from the generation before the newest.
    pub(super) older: u64,
    /// Programs that ended after a save of all ranks, which was not committed though all was calm.
    pub(super) lost_last_steps: u64,
    /// Programs that were told, and joined the next start with that.
    pub(super) joined_again: u64,
    pub(super) left_out: u64,
    /// Parts of generations that were written to memory.
    pub(super) in_memory: u64,
    /// Looks at a generation in memory of which more was lost than parity makes up for.
    pub(super) memory_beyond_parity: u64,
    /// Generations that were freed by a rule.
    pub(super) freed: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.committed, other.committed),
            (&mut self.updates, other.updates),
            (&mut self.aborted, other.aborted),
            (&mut self.taken_over, other.taken_over),
            (&mut self.kills, other.kills),
            (&mut self.kills_while_writing, other.kills_while_writing),
            (&mut self.power_cuts, other.power_cuts),
            (&mut self.replaced, other.replaced),
            (&mut self.rebuilt, other.rebuilt),
            (&mut self.stops, other.stops),
            (&mut self.cuts, other.cuts),
            (&mut self.full, other.full),
            (&mut self.fenced, other.fenced),
            (&mut self.refused_saves, other.refused_saves),
            (&mut self.false_deaths, other.false_deaths),
            (&mut self.lost, other.lost),
            (&mut self.restarts, other.restarts),
            (&mut self.unconfirmed, other.unconfirmed),
            (&mut self.launches, other.launches),
            (&mut self.killed_launches, other.killed_launches),
            (&mut self.begun_launches, other.begun_launches),
            (&mut self.older, other.older),
            (&mut self.lost_last_steps, other.lost_last_steps),
            (&mut self.joined_again, other.joined_again),
            (&mut self.left_out, other.left_out),
            (&mut self.in_memory, other.in_memory),
            (&mut self.memory_beyond_parity, other.memory_beyond_parity),
            (&mut self.freed, other.freed),
        ];
        for (mine, theirs) in pairs {
            *mine += theirs;
        }
    }

    /// Whether every kind of trouble came often enough to show something.
    pub(crate) fn is_rich(&self, histories: u64) -> bool {
        let Self { committed, updates, aborted, taken_over, kills_while_writing, .. } = *self;
        let Self { power_cuts, replaced, rebuilt, stops, cuts, full, refused_saves, .. } = *self;
        let Self { restarts, unconfirmed, launches, killed_launches, begun_launches, .. } = *self;
        let Self { in_memory, memory_beyond_parity, freed, .. } = *self;
        let often =
            [in_memory, committed, updates, kills_while_writing, power_cuts, stops, cuts, restarts];
        let programs = [launches, killed_launches, begun_launches];
        let seldom = [
            memory_beyond_parity,
            freed,
            aborted,
            20 * taken_over,
            replaced,
            rebuilt,
            full,
            refused_saves,
            unconfirmed,
        ];
        often.into_iter().all(|count| count >= histories / 2)
            && seldom.into_iter().all(|count| count >= histories / 20)
            && programs.into_iter().all(|count| count >= histories / 2)
            && self.lost_last_steps <= histories / 100
    }
}
