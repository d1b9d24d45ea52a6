//! Hosts on one bridge per link: network namespaces that all reach each other, of which the links may be shaped.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::thread;

use meikyo_units::{BitsPerSecond, Bytes};
use rustix::thread::LinkNameSpaceType;

use crate::links::{
    End, LOOPBACK_INDEX, Shape, Space, SpaceError, await_state, new_address, new_bridge, new_cable,
    new_space, set_link, set_link_down, shaping,
};
use crate::netlink::{Message, NetlinkError};
use crate::process;

/// Most hosts: their last number is that of their addresses.
pub const HOSTS_MAX: usize = 250;

/// Most links of a host.
pub const LINKS_MAX: usize = 16;

/// Octets that a shaped link may send at once beyond its rate. Segments that TCP hands down as one, up to 64 KiB and as
/// many headers, have to fit: the kernel takes others apart, as no card would make it do, which took most of the
/// processors' time.
const BURST: Bytes = Bytes::new(160 << 10);

/// How much waits for a shaped link: what it carries in this part of a second, and a burst.
const QUEUE_PARTS: u64 = 20;

const PREFIX_BITS: u8 = 24;

/// Numbers of devices begin here; the loopback device has the first.
const DEVICES: u32 = 2;

/// The numbers of ports begin behind those of bridges.
const PORTS: u32 = 100;

/// A network could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LanError {
    /// There are too many hosts or links, or none.
    #[error(
        "a network has 1 to {HOSTS_MAX} hosts with 1 to {LINKS_MAX} links, not {hosts} with {links}"
    )]
    Size {
        /// The hosts that were asked for.
        hosts: usize,
        /// As many for each.
        links: usize,
    },
    /// A namespace could not be made.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The kernel refuses what should be in one.
    #[error("cannot set up a network of namespaces")]
    Netlink(#[from] NetlinkError),
}

/// The namespaces of hosts, and of the switch that joins them. They go when this goes, and with the last process that is
/// in one.
#[derive(Debug)]
pub struct Lan {
    hosts: Vec<File>,
    /// Holds the bridges.
    switch: Space,
}

impl Lan {
    /// Makes hosts with so many links each, of this rate in both directions where there is one.
    ///
    /// # Errors
    /// When the kernel refuses it: only root may make network namespaces, or who is root of a user namespace.
    ///
    /// # Panics
    /// If the thread that enters the namespaces does.
    pub fn make(hosts: usize, links: usize, rate: Option<BitsPerSecond>) -> Result<Self, LanError> {
        if !(1..=HOSTS_MAX).contains(&hosts) || !(1..=LINKS_MAX).contains(&links) {
            return Err(LanError::Size { hosts, links });
        }
        // A thread of its own enters them, so that the caller stays where it is.
        let made = thread::spawn(move || set_up(hosts, links, rate));
        made.join().expect("the thread that sets a network up does not panic")
    }

    /// The address of a host on a link.
    ///
    /// # Panics
    /// If the numbers are beyond [`HOSTS_MAX`] and [`LINKS_MAX`].
    pub fn address(host: usize, link: usize) -> Ipv4Addr {
        assert!(host < HOSTS_MAX && link < LINKS_MAX, "there are fewer hosts and links");
        let number = |number: usize| u8::try_from(number).expect("few hosts and links");
        Ipv4Addr::new(10, 77, number(link), number(host + 1))
    }

    /// The namespace of a host.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn space(&self, host: usize) -> &File {
        &self.hosts[host]
    }

    /// Lets a link of all hosts carry frames, or drops what is on it: hosts keep their carriers, and what they send over
    /// TCP meanwhile they send again.
    ///
    /// # Errors
    /// When the kernel refuses it.
    ///
    /// # Panics
    /// If the number is beyond [`LINKS_MAX`].
    pub fn carry(&mut self, link: usize, is_on: bool) -> Result<(), LanError> {
        assert!(link < LINKS_MAX, "there are fewer links");
        let change = if is_on {
            set_link("a bridge up", bridge(link), None, true)
        } else {
            set_link_down("a bridge down", bridge(link))
        };
        Ok(self.switch.netlink.apply(vec![change])?)
    }

    /// Moves the calling thread into a host.
    ///
    /// # Errors
    /// When the kernel refuses it.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn enter(&self, host: usize) -> io::Result<()> {
        process::enter(self.space(host), LinkNameSpaceType::Network)
    }
}

fn number(number: usize) -> u32 {
    u32::try_from(number).expect("there are few hosts and links")
}

/// The device in the switch that joins the hosts on a link.
fn bridge(link: usize) -> u32 {
    DEVICES + number(link)
}

fn set_up(hosts: usize, links: usize, rate: Option<BitsPerSecond>) -> Result<Lan, LanError> {
    let mut switch = new_space()?;
    let mut made = (0..hosts).map(|_| new_space()).collect::<Result<Vec<Space>, _>>()?;
    let shape = rate.map(|rate| {
        let queue = Bytes::new(rate.get() / 8 / QUEUE_PARTS + BURST.get());
        Shape { rate, burst: BURST, queue }
    });
    let up = |what: &str, index| set_link(what, index, None, true);
    let mut messages = Vec::new();
    for link in 0..links {
        let device = format!("br{link}");
        let end = End { index: bridge(link), device: &device, mac: None };
        messages.push(new_bridge("a bridge", &end, |data| data));
        messages.push(up("a bridge up", bridge(link)));
    }
    switch.netlink.apply(messages)?;
    let mut ports = BTreeSet::new();
    for (host, space) in made.iter_mut().enumerate() {
        let mut messages = vec![up("loopback up", LOOPBACK_INDEX)];
        let mut of_switch: Vec<Message> = Vec::new();
        for link in 0..links {
            let port = PORTS + number(host * links + link);
            let (own, other) = (format!("l{link}"), format!("h{host}l{link}"));
            let index = DEVICES + number(link);
            let one = End { index, device: &own, mac: None };
            let two = End { index: port, device: &other, mac: None };
            messages.push(new_cable(&one, &two, "the switch", switch.file.as_fd()));
            messages.push(new_address(index, Lan::address(host, link), PREFIX_BITS));
            messages.push(up("a link up", index));
            messages.extend(shape.map(|shape| shaping(&own, index, &shape)));
            of_switch.push(set_link("a port", port, Some(bridge(link)), true));
            of_switch.extend(shape.map(|shape| shaping(&other, port, &shape)));
            ports.insert(port);
        }
        space.netlink.apply(messages)?;
        switch.netlink.apply(of_switch)?;
    }
    await_state(&mut switch.netlink, ports, true)?;
    let hosts = made.into_iter().map(|space| space.file).collect();
    Ok(Lan { hosts, switch })
}
