//! What is wrong with a configuration.

use std::fmt;

use meikyo_units::Nanos;

use crate::{Bundling, HostId, PortNumber, SwitchId, Vlan, Wiring};

/// One thing that is wrong, with its counterexample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// There are not as many settings of switches, or of hosts, as the wiring has.
    Count {
        /// Switches and hosts that have settings.
        settings: [usize; 2],
        /// Switches and hosts of the wiring.
        wiring: [usize; 2],
    },
    /// Something names a host that there is not.
    NoSuchHost {
        /// Its place in the list of hosts, which is shorter.
        host: usize,
    },
    /// A port that the model does not have, wired or set.
    NoSuchPort {
        /// The switch that the port is said to be of.
        switch: SwitchId,
        /// The port, beyond the last one of the model.
        port: PortNumber,
        /// How many ports it has.
        ports: u16,
    },
    /// A port has settings twice.
    SetTwice {
        /// The switch whose settings name the port twice.
        switch: SwitchId,
        /// The port that is in two settings.
        port: PortNumber,
    },
    /// Two cables are in one port.
    WiredTwice {
        /// The switch that both cables go to.
        switch: SwitchId,
        /// The port that two cables go to.
        port: PortNumber,
    },
    /// Several ports are set together, but to no protocol.
    NoProtocol {
        /// The switch with these ports.
        switch: SwitchId,
        /// The first of the ports.
        port: PortNumber,
    },
    /// The ends of a bundle differ in their cables or in their protocol.
    Bundle {
        /// The switch at the end that is told of; the other end is told of by itself.
        switch: SwitchId,
        /// The first port of its end.
        port: PortNumber,
        /// What differs between the two ends.
        difference: Difference,
    },
    /// A VLAN goes out with a tag and without.
    BothWays {
        /// The switch whose port sends the VLAN both ways.
        switch: SwitchId,
        /// The port that frames of the VLAN leave both ways.
        port: PortNumber,
        /// The VLAN that the port is a tagged and an untagged member of.
        vlan: Vlan,
    },
    /// The model of a switch cannot be set so.
    Beyond {
        /// The switch whose model cannot do it.
        switch: SwitchId,
        /// The limit of the model, and what is asked of it.
        limit: Limit,
    },
    /// VLAN 1 is left on a trunk.
    DefaultVlan {
        /// The switch at whose end of the trunk VLAN 1 is.
        switch: SwitchId,
        /// The port of the trunk, or the first of its bundle.
        port: PortNumber,
    },
    /// A spanning tree protocol runs.
    SpanningTree {
        /// The switch on which the protocol runs.
        switch: SwitchId,
    },
    /// Frames change VLANs on trunks, or pass them one way only, in a fabric that is too large to follow
    /// each of them.
    Tangled {
        /// One of the VLANs that frames change, or pass one way only.
        vlan: Vlan,
    },
    /// A broadcast comes back to where it was, and goes round for ever.
    Loop {
        /// The switches that they go round, and in which VLAN.
        circle: Vec<(SwitchId, Vlan)>,
    },
    /// A host's frames come in nowhere: its port has no VLAN for frames without a tag, or is no member
    /// of it.
    Mute {
        /// The host, whose frames are lost at its own switch.
        host: HostId,
    },
    /// A host's frames do not reach another host.
    Unreachable {
        /// The host whose frames are lost.
        from: HostId,
        /// The host that does not get them.
        to: HostId,
        /// The VLAN that the frames come in in.
        vlan: Vlan,
        /// Where on the way, and why, they are lost.
        why: Lost,
    },
    /// A host's frames come to another host several times.
    Doubled {
        /// The host whose frames are doubled.
        from: HostId,
        /// The host that gets several copies of each.
        to: HostId,
        /// The VLAN that the frames come in in.
        vlan: Vlan,
    },
    /// After priming a switch does not know where to send a frame, and sends it everywhere.
    Flood {
        /// The host whose frame floods.
        from: HostId,
        /// The host that the frame is for.
        to: HostId,
        /// The VLAN that the frame is in there.
        vlan: Vlan,
        /// The switch that does not know the receiver.
        switch: SwitchId,
    },
    /// A switch sees an address at two ports of which it can keep one.
    Moved {
        /// The switch, whose table has one entry for the address over all VLANs.
        switch: SwitchId,
        /// The host whose address is seen at both ports.
        host: HostId,
        /// The two ports, between which the entry goes to and fro.
        ports: [PortNumber; 2],
        /// The VLANs in which it is seen or looked for there.
        vlans: [Vlan; 2],
    },
    /// The forwarding table is too small.
    TableFull {
        /// The switch whose table overflows.
        switch: SwitchId,
        /// How many addresses it should hold, over all VLANs.
        entries: u64,
        /// How many addresses the table holds.
        limit: u32,
    },
    /// Trunks wait for each other in a circle once pause frames stop them.
    Waiting {
        /// The switches along the circle, each with the VLAN in which frames come from the one before
        /// and go on to the next.
        circle: Vec<(SwitchId, Vlan)>,
    },
}

/// How the ends of a bundle differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Cables of one end do not all go to the ports of one other end.
    Cables,
    /// LACP at one end only.
    Protocol {
        /// The switch at the other end.
        far: SwitchId,
    },
    /// The ports of a host are not exactly the ports that are set together.
    Host(HostId),
    /// The switch bundles by another protocol than the host.
    HostProtocol {
        /// The host at the far end of the bundle.
        host: HostId,
        /// How the host bundles its cables; `None` for a host with one cable.
        bundling: Option<Bundling>,
    },
}

/// What a model of a switch cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// More VLANs are defined than the switch can have at once.
    Vlans {
        /// VLANs that are defined.
        set: usize,
        /// How many it can have.
        most: u16,
    },
    /// A VLAN of this number.
    VlanId(Vlan),
    /// Several VLANs without a tag at one port.
    MultiUntagged(PortNumber),
    /// So many ports in a bundle.
    BundlePorts {
        /// Ports that the bundle has.
        set: usize,
        /// How many it can have.
        most: u16,
    },
    /// More bundles are set than the switch can have.
    Bundles {
        /// Bundles that are set.
        set: usize,
        /// How many it can have.
        most: u16,
    },
    /// Addresses are not kept so long, not so shortly, or not at all.
    Ageing {
        /// The ageing time that is set; `None`: addresses are kept for ever.
        set: Option<Nanos>,
        /// How long it keeps them at least.
        least: Nanos,
        /// How long it can keep them.
        most: Option<Nanos>,
    },
}

/// Why frames do not come to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The port of the sender does not take the tag.
    Tag,
    /// The VLAN does not lead to its switch.
    NoWay,
    /// Its port does not send frames of the VLAN out without a tag.
    Port,
    /// A switch sends them the wrong way, since it learned the address from there.
    Astray(SwitchId),
}

impl Fault {
    /// Whether it is wrong on principle: frames may all the same come to their hosts.
    pub const fn is_rule(&self) -> bool {
        match self {
            Self::Count { .. }
            | Self::NoSuchHost { .. }
            | Self::NoSuchPort { .. }
            | Self::SetTwice { .. }
            | Self::WiredTwice { .. }
            | Self::NoProtocol { .. }
            | Self::Bundle { .. }
            | Self::BothWays { .. }
            | Self::Beyond { .. }
            | Self::DefaultVlan { .. }
            | Self::SpanningTree { .. }
            | Self::Tangled { .. } => true,
            Self::Loop { .. }
            | Self::Mute { .. }
            | Self::Unreachable { .. }
            | Self::Doubled { .. }
            | Self::Flood { .. }
            | Self::Moved { .. }
            | Self::TableFull { .. }
            | Self::Waiting { .. } => false,
        }
    }

    /// What it is, in one word for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Count { .. } => "count",
            Self::NoSuchHost { .. } => "no_such_host",
            Self::NoSuchPort { .. } => "no_such_port",
            Self::SetTwice { .. } => "set_twice",
            Self::WiredTwice { .. } => "wired_twice",
            Self::NoProtocol { .. } => "no_protocol",
            Self::Bundle { .. } => "bundle",
            Self::BothWays { .. } => "both_ways",
            Self::Beyond { .. } => "beyond_model",
            Self::DefaultVlan { .. } => "default_vlan",
            Self::SpanningTree { .. } => "spanning_tree",
            Self::Tangled { .. } => "tangled",
            Self::Loop { .. } => "loop",
            Self::Mute { .. } => "mute",
            Self::Unreachable { .. } => "unreachable",
            Self::Doubled { .. } => "doubled",
            Self::Flood { .. } => "flood",
            Self::Moved { .. } => "moved",
            Self::TableFull { .. } => "table_full",
            Self::Waiting { .. } => "waiting",
        }
    }

    /// The fault in words, with the names that the wiring has.
    pub const fn in_words<'a>(&'a self, wiring: &'a Wiring) -> InWords<'a> {
        InWords { fault: self, wiring }
    }
}

/// A fault as a sentence, with the names of switches and hosts: what `Display` prints.
#[derive(Debug, Clone, Copy)]
pub struct InWords<'a> {
    fault: &'a Fault,
    wiring: &'a Wiring,
}

impl InWords<'_> {
    fn switch(&self, switch: SwitchId) -> &str {
        self.wiring.switches.get(switch.place()).map_or("?", |switch| &switch.name)
    }

    fn host(&self, host: HostId) -> &str {
        self.wiring.hosts.get(host.place()).map_or("?", |host| &host.name)
    }

    /// `a, b, c and back to a`, with the VLAN wherever it changes.
    fn circle(&self, f: &mut fmt::Formatter<'_>, circle: &[(SwitchId, Vlan)]) -> fmt::Result {
        let mut last = None;
        for &(switch, vlan) in circle {
            if last != Some(vlan) {
                write!(f, "in VLAN {vlan} ")?;
            }
            last = Some(vlan);
            write!(f, "`{}`, ", self.switch(switch))?;
        }
        let first = circle.first().map_or("?", |&(switch, _)| self.switch(switch));
        write!(f, "and back to `{first}`")
    }

    fn rule(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Count { settings, wiring } => write!(
                f,
                "there are settings of {} switches and {} hosts, but {} switches and {} hosts",
                settings[0], settings[1], wiring[0], wiring[1]
            ),
            Fault::NoSuchHost { host } => {
                write!(f, "a setting names host {host}, but there are {}", self.wiring.hosts.len())
            }
            Fault::NoSuchPort { switch, port, ports } => {
                write!(
                    f,
                    "`{}` has no port {port}; its ports are 1 to {ports}",
                    self.switch(*switch)
                )
            }
            Fault::SetTwice { switch, port } => {
                write!(f, "port {port} of `{}` has settings twice", self.switch(*switch))
            }
            Fault::WiredTwice { switch, port } => {
                write!(f, "two cables are in port {port} of `{}`", self.switch(*switch))
            }
            Fault::NoProtocol { switch, port } => write!(
                f,
                "port {port} of `{}` is set together with others, but to no bundling protocol",
                self.switch(*switch)
            ),
            Fault::Bundle { switch, port, difference } => {
                write!(f, "the bundle at port {port} of `{}` ", self.switch(*switch))?;
                self.difference(f, difference)
            }
            Fault::BothWays { switch, port, vlan } => write!(
                f,
                "port {port} of `{}` has VLAN {vlan} with a tag and without",
                self.switch(*switch)
            ),
            Fault::Beyond { switch, limit } => self.limit(f, *switch, limit),
            Fault::DefaultVlan { switch, port } => {
                write!(f, "VLAN 1 is left on port {port} of `{}`, a trunk", self.switch(*switch))
            }
            Fault::SpanningTree { switch } => write!(
                f,
                "a spanning tree protocol runs on `{}`: it would block trunks in every VLAN",
                self.switch(*switch)
            ),
            Fault::Tangled { vlan } => write!(
                f,
                "frames of VLAN {vlan} change VLANs on trunks, or pass them one way only: the ends of \
                 a trunk differ, and the fabric is too large to say what becomes of every frame"
            ),
            _ => Ok(()),
        }
    }

    fn difference(&self, f: &mut fmt::Formatter<'_>, difference: &Difference) -> fmt::Result {
        match difference {
            Difference::Cables => f.write_str("has cables that do not all go to one set of ports"),
            Difference::Protocol { far } => {
                write!(
                    f,
                    "is set to LACP at one end only; the other end is on `{}`",
                    self.switch(*far)
                )
            }
            Difference::Host(host) => {
                write!(f, "does not consist of the ports of host `{}`", self.host(*host))
            }
            Difference::HostProtocol { host, bundling: Some(Bundling::Lacp) } => write!(
                f,
                "is static, but host `{}` bundles its cables by LACP (`bundling` in `[fabric]`)",
                self.host(*host)
            ),
            Difference::HostProtocol { host, bundling: Some(Bundling::Static) } => write!(
                f,
                "is set to LACP, but host `{}` bundles its cables statically (`bundling` in \
                 `[fabric]`)",
                self.host(*host)
            ),
            Difference::HostProtocol { host, bundling: None } => write!(
                f,
                "is set to LACP, but host `{}` has one cable and does not speak it",
                self.host(*host)
            ),
        }
    }

    fn limit(&self, f: &mut fmt::Formatter<'_>, switch: SwitchId, limit: &Limit) -> fmt::Result {
        let model = self.wiring.switches.get(switch.place()).map_or("?", |s| &s.model.name);
        write!(f, "`{}` (a {model}) cannot ", self.switch(switch))?;
        match limit {
            Limit::Vlans { set, most } => write!(f, "have {set} VLANs; at most {most}"),
            Limit::VlanId(vlan) => write!(f, "use VLAN {vlan}"),
            Limit::MultiUntagged(port) => {
                write!(f, "send several VLANs without a tag out of a port; port {port} is set so")
            }
            Limit::BundlePorts { set, most } => {
                write!(f, "bundle {set} ports; at most {most}")
            }
            Limit::Bundles { set, most } => write!(f, "have {set} bundles; at most {most}"),
            Limit::Ageing { set, least, most } => {
                match set {
                    Some(span) => write!(f, "keep addresses for {span}")?,
                    None => f.write_str("keep addresses for ever")?,
                }
                match most {
                    Some(most) => write!(f, "; it can for {least} to {most}"),
                    None => write!(f, "; it can for {least} and more"),
                }
            }
        }
    }

    fn harm(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Loop { circle } => {
                f.write_str("frames go round: ")?;
                self.circle(f, circle)
            }
            Fault::Mute { host } => write!(
                f,
                "frames of host `{}` are dropped at its port: it is no member of a VLAN for frames \
                 without a tag",
                self.host(*host)
            ),
            Fault::Unreachable { from, to, vlan, why } => {
                let (from, to) = (self.host(*from), self.host(*to));
                write!(f, "frames from `{from}` in VLAN {vlan} do not come to `{to}`: ")?;
                match why {
                    Lost::Tag => f.write_str("the port of the sender does not take that tag"),
                    Lost::NoWay => f.write_str("the VLAN does not lead to its switch"),
                    Lost::Port => f.write_str("its port does not send that VLAN without a tag"),
                    Lost::Astray(switch) => {
                        write!(f, "`{}` sends them another way", self.switch(*switch))
                    }
                }
            }
            Fault::Doubled { from, to, vlan } => {
                let (from, to) = (self.host(*from), self.host(*to));
                write!(f, "frames from `{from}` in VLAN {vlan} come to `{to}` more than once")
            }
            Fault::Flood { from, to, vlan, switch } => write!(
                f,
                "`{}` does not learn in VLAN {vlan} where `{}` is, and floods frames from `{}`",
                self.switch(*switch),
                self.host(*to),
                self.host(*from)
            ),
            Fault::Moved { switch, host, ports, vlans } => write!(
                f,
                "`{}` keeps one entry for `{}`, but needs port {} in VLAN {} and port {} in VLAN {}",
                self.switch(*switch),
                self.host(*host),
                ports[0],
                vlans[0],
                ports[1],
                vlans[1]
            ),
            Fault::TableFull { switch, entries, limit } => write!(
                f,
                "`{}` needs {entries} table entries and has {limit}",
                self.switch(*switch)
            ),
            Fault::Waiting { circle } => {
                f.write_str("with pause frames trunks wait for each other: ")?;
                self.circle(f, circle)
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fault.is_rule() { self.rule(f) } else { self.harm(f) }
    }
}
