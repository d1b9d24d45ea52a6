//! Numbers of servers and of inodes.

use std::fmt;
use std::num::NonZeroU16;

/// A metadata server: 0 for the first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct ServerId(u16);

impl ServerId {
    /// The server with this number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Position among the servers, from 0.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Its place in an array of all servers.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The first `servers` servers, in order.
    pub fn all(servers: NonZeroU16) -> impl DoubleEndedIterator<Item = Self> + Clone {
        (0..servers.get()).map(Self)
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mds{}", self.0)
    }
}

/// The number of a file or directory, never used again after its end.
///
/// The upper 16 bits are the server that gave it, the lower 48 bits that server's own count, so that
/// servers give numbers without asking each other. Of a directory that server is the home: who knows
/// the number knows whom to ask for the directory's server list.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct InodeNumber(u64);

impl InodeNumber {
    /// The root directory, whose home is the first server.
    pub const ROOT: Self = Self(1);

    const COUNT_BITS: u32 = 48;

    /// The `count`th number of `server`; none when its 2^48 numbers are used up.
    pub(crate) fn new(server: ServerId, count: u64) -> Option<Self> {
        let fits = count >> Self::COUNT_BITS == 0;
        fits.then(|| Self(u64::from(server.get()) << Self::COUNT_BITS | count))
    }

    /// The inode with this number, as it came from [`InodeNumber::get`].
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The server that gave the number.
    pub const fn home(self) -> ServerId {
        let [high, low, ..] = self.0.to_be_bytes();
        ServerId(u16::from_be_bytes([high, low]))
    }
}

impl fmt::Display for InodeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_home_until_the_numbers_are_used_up() {
        let last = ServerId::new(u16::MAX);
        let number = InodeNumber::new(last, (1 << 48) - 1).unwrap();
        assert_eq!((number.get(), number.home()), (u64::MAX, last));
        assert_eq!(InodeNumber::new(last, 1 << 48), None);
        assert_eq!(InodeNumber::new(ServerId::new(0), 1), Some(InodeNumber::ROOT));
        assert_eq!(InodeNumber::from_u64(3 << 48 | 7).home(), ServerId::new(3));
    }
}
