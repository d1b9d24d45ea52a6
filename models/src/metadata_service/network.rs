//! The service as a closed network of queues: what theory says of a scenario.
//!
//! With closed-loop clients that make one request an operation (making files in one directory, a mix
//! without listing), an operation is a round: the client's start-up, the switches, the server's
//! reception, its storage, its start-up and sending, and back. What queues for something is a station,
//! everything else a delay. The first request of each client, for the server list, is not counted.
//!
//! A receiver takes a message while its sender still sends it, so that size over rate is in the round
//! once, and yet occupies both. Where both are stations, the work of each is counted in full and the
//! delay is less by as much: the round without waiting stays exact, and mean value analysis, which
//! takes service for exponential, says a little less than is possible.

use meikyo_units::Nanos;

use crate::analysis::{ClosedNetwork, Station};
use crate::metadata_service::ethernet;
use crate::metadata_service::{Directories, Load, Plan, Workload};
use crate::simplenet::{Passage, Switching};

impl Plan {
    /// The closed network of this service; none if its clients are not a closed loop with one request
    /// an operation.
    pub fn network(&self) -> Option<ClosedNetwork> {
        let Load::Closed { .. } = self.metadata.load else { return None };
        if self.ethernet.is_some() {
            return None;
        }
        let (changes, all) = self.changes_of_all()?;
        let stations = self.stations(changes, all);
        let work = stations.iter().fold(Nanos::ZERO, |sum, station| sum + station.demand);
        let round = self.round(changes, all);
        Some(ClosedNetwork { delay: round.saturating_sub(work), stations })
    }

    /// The most operations a second that the busiest kind of station allows, whatever the load; none
    /// where operations are of no kind that theory knows.
    pub(crate) fn capacity_per_s(&self) -> Option<f64> {
        if self.ethernet.is_some() {
            return None;
        }
        let (changes, all) = self.changes_of_all()?;
        let network = ClosedNetwork { delay: Nanos::ZERO, stations: self.stations(changes, all) };
        network.capacity_per_s().map(|(most, _)| most)
    }

    /// Operations a second that clients of an open loop begin; none in a closed loop.
    pub(crate) fn offered_per_s(&self) -> Option<f64> {
        let Load::Open { interarrival, .. } = self.metadata.load else { return None };
        Some(f64::from(self.metadata.clients.get()) / interarrival.as_secs_f64())
    }

    /// What a round of a client takes when nobody is in the way: an operation, of which `changes` of
    /// `all` are changes, and the thinking after it.
    fn round(&self, changes: u64, all: u64) -> Nanos {
        let metadata = &self.metadata;
        let store = scaled(metadata.store.service(self.message_size()), changes, all);
        let read = scaled(metadata.read_latency, all - changes, all);
        let think = match metadata.load {
            Load::Closed { think } => think,
            Load::Open { .. } => Nanos::ZERO,
        };
        self.both_ways() + store + read + think
    }

    /// What a request and its answer take on their ways.
    fn both_ways(&self) -> Nanos {
        if let Some(shared) = &self.ethernet {
            return ethernet::one_way(shared, self.metadata.payload_size) * 2;
        }
        let [client, server, trunk] = [&self.client, &self.server, &self.trunk].map(Self::ordinary);
        let receptions = client.transmission * 2 + server.transmission * 2 + trunk.transmission * 2;
        self.metadata.net_startup * 6 + receptions
    }

    /// What an answer occupies the interface of its server for.
    pub(crate) fn answer_occupancy(&self) -> Nanos {
        match &self.ethernet {
            Some(shared) => ethernet::on_a_cable(shared, self.metadata.payload_size),
            None => Self::ordinary(&self.server).occupancy(),
        }
    }

    /// The span in which clients begin.
    pub(crate) fn stagger(&self) -> Nanos {
        self.metadata.stagger.unwrap_or_else(|| self.round(1, 1))
    }

    /// What smooths the edges of a window in which operations are counted that are changes, or not, or
    /// both: the round of a client, and the service of the busiest kind of station.
    pub(crate) fn smoothing(&self, changes: Option<bool>) -> [Nanos; 2] {
        let (changes, all) = match changes {
            Some(changes) => (u64::from(changes), 1),
            None => self.changes_of_all().unwrap_or((1, 1)),
        };
        let stations = self.stations(changes, all);
        let service = ClosedNetwork { delay: Nanos::ZERO, stations }
            .capacity_per_s()
            .map_or(Nanos::ZERO, |(_, busiest)| busiest.demand);
        [self.round(changes, all), service]
    }

    /// Where operations queue, of which `changes` of `all` are changes.
    fn stations(&self, changes: u64, all: u64) -> Vec<Station> {
        let metadata = &self.metadata;
        let [client, server, trunk] = [&self.client, &self.server, &self.trunk].map(Self::ordinary);
        let store = scaled(metadata.store.service(self.message_size()), changes, all);
        let servers = u32::from(metadata.servers.get());
        let mut stations = Vec::new();
        if self.ethernet.is_none() {
            stations = self.switch_stations(client, server, trunk);
            let (receives, sends) = (server.transmission, server.occupancy());
            stations.push(station("receiving interfaces of the servers", receives, servers));
            stations.push(station("sending interfaces of the servers", sends, servers));
        }
        if metadata.store.queues() {
            stations.push(station("stores of the servers", store, servers));
        }
        stations
    }

    /// How many of how many operations are changes, as weights.
    fn changes_of_all(&self) -> Option<(u64, u64)> {
        let one = self.metadata.directories == Directories::One;
        match self.metadata.workload {
            Workload::Create => Some((1, 1)),
            Workload::Mdtest if one => Some((2, 3)),
            Workload::Mix(mix) if mix.list == 0 => {
                let changes = u64::from(mix.create) + u64::from(mix.unlink);
                Some((changes, changes + u64::from(mix.stat) + u64::from(mix.lookup)))
            }
            Workload::Mdtest | Workload::Mix(_) => None,
        }
    }

    /// What queues for the interfaces of the switches.
    fn switch_stations(&self, client: Passage, server: Passage, trunk: Passage) -> Vec<Station> {
        let servers = u32::from(self.metadata.servers.get());
        match self.metadata.switching {
            Switching::Unlimited => Vec::new(),
            Switching::PerPort => vec![
                station("trunk port of the client switch", trunk.occupancy(), 1),
                station("trunk port of the server switch", trunk.occupancy(), 1),
                station("server ports of the server switch", server.occupancy(), servers),
            ],
            Switching::PerNetwork => vec![
                station("trunk interface of the client switch", trunk.occupancy(), 1),
                station("trunk interface of the server switch", trunk.occupancy(), 1),
                station("client interface of the client switch", client.occupancy(), 1),
                station("server interface of the server switch", server.occupancy(), 1),
            ],
            Switching::Shared => vec![
                station("client switch", client.occupancy() + trunk.occupancy(), 1),
                station("server switch", server.occupancy() + trunk.occupancy(), 1),
            ],
        }
    }
}

fn station(name: &str, demand: Nanos, count: u32) -> Station {
    Station { name: name.to_owned(), demand, count }
}

/// `span` times `part` over `whole`, rounded down; `part` is no more than `whole`.
fn scaled(span: Nanos, part: u64, whole: u64) -> Nanos {
    let scaled = u128::from(span.get()) * u128::from(part) / u128::from(whole.max(1));
    Nanos::new(u64::try_from(scaled).expect("a part of a span is no longer than the span"))
}
