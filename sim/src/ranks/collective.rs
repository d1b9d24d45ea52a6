//! The collective exchange of ranks, in words and bytes, by way of [`meikyo_mpi`].
//!
//! An exchange is one `MPI_Allgather` of a few words of each rank, the number of bytes that it sends to
//! each other one among them, and then at most one message (in pieces of 1 GiB) for every pair that
//! has something to send. Every rank knows from the words what will come, so nothing is probed for.

use meikyo_mpi::Communicator;

use super::Ranks;

/// Some of the ranks that `mpirun` started, as one of them sees them.
pub(crate) struct Collective {
    communicator: Communicator,
    own: usize,
    count: usize,
    /// What each rank published, and how many bytes it sent to each: row by row.
    table: Vec<u64>,
    width: usize,
    row: Vec<u64>,
    inbox: Vec<Vec<u8>>,
}

impl Collective {
    /// The first `count` ranks, which publish `words` words each; none for a rank that is not among
    /// them. All ranks must call this together.
    pub(crate) fn among(ranks: Ranks, count: usize, words: usize) -> Option<Self> {
        let communicator = Communicator::among_first(count)?;
        let width = words + count;
        Some(Self {
            communicator,
            own: ranks.own(),
            count,
            table: vec![0; width * count],
            width,
            row: Vec::with_capacity(width),
            inbox: vec![Vec::new(); count],
        })
    }

    /// Publishes `words`, sends each rank what `out` has for it, and receives what the others publish
    /// and send. All ranks of the collective must call this together.
    pub(crate) fn exchange<'a>(
        &mut self,
        words: impl Iterator<Item = u64>,
        out: impl Fn(usize) -> &'a [u8],
    ) {
        let (own, width) = (self.own, self.width);
        self.row.clear();
        self.row.extend(words);
        let bytes = |rank| if rank == own { 0 } else { out(rank).len() };
        self.row.extend((0..self.count).map(|rank| word(bytes(rank))));
        assert_eq!(self.row.len(), width, "every exchange has the same number of words");
        self.communicator.all_gather(&self.row, &mut self.table);
        let table = &self.table;
        let coming = |from: usize| table[from * width + width - self.count + own];
        let quiet = (0..self.count).all(|rank| bytes(rank) == 0 && coming(rank) == 0);
        self.inbox.iter_mut().for_each(Vec::clear);
        if quiet {
            return;
        }
        for (from, inbox) in self.inbox.iter_mut().enumerate() {
            inbox.resize(usize::try_from(coming(from)).expect("what is sent is in memory"), 0);
        }
        let out = |rank| if rank == own { &[][..] } else { out(rank) };
        let out: Vec<_> = (0..self.count).map(out).collect();
        self.communicator.exchange(&out, &mut self.inbox);
    }

    /// The words that `rank` published at the last exchange.
    pub(crate) fn words(&self, rank: usize) -> &[u64] {
        &self.table[rank * self.width..][..self.width - self.count]
    }

    /// The bytes that `rank` sent here at the last exchange.
    pub(crate) fn inbox(&self, rank: usize) -> &[u8] {
        &self.inbox[rank]
    }
}

fn word(count: usize) -> u64 {
    u64::try_from(count).expect("a count fits into 64 bits")
}
