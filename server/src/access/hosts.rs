//! The names that the server may be called by, and the origins whose pages may ask (RFC 6454).

use std::net::IpAddr;

/// What the server speaks, or a page was loaded by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Why a `--host` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no name of a host: write `mon.example`, or behind a proxy the origin of its pages, \
     `https://mon.example` or `https://mon.example:8443`"
)]
pub struct HostError {
    /// What was given.
    text: String,
}

/// The server's own names and the origins of its pages.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// What the server itself speaks.
    own: Scheme,
    /// Names by which browsers ask the server itself.
    names: Vec<String>,
    /// Addresses that it listens at.
    addresses: Vec<IpAddr>,
    /// Origins of pages that ask through something in between.
    origins: Vec<(Scheme, String, u16)>,
}

/// `host:port` or `[address]:port`.
struct Authority<'a> {
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, rest) = rest.split_once(']')?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
                (name, port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        let digits = |port: &str| port.bytes().all(|octet| octet.is_ascii_digit());
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|_| digits(port))?),
            None => None,
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        (!name.is_empty() && name.chars().all(fits)).then_some(Self { name, port })
    }

    fn port_of(&self, scheme: Scheme) -> u16 {
        self.port.unwrap_or_else(|| scheme.port())
    }
}

impl Hosts {
    /// Reads names and origins as they were given to a server that speaks TLS or does not.
    pub(crate) fn parse(given: &[String], tls: bool) -> Result<Self, HostError> {
        let own = if tls { Scheme::Https } else { Scheme::Http };
        let (names, origins) = (Vec::new(), Vec::new());
        let mut hosts = Self { own, names, addresses: Vec::new(), origins };
        for text in given {
            let wrong = || HostError { text: text.clone() };
            let (scheme, authority) = match text.split_once("://") {
                Some((scheme, rest)) => (Some(Scheme::parse(scheme).ok_or_else(wrong)?), rest),
                None => (None, text.as_str()),
            };
            let authority = Authority::parse(authority).ok_or_else(wrong)?;
            match scheme {
                Some(of) => hosts.origins.push((of, authority.name.into(), authority.port_of(of))),
                // Without a scheme a port would say nothing about who may ask.
                None if authority.port.is_some() => return Err(wrong()),
                None => hosts.names.push(authority.name.into()),
            }
        }
        Ok(hosts)
    }

    /// The same, and the address that the server listens at: no foreign name stands for itself there.
    pub(crate) fn and_address(mut self, address: IpAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Whether the server may be called by a name, as a `Host` header has it.
    pub(super) fn is_ours(&self, host: &str) -> bool {
        let origins = |name: &str| self.origins.iter().any(|of| of.1.eq_ignore_ascii_case(name));
        Authority::parse(host).is_some_and(|of| self.is_own(of.name) || origins(of.name))
    }

    /// Whether browsers ask the server itself by a name, with nothing in between.
    fn is_own(&self, name: &str) -> bool {
        is_loopback(name)
            || name.parse().is_ok_and(|address| self.addresses.contains(&address))
            || self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether pages of an origin may ask a server that they call by `host`: those that came from
    /// there, by what the server speaks, and those of the origins that are listed.
    pub(super) fn admits(&self, origin: &str, host: Option<&str>) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        let (Some(scheme), Some(authority)) = (Scheme::parse(scheme), Authority::parse(authority))
        else {
            return false;
        };
        let port = authority.port_of(scheme);
        let same = |host: Authority<'_>| {
            scheme == self.own
                && self.is_own(host.name)
                && host.name.eq_ignore_ascii_case(authority.name)
                && host.port_of(self.own) == port
        };
        let listed = |(of, name, at): &(Scheme, String, u16)| {
            *of == scheme && name.eq_ignore_ascii_case(authority.name) && *at == port
        };
        host.and_then(Authority::parse).is_some_and(same) || self.origins.iter().any(listed)
    }
}

/// Whether a name is this machine's own and nobody else's.
fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(given: &[&str], tls: bool) -> Hosts {
        let given: Vec<_> = given.iter().map(|host| (*host).to_owned()).collect();
        Hosts::parse(&given, tls).unwrap()
    }

    #[test]
    fn only_own_names_are_answered() {
        let hosts = hosts(&["cluster.example", "https://proxy.example:8443"], false);
        for (name, ours) in [
            ("127.0.0.1:8420", true),
            ("localhost", true),
            ("[::1]:8420", true),
            ("Cluster.Example:443", true),
            ("proxy.example", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example:8420", false),
            ("127.0.0.1:80@evil.example", false),
            ("127.0.0.1:", false),
            ("[::1]evil.example", false),
            ("", false),
        ] {
            assert_eq!(hosts.is_ours(name), ours, "{name}");
        }
    }

    #[test]
    fn the_address_that_it_listens_at_is_a_name_of_its_own() {
        let hosts = hosts(&[], true).and_address([192, 0, 2, 7].into());
        assert!(hosts.is_ours("192.0.2.7:8420"));
        assert!(!hosts.is_ours("192.0.2.8:8420"));
        assert!(!hosts.is_ours("192.0.2.7.evil.example:8420"));
        assert!(hosts.admits("https://192.0.2.7:8420", Some("192.0.2.7:8420")));
    }

    #[test]
    fn an_origin_is_scheme_name_and_port() {
        let host = Some("127.0.0.1:8420");
        let plain = hosts(&["cluster.example", "https://proxy.example"], false);
        for (origin, admitted) in [
            ("http://127.0.0.1:8420", true),
            ("https://127.0.0.1:8420", false),
            ("http://127.0.0.1:9999", false),
            ("http://127.0.0.1", false),
            ("https://proxy.example", true),
            ("https://Proxy.Example:443", true),
            ("http://proxy.example", false),
            ("https://proxy.example:8443", false),
            ("http://proxy.example:443", false),
            ("https://cluster.example", false),
            ("http://cluster.example:9999", false),
            ("https://evil.example", false),
            ("ftp://127.0.0.1:8420", false),
            ("null", false),
            ("", false),
        ] {
            assert_eq!(plain.admits(origin, host), admitted, "{origin}");
        }
        assert!(plain.admits("http://cluster.example:8420", Some("cluster.example:8420")));
        assert!(!plain.admits("http://cluster.example", Some("cluster.example:8420")));
        let passed_on = Some("proxy.example");
        assert!(plain.admits("https://proxy.example", passed_on));
        assert!(!plain.admits("http://proxy.example", passed_on), "not through the proxy");
        let tls = hosts(&["cluster.example"], true);
        assert!(tls.admits("https://cluster.example", Some("cluster.example:443")));
        assert!(!tls.admits("http://cluster.example", Some("cluster.example")));
        assert!(!tls.admits("https://cluster.example:8443", Some("cluster.example")));
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for text in ["", "a:443", "ftp://a", "https://", "https://a/b", "a b", "https://a:x", "*"] {
            assert!(Hosts::parse(&[text.to_owned()], true).is_err(), "{text}");
        }
    }
}
