//! Which server keeps which entry.
//!
//! The bytes of a name are hashed by 64-bit FNV-1a (offset basis `cbf29ce484222325`, prime
//! `100000001b3`), the result is mixed by `MurmurHash3`'s `fmix64`, and the remainder of the division
//! by the length of the directory's server list is the place in the list. FNV-1a alone spreads names
//! that differ in their last digit badly over a power of two of servers; the mixing mends that.
//! The function is part of what is stored: it does not change.

use std::num::NonZeroU16;
use std::sync::Arc;

use crate::inode::Key;
use crate::name::Name;
use crate::number::ServerId;

/// The hash of `name` that places it.
pub fn hash(name: &Name) -> u64 {
    let fnv1a = name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    mixed(fnv1a)
}

/// The remainder of `hash` divided by `len`.
fn place(hash: u64, len: usize) -> usize {
    let len = u64::try_from(len).expect("a length fits into 64 bits");
    usize::try_from(hash % len).expect("less than the length")
}

fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// The servers that keep a directory's entries, at least one; the first is the directory's home.
///
/// Copies share one allocation.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<ServerId>", into = "Vec<ServerId>")]
pub struct ServerList(Arc<[ServerId]>);

/// Why servers are no server list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidServerList {
    /// There are none.
    #[error("a directory needs at least one server")]
    Empty,
    /// One is there twice, so its entries would be listed twice.
    #[error("`{server}` is in the server list twice")]
    Repeated {
        /// The server that is listed again.
        server: ServerId,
    },
}

impl TryFrom<Vec<ServerId>> for ServerList {
    type Error = InvalidServerList;

    fn try_from(servers: Vec<ServerId>) -> Result<Self, InvalidServerList> {
        Self::new(servers)
    }
}

impl From<ServerList> for Vec<ServerId> {
    fn from(list: ServerList) -> Self {
        list.0.to_vec()
    }
}

impl ServerList {
    /// A list of these servers.
    ///
    /// # Errors
    /// If there is no server, or one more than once.
    pub fn new(servers: impl IntoIterator<Item = ServerId>) -> Result<Self, InvalidServerList> {
        let servers: Arc<[_]> = servers.into_iter().collect();
        let mut sorted = servers.to_vec();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(InvalidServerList::Repeated { server: pair[0] }),
            None if sorted.is_empty() => Err(InvalidServerList::Empty),
            None => Ok(Self(servers)),
        }
    }

    /// All of `servers` servers; the first is the home.
    pub fn all(servers: NonZeroU16) -> Self {
        Self(ServerId::all(servers).collect())
    }

    /// The list for a new directory `key`: `width` neighbours of all `servers` (all of them, if
    /// `width` is more) from one that the hash of the key picks, so that homes and small directories
    /// spread evenly.
    pub fn spread(servers: NonZeroU16, width: NonZeroU16, key: &Key) -> Self {
        let hash = mixed(hash(&key.name) ^ mixed(key.directory.get()));
        let first = place(hash, usize::from(servers.get()));
        let neighbours = ServerId::all(servers).cycle().skip(first);
        Self(neighbours.take(usize::from(width.min(servers).get())).collect())
    }

    /// The server that keeps the entry `name`.
    pub fn server_of(&self, name: &Name) -> ServerId {
        self.0[place(hash(name), self.0.len())]
    }

    /// The server that is asked for this list.
    pub fn home(&self) -> ServerId {
        self.0[0]
    }

    /// The servers, the home first.
    pub fn as_slice(&self) -> &[ServerId] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::InodeNumber;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn the_hash_is_fnv_1a_and_fmix64() {
        // Worked out by an implementation of its own, in another language; FNV-1a of `a` is
        // af63dc4c8601ec8c, of `foobar` 85944171f73967e8 (the authors' published vectors).
        for (text, expected) in [
            ("a", 0x82a2_a958_a9be_ce5b),
            ("foobar", 0x2c22_1949_22d1_672b),
            ("file.0", 0xb4a4_9874_d8c5_ce53),
            ("file.1", 0x3afe_58b4_510a_8112),
            (&"x".repeat(255), 0x1915_a563_08b3_7f70),
        ] {
            assert_eq!(hash(&name(text)), expected, "{text}");
        }
        assert_eq!(mixed(1), 0xb456_bcfc_34c2_cb2c);
        let five = ServerList::all(NonZeroU16::new(5).unwrap());
        let servers = ["a", "foobar", "file.0", "file.1"].map(|text| five.server_of(&name(text)));
        assert_eq!(servers.map(ServerId::get), [0, 0, 4, 3]);
    }

    /// Pearson's statistic of counts that should be equal.
    fn chi_square(counts: &[u32]) -> f64 {
        let bins = f64::from(u32::try_from(counts.len()).unwrap());
        let expected = f64::from(counts.iter().sum::<u32>()) / bins;
        counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
    }

    /// Quantile 0.999 of the chi-square distribution by Wilson and Hilferty's approximation.
    fn critical(bins: u16) -> f64 {
        let freedom = f64::from(bins - 1);
        let ninth = 2.0 / (9.0 * freedom);
        freedom * (1.0 - ninth + 3.09 * ninth.sqrt()).powi(3)
    }

    #[test]
    fn numbered_names_spread_evenly_over_any_number_of_servers() {
        for servers in [2_u16, 3, 4, 5, 8, 14, 16, 64, 100, 128] {
            let list = ServerList::all(NonZeroU16::new(servers).unwrap());
            let mut counts = [vec![0_u32; usize::from(servers)], vec![0; usize::from(servers)]];
            for number in 0..50_000 {
                let plain = Name::format(format_args!("{number}")).unwrap();
                let padded = Name::format(format_args!("file.mdtest.7.{number:08}.a")).unwrap();
                counts[0][list.server_of(&plain).index()] += 1;
                counts[1][list.server_of(&padded).index()] += 1;
            }
            for counts in &counts {
                let (found, limit) = (chi_square(counts), critical(servers));
                assert!(found < limit, "{servers} servers: {found} is not below {limit}");
            }
        }
    }

    #[test]
    fn new_directories_spread_their_homes_evenly() {
        let servers = NonZeroU16::new(16).unwrap();
        let mut homes = [0_u32; 16];
        for number in 0..20_000_u64 {
            let directory = InodeNumber::from_u64(1 + number / 100);
            let key = Key::new(directory, Name::format(format_args!("d{}", number % 100)).unwrap());
            let list = ServerList::spread(servers, NonZeroU16::new(3).unwrap(), &key);
            let first = list.home().get();
            let neighbours = [first, (first + 1) % 16, (first + 2) % 16].map(ServerId::new);
            assert_eq!(list.as_slice(), neighbours);
            homes[list.home().index()] += 1;
        }
        assert!(chi_square(&homes) < critical(16));
        let key = Key::new(InodeNumber::ROOT, name("d"));
        assert_eq!(ServerList::spread(servers, NonZeroU16::MAX, &key).as_slice().len(), 16);
    }

    #[test]
    fn a_list_names_every_server_once() {
        let list = |ids: &[u16]| ServerList::new(ids.iter().copied().map(ServerId::new));
        assert_eq!(list(&[]), Err(InvalidServerList::Empty));
        let server = ServerId::new(4);
        assert_eq!(list(&[4, 1, 4]), Err(InvalidServerList::Repeated { server }));
        assert_eq!(list(&[4, 1]).unwrap().home(), server);
    }
}
