//! Socket addresses in the kernel's form.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The length of `sockaddr_in6`, the longer of the two.
const LENGTH_MAX: usize = size_of::<libc::sockaddr_in6>();

/// A socket address in the kernel's form: `sockaddr_in` (ip(7)) or `sockaddr_in6` (ipv6(7)).
///
/// Both begin with family and port. The address follows them in the former; in the latter the flow
/// stands between, and the scope behind.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct Address {
    octets: [u8; LENGTH_MAX],
    length: u32,
}

impl Address {
    /// Room for any address.
    pub(crate) const EMPTY: Self = Self { octets: [0; LENGTH_MAX], length: 28 };

    /// Where it stands, and its length.
    pub(crate) fn name(&self) -> (*const Self, u32) {
        (std::ptr::from_ref(self), self.length)
    }

    /// Whether it is this address; the scope and flow of IPv6 do not matter.
    #[inline]
    pub fn is(&self, other: &SocketAddr) -> bool {
        let own = self.to_std();
        own.ip() == other.ip() && own.port() == other.port()
    }

    /// The octets from `at` on.
    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.octets[at..].first_chunk().expect("all parts are inside")
    }

    /// The address as the standard library has it.
    #[inline]
    pub fn to_std(&self) -> SocketAddr {
        let port = u16::from_be_bytes(self.part(2));
        if i32::from(u16::from_ne_bytes(self.part(0))) == libc::AF_INET6 {
            let (flow, scope) =
                (u32::from_ne_bytes(self.part(4)), u32::from_ne_bytes(self.part(24)));
            SocketAddrV6::new(Ipv6Addr::from(self.part::<16>(8)), port, flow, scope).into()
        } else {
            SocketAddrV4::new(Ipv4Addr::from(self.part::<4>(4)), port).into()
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let family = if address.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
        let family = u16::try_from(family).expect("families are small");
        let mut octets = [0; LENGTH_MAX];
        octets[0..2].copy_from_slice(&family.to_ne_bytes());
        octets[2..4].copy_from_slice(&address.port().to_be_bytes());
        let length = match address {
            SocketAddr::V4(v4) => {
                octets[4..8].copy_from_slice(&v4.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                octets[4..8].copy_from_slice(&v6.flowinfo().to_ne_bytes());
                octets[8..24].copy_from_slice(&v6.ip().octets());
                octets[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                LENGTH_MAX
            }
        };
        Self { octets, length: u32::try_from(length).expect("addresses are small") }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_std().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_parts_stand_where_the_kernel_has_them() {
        let v4 = [
            offset_of!(libc::sockaddr_in, sin_family),
            offset_of!(libc::sockaddr_in, sin_port),
            offset_of!(libc::sockaddr_in, sin_addr),
            size_of::<libc::sockaddr_in>(),
        ];
        assert_eq!(v4, [0, 2, 4, 16]);
        let v6 = [
            offset_of!(libc::sockaddr_in6, sin6_family),
            offset_of!(libc::sockaddr_in6, sin6_port),
            offset_of!(libc::sockaddr_in6, sin6_flowinfo),
            offset_of!(libc::sockaddr_in6, sin6_addr),
            offset_of!(libc::sockaddr_in6, sin6_scope_id),
            size_of::<libc::sockaddr_in6>(),
        ];
        assert_eq!(v6, [0, 2, 4, 8, 24, 28]);
        assert_eq!(offset_of!(Address, octets), 0);
        assert_eq!(Address::EMPTY.length as usize, LENGTH_MAX);
    }

    #[test]
    fn addresses_come_back() {
        let v6 = SocketAddrV6::new("fe80::1:2".parse().unwrap(), 161, 7, 3);
        for address in [SocketAddr::from(([192, 0, 2, 7], 16_100)), v6.into()] {
            let kernels = Address::from(address);
            assert_eq!(kernels.to_std(), address);
            assert!(kernels.is(&address));
            assert!(!kernels.is(&SocketAddr::new(address.ip(), 162)));
        }
    }
}
