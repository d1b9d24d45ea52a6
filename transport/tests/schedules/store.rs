//! The receiver's recording as a model: what is queued, what the kernel has, what is on the disk.

use meikyo_recording::{Arrived, PackedRows, Received};
use meikyo_transport::gaps::transport_turns;
use meikyo_transport::{OnDisk, Ticket, Turn};
use meikyo_worlds::Random;

use super::parties::table;

/// One stream; the histories have one.
#[derive(Debug, Default)]
pub(crate) struct Store {
    queued: Vec<(Ticket, PackedRows)>,
    written: Vec<(Ticket, PackedRows)>,
    synced: usize,
    pub(crate) is_full: bool,
    /// Blocks that it had no room for.
    pub(crate) refused: u64,
}

impl Store {
    pub(crate) fn queue(&mut self, ticket: Ticket, rows: PackedRows) {
        self.queued.push((ticket, rows));
    }

    /// Hands what is queued to the kernel; the tickets of what the disk refused.
    pub(crate) fn write(&mut self) -> Vec<Ticket> {
        let queued = std::mem::take(&mut self.queued);
        if self.is_full {
            self.refused += queued.len() as u64;
            return queued.into_iter().map(|(ticket, _)| ticket).collect();
        }
        self.written.extend(queued);
        Vec::new()
    }

    /// Forces what is written to the disk; the last ticket of it.
    pub(crate) fn sync(&mut self) -> Option<Ticket> {
        self.synced = self.written.len();
        self.written.last().map(|(ticket, _)| *ticket)
    }

    /// The process is killed: the kernel has what was written.
    pub(crate) fn kill(&mut self) {
        self.queued.clear();
    }

    /// The power goes: some of what was not synced is gone.
    pub(crate) fn cut_power(&mut self, random: &mut Random) {
        self.queued.clear();
        let kept = self.synced + random.index(self.written.len() - self.synced + 1);
        self.written.truncate(kept);
    }

    /// Opens it anew: what is queued goes to the kernel, all is synced, and what is there is known.
    pub(crate) fn open(&mut self) -> OnDisk {
        self.write();
        self.synced = self.written.len();
        // Tickets of an earlier process mean nothing.
        self.written.iter_mut().for_each(|(ticket, _)| *ticket = 0);
        let (mut turns, mut newest_ns) = (Vec::new(), None);
        for (_, rows) in &self.written {
            if rows.table() == table().name {
                newest_ns = newest_ns.max(Some(rows.times().1));
            }
            turns.extend(turn_in(rows));
        }
        let arrived = self.written.iter().filter_map(|(_, rows)| {
            let origin = rows.origin()?.clone();
            Some(Arrived { table: rows.table().to_owned(), origin, times: rows.times() })
        });
        let arrived = arrived.collect();
        OnDisk { received: known(&self.written), turns, newest_ns, arrived }
    }

    /// What a power cut could not take.
    pub(crate) fn durable(&self) -> Received {
        known(&self.written[..self.synced])
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &PackedRows> {
        self.written.iter().map(|(_, rows)| rows)
    }
}

/// The turn that a block tells of, if it does.
fn turn_in(rows: &PackedRows) -> Option<Turn> {
    let schema = transport_turns::schema();
    let (batch, texts) = rows.unpack(&schema).ok()?;
    let bits = |name: &str| batch.bits(schema.column(name).unwrap(), 0).unwrap();
    let text = |name: &str| texts[usize::try_from(bits(name)).unwrap()].clone();
    Some(Turn {
        identity: text("identity"),
        sender: text("active"),
        from_ns: bits("from_ns").cast_signed(),
        until_ns: bits("until_ns").cast_signed(),
    })
}

fn known(blocks: &[(Ticket, PackedRows)]) -> Received {
    let mut received = Received::default();
    for origin in blocks.iter().filter_map(|(_, rows)| rows.origin()) {
        received.add(origin);
    }
    received
}
