//! The collective exchange of ranks, in words and bytes. This is the only caller of MPI.
//!
//! An exchange is one `MPI_Allgather` of a few words of each rank, the number of bytes that it sends to
//! each other one among them, and then at most one message (in pieces of 1 GiB) for every pair that
//! has something to send. Every rank knows from the words what will come, so nothing is probed for.

use mpi::collective::CommunicatorCollectives as _;
use mpi::point_to_point::{Destination as _, Source as _};
use mpi::request::{Request, Scope};
use mpi::topology::{Color, Communicator as _, SimpleCommunicator};

use super::Ranks;

/// The longest piece of a message: MPI counts bytes in 31 bits.
const PIECE: usize = 1 << 30;
/// How often a rank looks at a request before it gives way to others between two looks.
const LOOKS: u32 = 2_000;

/// Some of the ranks that `mpirun` started, as one of them sees them.
pub(crate) struct Collective {
    communicator: SimpleCommunicator,
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
        let color = if ranks.own() < count { Color::with_value(0) } else { Color::undefined() };
        let communicator = SimpleCommunicator::world().split_by_color(color)?;
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
    pub(crate) fn exchange<'a>(&mut self, words: &[u64], out: impl Fn(usize) -> &'a [u8]) {
        let (own, width) = (self.own, self.width);
        self.row.clear();
        self.row.extend(words);
        let bytes = |rank| if rank == own { 0 } else { out(rank).len() };
        self.row.extend((0..self.count).map(|rank| word(bytes(rank))));
        assert_eq!(self.row.len(), width, "every exchange has the same number of words");
        let (row, table) = (&self.row[..], &mut self.table[..]);
        mpi::request::scope(|scope| {
            finish(self.communicator.immediate_all_gather_into(scope, row, table));
        });
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
        let process = |rank: usize| {
            let rank = i32::try_from(rank).expect("MPI counts ranks in 31 bits");
            self.communicator.process_at_rank(rank)
        };
        mpi::request::scope(|scope| {
            let receives: Vec<_> = self
                .inbox
                .iter_mut()
                .enumerate()
                .flat_map(|(from, inbox)| inbox.chunks_mut(PIECE).map(move |piece| (from, piece)))
                .map(|(from, piece)| process(from).immediate_receive_into(scope, piece))
                .collect();
            let sends: Vec<_> = (0..self.count)
                .filter(|rank| *rank != own)
                .flat_map(|rank| out(rank).chunks(PIECE).map(move |piece| (rank, piece)))
                .map(|(rank, piece)| process(rank).immediate_send(scope, piece))
                .collect();
            receives.into_iter().for_each(finish);
            sends.into_iter().for_each(finish);
        });
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

/// Waits for `request`. With a core for each rank the wait is mostly over before the rank gives way;
/// with fewer, it leaves its core to those it waits for, which MPICH itself would not do.
fn finish<'a, D: ?Sized, S: Scope<'a>>(mut request: Request<'a, D, S>) {
    let mut looks = 0;
    while let Err(unfinished) = request.test() {
        request = unfinished;
        looks += 1;
        if looks > LOOKS {
            std::thread::yield_now();
        }
    }
}

fn word(count: usize) -> u64 {
    u64::try_from(count).expect("a count fits into 64 bits")
}
