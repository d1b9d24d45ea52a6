//! Hosts as network namespaces: one bridge per link, a pair of virtual Ethernet devices from each host to
//! each bridge, shaped in both directions. All of it goes when the process lets go of it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use meikyo_console::failure::Failure;
use meikyo_units::BitsPerSecond;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Octets that a link may send at once beyond its rate.
const BURST: &str = "64kb";

/// How long a packet waits at most before it is dropped.
const LATENCY: &str = "50ms";

/// The namespaces of a group.
#[derive(Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
    links: usize,
}

impl Hosts {
    /// Makes `hosts` hosts with `links` links of this rate each.
    pub(super) fn make(hosts: usize, links: usize, rate: BitsPerSecond) -> Result<Self, Failure> {
        let id = std::process::id();
        let mut names: Vec<String> = (0..hosts).map(|host| format!("mkc{id}h{host}")).collect();
        names.push(format!("mkc{id}sw"));
        let made = Self { names, links };
        let (switch, mut commands, mut shapes) = (made.switch(), String::new(), String::new());
        for name in &made.names {
            line(&mut commands, format_args!("netns add {name}"));
        }
        run("ip", &["-batch", "-"], &commands)?;
        for link in 0..links {
            let mut commands = String::new();
            line(&mut commands, format_args!("link add br{link} type bridge"));
            line(&mut commands, format_args!("link set br{link} up"));
            run("ip", &["-n", switch, "-batch", "-"], &commands)?;
            for (host, name) in made.names[..hosts].iter().enumerate() {
                let mut commands = String::new();
                line(
                    &mut commands,
                    format_args!(
                        "link add l{link} type veth peer name h{host}l{link} netns {switch}"
                    ),
                );
                let address = made.address(host, link, 0).ip();
                line(&mut commands, format_args!("addr add {address}/24 dev l{link}"));
                line(&mut commands, format_args!("link set l{link} up"));
                line(&mut commands, format_args!("link set lo up"));
                run("ip", &["-n", name, "-batch", "-"], &commands)?;
                let port = format!("h{host}l{link}");
                let port_up = format!("link set {port} master br{link} up");
                run("ip", &["-n", switch, "-batch", "-"], &port_up)?;
                for (space, device) in [(name.as_str(), format!("l{link}")), (switch, port)] {
                    shapes.clear();
                    let rate = rate.get();
                    line(
                        &mut shapes,
                        format_args!(
                            "qdisc add dev {device} root tbf rate {rate}bit burst {BURST} latency {LATENCY}"
                        ),
                    );
                    run("tc", &["-n", space, "-batch", "-"], &shapes)?;
                }
            }
        }
        Ok(made)
    }

    fn switch(&self) -> &str {
        self.names.last().expect("the switch's is the last")
    }

    /// The address of a host on a link.
    pub(super) fn address(&self, host: usize, link: usize, port: u16) -> SocketAddr {
        debug_assert!(link < self.links || self.links == 0, "a host has so many links");
        let number = |number: usize| u8::try_from(number).expect("few hosts and links");
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, number(link), number(host + 1))), port)
    }

    /// Moves the calling thread into a host.
    pub(super) fn enter(&self, host: usize) -> io::Result<()> {
        let space = File::open(format!("/run/netns/{}", self.names[host]))?;
        let kind = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(std::os::fd::AsFd::as_fd(&space), kind)?)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // Whatever was not made is not there to be deleted.
            drop(Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status());
        }
    }
}

fn line(commands: &mut String, command: std::fmt::Arguments<'_>) {
    writeln!(commands, "{command}").expect("strings take everything");
}

/// Runs `ip` or `tc` with commands on its standard input.
fn run(program: &str, arguments: &[&str], commands: &str) -> Result<(), Failure> {
    let failed = |text: String| {
        Failure::new(text).hint("`apt-get install iproute2`; the kernel needs veth, bridge and tbf")
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot start `{program}`: {error}")))?;
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(commands.as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("`{program}` refuses: {}", said.trim())))
}
