//! Which host each rank runs on.

use std::collections::BTreeMap;

use meikyo_worlds::Random;

use crate::parameters::choice;

/// How ranks are dealt to hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deal {
    /// Consecutive ranks on one host until its slots are full.
    Block,
    /// One rank to each host, then from the first host again.
    RoundRobin,
    /// As blocks, with the hosts in an order that is drawn by the seed.
    Random,
}
choice!(Deal { Block = "block", RoundRobin = "round-robin", Random = "random" });

/// The host of each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    hosts: Vec<usize>,
}

/// Ranks do not fit on the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{ranks} ranks do not fit into slots: {} are there, {slots} on each of {hosts} hosts", hosts * slots)]
pub struct TooManyRanks {
    /// Ranks that are to run.
    pub ranks: usize,
    /// Hosts of the fabric.
    pub hosts: usize,
    /// Ranks that fit on a host.
    pub slots: usize,
}

/// A list of hosts does not fit ranks or fabric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongList {
    /// There is no such host.
    #[error("rank {rank} is to run on `{host}`, which is no host of the fabric")]
    Unknown {
        /// The first rank of such a host.
        rank: usize,
        /// As it is written.
        host: String,
    },
    /// It has fewer places than there are ranks.
    #[error("the list has {places} places for {ranks} ranks")]
    TooShort {
        /// Ranks that are to run.
        ranks: usize,
        /// Places of the list.
        places: usize,
    },
}

impl Placement {
    /// Ranks on the hosts of a list, by name, of which more may be there than ranks.
    ///
    /// # Errors
    /// If there are more ranks than places, or a host is not among `hosts`.
    pub fn listed<'a>(
        list: &[String],
        ranks: usize,
        hosts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WrongList> {
        if ranks > list.len() {
            return Err(WrongList::TooShort { ranks, places: list.len() });
        }
        let places: BTreeMap<&str, usize> =
            hosts.enumerate().map(|(at, name)| (name, at)).collect();
        let host = |(rank, name): (usize, &String)| {
            let place = places.get(name.as_str()).copied();
            place.ok_or_else(|| WrongList::Unknown { rank, host: name.clone() })
        };
        let hosts = list[..ranks].iter().enumerate().map(host).collect::<Result<_, _>>()?;
        Ok(Self { hosts })
    }

    /// Deals ranks to hosts that have room for `slots` of them each.
    ///
    /// # Errors
    /// If there are more ranks than slots.
    pub fn new(
        deal: Deal,
        ranks: usize,
        hosts: usize,
        slots: usize,
        seed: u64,
    ) -> Result<Self, TooManyRanks> {
        if ranks > hosts * slots {
            return Err(TooManyRanks { ranks, hosts, slots });
        }
        let mut order: Vec<usize> = (0..hosts).collect();
        if deal == Deal::Random {
            let mut random = Random::new(seed);
            for last in (1..hosts).rev() {
                order.swap(last, random.index(last + 1));
            }
        }
        let host = |rank: usize| match deal {
            Deal::Block | Deal::Random => order[rank / slots],
            Deal::RoundRobin => rank % hosts,
        };
        Ok(Self { hosts: (0..ranks).map(host).collect() })
    }

    /// The same with more ranks behind, on these hosts.
    pub(super) fn with(&self, more: Vec<usize>) -> Self {
        let mut hosts = self.hosts.clone();
        hosts.extend(more);
        Self { hosts }
    }

    /// The host of a rank.
    pub fn host(&self, rank: usize) -> usize {
        self.hosts[rank]
    }
}
