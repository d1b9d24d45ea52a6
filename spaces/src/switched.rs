//! Hosts behind switches: network namespaces that are joined by cables of one rate, in which every frame goes the way that was
//! said for its sender and receiver.
//!
//! A switch here is a namespace with a port for each of its cables. What comes in by a port is handed to the port that its
//! addresses call for (the classifier `u32` with the action `mirred`), and waits there in the queue of a token bucket. Nothing
//! learns, floods or asks for addresses, so that a cable carries what programs send and nothing else; which cable of a bundle
//! a pair of hosts uses is said, too. Hosts send by CUBIC, whatever this machine sends by, and hand over single frames.
//!
//! What it needs beyond `lan` are two parts of the kernel, `cls_u32` and `act_mirred`, where a lab of bridges needs VLAN filtering.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::thread;

use meikyo_units::Bytes;

use crate::links::{
    End, LOOPBACK_INDEX, Shape, Space, SpaceError, await_state, bound_windows, new_address,
    new_cable, new_space, reshaping, set_link, shaping,
};
use crate::netlink::{Message, Netlink, NetlinkError, RTM_GETLINK, attributes};
use crate::steering::{Steered, ingress, known_neighbour, single_frames, steer, windowed_route};

/// Most hosts: their last number is that of their addresses.
pub const HOSTS_MAX: usize = 250;

/// What the device of every host is called.
pub const DEVICE: &str = "eth0";

const PREFIX_BITS: u8 = 24;

/// The number of the device of a host; those of the ports of switches begin behind it.
const HOST_INDEX: u32 = 2;
const PORTS: u32 = 100;

const IFLA_STATS64: u16 = 23;

/// What a cable is plugged into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A host, by its number.
    Host(usize),
    /// A switch, by its number.
    Switch(usize),
}

/// One direction of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// By its place in [`SwitchedPlan::cables`].
    pub cable: usize,
    /// Whether from its second end to its first.
    pub back: bool,
}

/// The way of frames from one host to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Who sends.
    pub from: usize,
    /// Who receives.
    pub to: usize,
    /// From the sender's cable to the receiver's.
    pub lanes: Vec<Lane>,
}

/// What is to be set up.
#[derive(Debug, Clone)]
pub struct SwitchedPlan {
    /// How many hosts.
    pub hosts: usize,
    /// How many switches.
    pub switches: usize,
    /// Both ends of each cable. A host has one.
    pub cables: Vec<[Place; 2]>,
    /// The ways of all pairs of hosts that speak with each other, both there and back.
    pub ways: Vec<Way>,
    /// What a cable carries in either direction, and what waits for it.
    pub shape: Shape,
    /// What a host lets others have under way to it on one connection.
    pub window: Bytes,
}

/// A network could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SwitchedError {
    /// There are too many hosts, or none.
    #[error("a network has 1 to {HOSTS_MAX} hosts, not {0}")]
    Hosts(usize),
    /// A host has no cable or several.
    #[error("host {host} has {cables} cables, where it needs one")]
    Cables {
        /// By its number.
        host: usize,
        /// As many as it has.
        cables: usize,
    },
    /// The lanes of a way are no way.
    #[error("the way from host {from} to host {to} is no chain of cables between them")]
    Way {
        /// Who sends.
        from: usize,
        /// Who receives.
        to: usize,
    },
    /// A namespace could not be made.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The kernel refuses what should be in a namespace.
    #[error("cannot set up a network of switches")]
    Netlink(#[from] NetlinkError),
}

/// What a port has sent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Full ones and others, acknowledgements included.
    pub frames: u64,
    /// Their octets, with Ethernet's headers.
    pub bytes: u64,
}

/// The namespaces of hosts and switches. They go when this goes, and with the last process that is in one.
#[derive(Debug)]
pub struct Switched {
    /// Those of the hosts, then those of the switches.
    spaces: Vec<Space>,
    /// For each cable and end the namespace and the number of its device there.
    devices: Vec<[(usize, u32); 2]>,
}

impl Switched {
    /// Makes hosts and switches, and joins them.
    ///
    /// # Errors
    /// When the plan cannot be, or the kernel refuses it: only root may make network namespaces, or who is root of a user
    /// namespace.
    ///
    /// # Panics
    /// If the thread that enters the namespaces does.
    pub fn make(plan: &SwitchedPlan) -> Result<Self, SwitchedError> {
        check(plan)?;
        let plan = plan.clone();
        // A thread of its own enters them, so that the caller stays where it is.
        let made = thread::spawn(move || set_up(&plan));
        made.join().expect("the thread that sets a network up does not panic")
    }

    /// The address of a host.
    ///
    /// # Panics
    /// If the number is beyond [`HOSTS_MAX`].
    pub fn address(host: usize) -> Ipv4Addr {
        assert!(host < HOSTS_MAX, "there are fewer hosts");
        Ipv4Addr::new(10, 79, 0, u8::try_from(host + 1).expect("few hosts"))
    }

    /// The namespace of a host.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn space(&self, host: usize) -> &File {
        &self.spaces[host].file
    }

    /// Gives all cables another rate and other queues.
    ///
    /// # Errors
    /// When the kernel refuses them.
    pub fn reshape(&mut self, shape: &Shape) -> Result<(), NetlinkError> {
        for &(at, index) in self.devices.iter().flatten() {
            let message = reshaping(&format!("device {index}"), index, shape);
            self.spaces[at].netlink.apply(vec![message])?;
        }
        Ok(())
    }

    /// What was sent on each cable so far, from its first end and from its second.
    ///
    /// # Errors
    /// When a routing socket fails.
    pub fn sent(&mut self) -> Result<Vec<[Sent; 2]>, NetlinkError> {
        let mut all = vec![[Sent::default(); 2]; self.devices.len()];
        for (at, space) in self.spaces.iter_mut().enumerate() {
            for (index, sent) in counted(&mut space.netlink)? {
                let ends = self.devices.iter().zip(&mut all);
                let ends = ends.flat_map(|(devices, sents)| devices.iter().zip(sents));
                ends.filter(|(device, _)| **device == (at, index)).for_each(|(_, to)| *to = sent);
            }
        }
        Ok(all)
    }
}

/// What each device of a namespace has sent (`rtnl_link_stats64`).
fn counted(netlink: &mut Netlink) -> Result<Vec<(u32, Sent)>, NetlinkError> {
    let mut found = Vec::new();
    let ask = Message::new("counters of devices", RTM_GETLINK, 0, &[0; 16]);
    netlink.dump(ask, |body| {
        let index = body.get(4..).and_then(|rest| rest.first_chunk::<4>());
        let mut parts = attributes(body.get(16..).unwrap_or_default());
        let counters = parts.find(|(kind, _)| *kind == IFLA_STATS64).map(|(_, value)| value);
        let at = |place: usize| {
            let octets = counters?.get(8 * place..)?.first_chunk::<8>()?;
            Some(u64::from_ne_bytes(*octets))
        };
        if let (Some(index), Some(frames), Some(bytes)) = (index, at(1), at(3)) {
            found.push((u32::from_ne_bytes(*index), Sent { frames, bytes }));
        }
    })?;
    Ok(found)
}

fn ends_of(plan: &SwitchedPlan, lane: Lane) -> Option<[Place; 2]> {
    let &[one, other] = plan.cables.get(lane.cable)?;
    Some(if lane.back { [other, one] } else { [one, other] })
}

fn check(plan: &SwitchedPlan) -> Result<(), SwitchedError> {
    if !(1..=HOSTS_MAX).contains(&plan.hosts) {
        return Err(SwitchedError::Hosts(plan.hosts));
    }
    for host in 0..plan.hosts {
        let own = plan.cables.iter().flatten().filter(|end| **end == Place::Host(host));
        let cables = own.count();
        if cables != 1 {
            return Err(SwitchedError::Cables { host, cables });
        }
    }
    for &Way { from, to, ref lanes } in &plan.ways {
        let mut at = Some(Place::Host(from));
        for &lane in lanes {
            let ends = ends_of(plan, lane).filter(|[begin, _]| Some(*begin) == at);
            at = ends.map(|[_, end]| end);
        }
        let known = |host: usize| host < plan.hosts;
        if at != Some(Place::Host(to)) || lanes.len() < 2 || !known(from) || !known(to) {
            return Err(SwitchedError::Way { from, to });
        }
    }
    Ok(())
}

fn number(number: usize) -> u32 {
    u32::try_from(number).expect("there are few hosts, switches and cables")
}

/// The Ethernet address of a host.
fn mac(host: usize) -> [u8; 6] {
    let [.., high, low] = number(host + 1).to_be_bytes();
    [0x02, 0x6d, 0x6b, 0x4f, high, low]
}

fn space_of(plan: &SwitchedPlan, place: Place) -> usize {
    match place {
        Place::Host(host) => host,
        Place::Switch(switch) => plan.hosts + switch,
    }
}

/// The number of the device at an end of a cable, and its name.
fn device(plan: &SwitchedPlan, cable: usize, end: usize) -> (u32, String) {
    match plan.cables[cable][end] {
        Place::Host(_) => (HOST_INDEX, DEVICE.to_owned()),
        // Both ends of a cable have numbers that differ: the kernel tells sooner then that it carries.
        Place::Switch(_) => (PORTS + number(2 * cable + end), format!("p{cable}")),
    }
}

fn set_up(plan: &SwitchedPlan) -> Result<Switched, SwitchedError> {
    let mut spaces = Vec::with_capacity(plan.hosts + plan.switches);
    for at in 0..plan.hosts + plan.switches {
        spaces.push(new_space()?);
        if at < plan.hosts {
            bound_windows(plan.window)?;
        }
    }
    let mut devices = Vec::with_capacity(plan.cables.len());
    for cable in 0..plan.cables.len() {
        devices.push(plug(plan, cable, &mut spaces)?);
    }
    for (space, messages) in spaces.iter_mut().zip(filling(plan)) {
        space.netlink.apply(messages)?;
    }
    for (at, space) in spaces.iter_mut().enumerate() {
        let own = devices.iter().flatten().filter(|(there, _)| *there == at);
        let own: BTreeSet<u32> = own.map(|(_, index)| *index).collect();
        await_state(&mut space.netlink, own, true)?;
    }
    Ok(Switched { spaces, devices })
}

/// Makes a cable; for each end the namespace and the number of the device.
fn plug(
    plan: &SwitchedPlan,
    cable: usize,
    spaces: &mut [Space],
) -> Result<[(usize, u32); 2], NetlinkError> {
    let places = plan.cables[cable];
    let at = places.map(|place| space_of(plan, place));
    let devices = [0, 1].map(|end| device(plan, cable, end));
    let [one, other] = [0, 1].map(|end| {
        let (index, device) = &devices[end];
        let mac = if let Place::Host(host) = places[end] { Some(mac(host)) } else { None };
        End { index: *index, device, mac }
    });
    let name = match places[1] {
        Place::Host(host) => format!("host {host}"),
        Place::Switch(switch) => format!("switch {switch}"),
    };
    let message = new_cable(&one, &other, &name, spaces[at[1]].file.as_fd());
    spaces[at[0]].netlink.apply(vec![message])?;
    Ok([(at[0], one.index), (at[1], other.index)])
}

/// What is said in each namespace once its cables are there.
fn filling(plan: &SwitchedPlan) -> Vec<Vec<Message>> {
    let loopback = || vec![set_link("loopback up", LOOPBACK_INDEX, None, true)];
    let mut all: Vec<Vec<Message>> = (0..plan.hosts + plan.switches).map(|_| loopback()).collect();
    for (cable, places) in plan.cables.iter().enumerate() {
        for (end, place) in places.iter().enumerate() {
            let (index, name) = device(plan, cable, end);
            let own = &mut all[space_of(plan, *place)];
            own.push(shaping(&name, index, &plan.shape));
            match *place {
                Place::Host(host) => own.extend(of_host(plan, host)),
                Place::Switch(_) => {
                    own.push(ingress(&name, index));
                    own.push(set_link(format!("`{name}` up"), index, None, true));
                }
            }
        }
    }
    for way in &plan.ways {
        for (&come, &go) in way.lanes.iter().zip(&way.lanes[1..]) {
            let Some([_, switch]) = ends_of(plan, come) else { continue };
            let (from, _) = device(plan, come.cable, usize::from(!come.back));
            let (to, _) = device(plan, go.cable, usize::from(go.back));
            let addresses = [way.from, way.to].map(Switched::address);
            all[space_of(plan, switch)].push(steer(&Steered { addresses, from, to }));
        }
    }
    all
}

/// What a host is told of itself and the others.
fn of_host(plan: &SwitchedPlan, host: usize) -> Vec<Message> {
    let own = Switched::address(host);
    let others = (0..plan.hosts).filter(|other| *other != host);
    let others =
        others.map(|other| known_neighbour(HOST_INDEX, Switched::address(other), mac(other)));
    let up = set_link(format!("`{DEVICE}` up"), HOST_INDEX, None, true);
    let first = [
        single_frames(DEVICE, HOST_INDEX),
        new_address(HOST_INDEX, own, PREFIX_BITS),
        // There is a route of an address once its device is up.
        up,
        windowed_route(HOST_INDEX, own, PREFIX_BITS, plan.window),
    ];
    first.into_iter().chain(others).collect()
}
