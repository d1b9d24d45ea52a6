//! Where an agent's blocks go.
//!
//! A spool on a disk has a thread: while the disk is slow, the kernel goes on writing samples, and its rings hold
//! seconds. Where unsent blocks wait in memory nothing is slow, and the thread that samples sends them itself: on a
//! busy host waking another one costs as much as packing some hundred samples.

use std::path::Path;

use meikyo_profile::STREAM;
use meikyo_recording::PackedRows;
use meikyo_sockets::PollFd;
use meikyo_transport::SenderOptions;
use meikyo_transport::shell::{Driver, StartError, Target, Uplink, UplinkStatus};
use meikyo_transport::wire::Ask;
use meikyo_units::Nanos;

/// Blocks that are handed over together at most: a thread's queue holds many times as many.
const BLOCKS_AT_ONCE: usize = 16;

/// Blocks on their way to whoever sends them.
#[derive(Debug)]
pub(super) struct Outlet {
    sending: Sending,
    blocks: Vec<PackedRows>,
    /// Blocks that were put in, and the rows of all tables in them.
    pub(super) offered: u64,
    pub(super) rows: u64,
}

#[derive(Debug)]
enum Sending {
    Here(Box<Driver>),
    ByThread(Uplink),
}

impl Outlet {
    pub(super) fn open(
        target: Target,
        options: SenderOptions,
        spool: Option<&Path>,
    ) -> Result<Self, StartError> {
        let sending = match spool {
            None => Sending::Here(Box::new(Driver::open(target, options)?)),
            Some(_) => Sending::ByThread(Uplink::start(target, options, spool)?),
        };
        Ok(Self { sending, blocks: Vec::new(), offered: 0, rows: 0 })
    }

    pub(super) fn put(&mut self, block: PackedRows) {
        self.offered += 1;
        self.rows += block.rows() as u64;
        self.blocks.push(block);
        if self.blocks.len() >= BLOCKS_AT_ONCE {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        const DECLARED: &str = "all tables of a profile are declared";
        let blocks = self.blocks.drain(..);
        match &mut self.sending {
            Sending::Here(driver) => blocks.for_each(|block| {
                // The server is told of a block that is too long, and people by the status.
                drop(driver.offer(STREAM, &block));
            }),
            Sending::ByThread(_) if blocks.len() == 0 => {}
            Sending::ByThread(uplink) => uplink.offer_all(STREAM, blocks).expect(DECLARED),
        }
    }

    /// Sends what was put in, and hears what the server says.
    pub(super) fn turn(&mut self) {
        self.hand_over();
        if let Sending::Here(driver) = &mut self.sending {
            driver.turn();
        }
    }

    /// How long the next turn may be waited for, and what ends the wait before.
    pub(super) fn wait_for(&self) -> (Option<Nanos>, Vec<PollFd<'_>>) {
        match &self.sending {
            Sending::Here(driver) => {
                let (most, fds) = driver.wait_for();
                (Some(most), fds)
            }
            Sending::ByThread(_) => (None, Vec::new()),
        }
    }

    pub(super) fn has_waited(&mut self) {
        if let Sending::Here(driver) = &mut self.sending {
            driver.has_waited();
        }
    }

    /// The next thing that the server wants to be told.
    pub(super) fn next_asked(&mut self) -> Option<Ask> {
        match &mut self.sending {
            Sending::Here(driver) => driver.next_asked(),
            Sending::ByThread(uplink) => uplink.next_asked(),
        }
    }

    pub(super) fn status(&self) -> UplinkStatus {
        match &self.sending {
            Sending::Here(driver) => driver.status(),
            Sending::ByThread(uplink) => uplink.status(),
        }
    }

    /// Sends until `holds` is true of the status, or `patience` is over; the status then.
    pub(super) fn wait(
        &mut self,
        patience: Nanos,
        holds: impl FnMut(&UplinkStatus) -> bool,
    ) -> UplinkStatus {
        self.hand_over();
        match &mut self.sending {
            Sending::Here(driver) => driver.wait(patience, holds),
            Sending::ByThread(uplink) => uplink.wait(patience, holds),
        }
    }

    /// Says that nothing more comes; whether the server has everything before `patience` is over.
    pub(super) fn finish(self, patience: Nanos) -> bool {
        let status = match self.sending {
            Sending::Here(driver) => driver.finish(patience),
            Sending::ByThread(uplink) => uplink.finish(patience),
        };
        status.is_delivered()
    }
}
