//! What all LPs of a service know.

use std::num::NonZeroU16;
use std::sync::Arc;

use meikyo_metadata::{DirectoryEntry, Reply, Response, ServerId, ServerList};
use meikyo_sim::{Group, LpId, Model, Series, Statistic};
use meikyo_units::{Bytes, Nanos};

use crate::metadata_service::{Action, Host, Metadata, Packet};
use crate::prediction::packet::Shared;
use crate::rpc::Body;
use crate::simplenet::{Link, Passage, Switching};

/// A link and what an ordinary message costs on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    link: Link,
    ordinary: Passage,
}

/// The parameters, and what follows from them for every message.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(crate) metadata: Metadata,
    /// Between a client and its switch.
    pub(crate) client: Line,
    /// Between a server and its switch.
    pub(crate) server: Line,
    /// Between the two switches, the same in either direction.
    pub(crate) trunk: Line,
    /// The size of an ordinary message: whole packets, but for Ethernet, whose frames are as long as they need to be.
    message_size: Bytes,
    /// What all cards and switches know, if they are those of Ethernet.
    pub(crate) ethernet: Option<Arc<Shared>>,
    /// The server list of the root, of which copies cost nothing.
    pub(crate) root_servers: ServerList,
    switch_lps: u32,
    /// How long operations took, tallied by the client that began them.
    pub(crate) response_us: Statistic,
    /// Waiting times for the interface that sends answers, by server.
    pub(crate) reply_wait_us: Statistic,
    /// Response times over time, one series for each kind of operation.
    series: [Series; Action::ALL.len()],
}

impl Plan {
    pub(crate) fn new(
        metadata: &Metadata,
        model: &mut Model<Host>,
        clients: Group,
        servers: Group,
    ) -> Self {
        let message_size = match &metadata.ethernet {
            Some(_) => metadata.payload_size,
            None => whole_packets(metadata, metadata.payload_size),
        };
        let line = |rate| {
            let link = Link { start_up: metadata.net_startup, rate };
            Line { link, ordinary: link.passage(message_size) }
        };
        Self {
            client: line(metadata.client_rate),
            server: line(metadata.server_rate),
            trunk: line(metadata.switch_rate),
            message_size,
            ethernet: metadata.ethernet.as_ref().map(|ethernet| ethernet.shared(metadata)),
            root_servers: ServerList::all(metadata.servers),
            switch_lps: Self::switch_lps(metadata),
            response_us: model.statistic(clients, "response_us"),
            reply_wait_us: model.statistic(servers, "reply_wait_us"),
            series: Action::ALL.map(|action| model.series(action.series_name())),
            metadata: metadata.clone(),
        }
    }

    /// How many LPs each switch is.
    pub(crate) fn switch_lps(metadata: &Metadata) -> u32 {
        if metadata.switching == Switching::Unlimited { metadata.switch_lps.get() } else { 1 }
    }

    pub(crate) fn servers(&self) -> NonZeroU16 {
        self.metadata.servers
    }

    fn server_count(&self) -> u32 {
        u32::from(self.metadata.servers.get())
    }

    /// The LP of a server.
    pub(crate) fn server_lp(&self, server: ServerId) -> LpId {
        LpId::new(self.metadata.clients.get() + u32::from(server.get()))
    }

    /// The place of a server's LP among the servers.
    pub(crate) fn server_place(&self, server: LpId) -> u32 {
        server.get() - self.metadata.clients.get()
    }

    /// The part of the client switch that a client hangs on.
    pub(crate) fn client_switch(&self, client: LpId) -> LpId {
        let part = share(client.get(), self.metadata.clients.get(), self.switch_lps);
        LpId::new(self.metadata.clients.get() + self.server_count() + part)
    }

    /// The part of the server switch that a server hangs on.
    pub(crate) fn server_switch(&self, server: LpId) -> LpId {
        let part = share(self.server_place(server), self.server_count(), self.switch_lps);
        LpId::new(self.metadata.clients.get() + self.server_count() + self.switch_lps + part)
    }

    /// What `packet` costs on `line`.
    pub(crate) fn passage(&self, line: &Line, packet: &Packet) -> Passage {
        match &packet.body {
            Body::Request(_) => line.ordinary,
            Body::Reply(response) => self.reply_passage(line, response),
        }
    }

    /// What `response` costs on `line`.
    pub(crate) fn reply_passage(&self, line: &Line, response: &Response) -> Passage {
        match response {
            Ok(Reply::Page(page)) => line.link.passage(self.page_size(&page.entries)),
            _ => line.ordinary,
        }
    }

    /// The least span between a message's beginning at a switch, from `from`, and its beginning at
    /// what comes after the switch.
    pub(crate) fn relay_least(&self, from: &Line) -> Nanos {
        match self.metadata.switching {
            Switching::Unlimited => from.ordinary.transmission + self.metadata.net_startup,
            Switching::PerPort | Switching::PerNetwork | Switching::Shared => {
                self.metadata.net_startup
            }
        }
    }

    /// What an ordinary message costs on `line`.
    pub(crate) fn ordinary(line: &Line) -> Passage {
        line.ordinary
    }

    fn page_size(&self, entries: &[DirectoryEntry]) -> Bytes {
        whole_packets(&self.metadata, self.metadata.payload_size + entries_size(entries))
    }

    /// What `packet` carries.
    pub(crate) fn data(&self, packet: &Packet) -> Bytes {
        match &packet.body {
            Body::Reply(Ok(Reply::Page(page))) => {
                self.metadata.payload_size + entries_size(&page.entries)
            }
            _ => self.metadata.payload_size,
        }
    }

    pub(crate) fn message_size(&self) -> Bytes {
        self.message_size
    }

    pub(crate) fn series(&self, action: Action) -> Series {
        self.series[action.index()]
    }
}

fn entries_size(entries: &[DirectoryEntry]) -> Bytes {
    /// A number, a kind and a length.
    const ENTRY: u64 = 16;
    let bytes = entries
        .iter()
        .map(|entry| ENTRY + u64::try_from(entry.name.as_bytes().len()).expect("a name is short"));
    Bytes::new(bytes.sum())
}

/// `payload` in whole packets, at least one.
fn whole_packets(metadata: &Metadata, payload: Bytes) -> Bytes {
    let packet = metadata.packet_size.get().max(1);
    Bytes::new(payload.get().div_ceil(packet).max(1).saturating_mul(packet))
}

/// Which of `parts` equal parts of `count` holds `place`.
fn share(place: u32, count: u32, parts: u32) -> u32 {
    let part = u64::from(place) * u64::from(parts) / u64::from(count);
    u32::try_from(part).expect("a part is below the number of parts")
}
