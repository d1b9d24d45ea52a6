//! What passes between hosts and would be in nobody's image: connections that are half open or half closed, and commands that
//! one host has just had another start.
//!
//! TCP sends again what an image has not seen acknowledged, so connections that both sides have are never in the way. Here are
//! the moments at which only one side has it: CRIU writes what belongs to a process, and a connection that is being opened, or
//! was closed before all of it had arrived, belongs to the kernel alone. A program that is brought back from there would wait
//! without end for what nobody sends.
//!
//! Cost: a read of two files of `/proc`, and of the arguments of every process of the host.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;

use super::processes;

/// Why a host is not to be captured now. It passes by itself, soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderWay {
    /// A connection to or from this port is being opened: one side may have it already.
    Opened {
        /// The port on this host.
        port: u16,
    },
    /// A connection is open, and nobody has taken it yet.
    Awaited {
        /// The port on this host.
        port: u16,
    },
    /// A connection was closed, and the other side has not got all of it.
    Closed {
        /// The port on this host.
        port: u16,
    },
    /// A command of this host or another is being started.
    Started {
        /// The process that starts it, or is to become it.
        process: u32,
    },
}

impl fmt::Display for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { port } => write!(f, "a connection at port {port} is being opened"),
            Self::Awaited { port } => {
                write!(f, "a connection at port {port} waits for the program to take it")
            }
            Self::Closed { port } => write!(f, "a connection at port {port} is being closed"),
            Self::Started { process } => {
                write!(f, "process {process} starts a part of the program")
            }
        }
    }
}

/// How commands are started that are captured.
#[derive(Debug, Clone, Copy)]
pub struct Started<'a> {
    /// The arguments of the first process of a tree that is captured, behind the program's name.
    pub kept: &'a [&'a str],
    /// Those of whoever starts one on another host, until that has begun.
    pub reaching: &'a [&'a str],
}

/// What is under way on this host, but for connections of daemons, one end of which has the port `daemons`.
///
/// `roots` are the first processes of all trees that are captured.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn under_way(
    daemons: u16,
    started: &Started<'_>,
    roots: &[u32],
) -> io::Result<Option<UnderWay>> {
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = match fs::read_to_string(table) {
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text?,
        };
        if let Some(found) = text.lines().skip(1).find_map(|line| in_line(line, daemons)) {
            return Ok(Some(found));
        }
    }
    let roots: BTreeSet<u32> = roots.iter().copied().collect();
    let is_started = |(process, words): (u32, Vec<String>)| {
        let is = is_starting(&words, started) && !roots.contains(&process);
        is.then_some(UnderWay::Started { process })
    };
    Ok(processes::arguments()?.into_iter().find_map(is_started))
}

/// States of a connection, as Linux numbers them (`include/net/tcp_states.h`).
const ESTABLISHED: u8 = 1;
const SYN_SENT: u8 = 2;
const SYN_RECV: u8 = 3;
const FIN_WAIT1: u8 = 4;
const LAST_ACK: u8 = 9;
const LISTEN: u8 = 10;
const CLOSING: u8 = 11;

/// What a line of `/proc/net/tcp` tells; nothing of a line that is no such.
fn in_line(line: &str, daemons: u16) -> Option<UnderWay> {
    let mut words = line.split_whitespace().skip(1);
    let port_of = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let (port, other) = (port_of(words.next()?)?, port_of(words.next()?)?);
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let awaited = u32::from_str_radix(words.next()?.split_once(':')?.1, 16).ok()?;
    // Nobody has a file of it: the process has closed it, or has not taken it.
    let is_nobodys = words.nth(4)? == "0";
    if port == daemons || other == daemons {
        return None;
    }
    match state {
        SYN_SENT | SYN_RECV => Some(UnderWay::Opened { port }),
        LISTEN if awaited > 0 => Some(UnderWay::Awaited { port }),
        ESTABLISHED if is_nobodys => Some(UnderWay::Awaited { port }),
        FIN_WAIT1 | LAST_ACK | CLOSING if is_nobodys => Some(UnderWay::Closed { port }),
        _ => None,
    }
}

/// Whether a process with these arguments is one that is to become the first of a tree, or is about to start one elsewhere.
/// Shells have the words of what they start as one text, in quotes.
fn is_starting(words: &[String], started: &Started<'_>) -> bool {
    let quoted: Vec<String> = started.kept.iter().map(|word| format!("'{word}'")).collect();
    let quoted = quoted.join(" ");
    let is_at = |sought: &[&str]| {
        words.windows(sought.len()).skip(1).any(|some| some.iter().eq(sought.iter()))
    };
    is_at(started.kept)
        || is_at(started.reaching)
        || words.iter().any(|word| word.contains(&quoted))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

    use proptest::prelude::*;

    use super::*;

    const STARTED: Started<'_> = Started {
        kept: &["checkpoint", "role", "keep"],
        reaching: &["checkpoint", "role", "reach"],
    };

    const fn port_of(found: UnderWay) -> Option<u16> {
        match found {
            UnderWay::Opened { port } | UnderWay::Awaited { port } | UnderWay::Closed { port } => {
                Some(port)
            }
            UnderWay::Started { .. } => None,
        }
    }

    /// What this machine's own table says of a port.
    fn of_port(port: u16) -> Option<UnderWay> {
        let text = fs::read_to_string("/proc/net/tcp").expect("the table is there");
        let mut found = text.lines().filter_map(|line| in_line(line, 0));
        found.find(|found| port_of(*found) == Some(port))
    }

    #[test]
    fn a_connection_that_nobody_has_taken_is_under_way_until_somebody_does() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address: SocketAddr = listener.local_addr().expect("it has one");
        assert_eq!(of_port(address.port()), None);
        let client = TcpStream::connect(address).expect("it listens");
        assert_eq!(of_port(address.port()), Some(UnderWay::Awaited { port: address.port() }));
        let (taken, _) = listener.accept().expect("one waits");
        assert_eq!(of_port(address.port()), None);
        // It is closed with more on its way than the other side takes.
        let own = client.local_addr().expect("it has one").port();
        client.set_nonblocking(true).expect("it is a socket");
        while (&client).write(&[0; 65_536]).is_ok() {}
        assert_eq!(of_port(own), None);
        drop(client);
        assert_eq!(of_port(own), Some(UnderWay::Closed { port: own }));
        drop(taken);
        assert_eq!(of_port(own), None);
    }

    #[test]
    fn lines_of_the_kernels_table_are_read_by_their_states() {
        // As Linux 6.18 writes them; the last but two are a request that waits for the last word of its opening, and one end
        // of a connection whose process is gone.
        let lines = [
            (
                "0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1",
                None,
            ),
            (
                "0100007F:1F90 00000000:0000 0A 00000000:00000002 00:00000000 00000000     0        0 7 1",
                Some(UnderWay::Awaited { port: 8_080 }),
            ),
            (
                "014D0A0A:C350 024D0A0A:1F90 01 00000000:00000000 00:00000000 00000000     0        0 9 1",
                None,
            ),
            (
                "014D0A0A:C350 024D0A0A:1F90 01 00000000:00000000 00:00000000 00000000     0        0 0 1",
                Some(UnderWay::Awaited { port: 50_000 }),
            ),
            (
                "014D0A0A:C350 024D0A0A:1F90 02 00000001:00000000 01:00000063 00000001     0        0 9 2",
                Some(UnderWay::Opened { port: 50_000 }),
            ),
            (
                "014D0A0A:1F90 024D0A0A:C350 03 00000000:00000000 01:00000063 00000000     0        0 0 1",
                Some(UnderWay::Opened { port: 8_080 }),
            ),
            (
                "014D0A0A:C350 024D0A0A:1F90 04 00000001:00000000 01:00000063 00000001     0        0 0 2",
                Some(UnderWay::Closed { port: 50_000 }),
            ),
            (
                "014D0A0A:C350 024D0A0A:1F90 04 00000001:00000000 01:00000063 00000001     0        0 9 2",
                None,
            ),
            (
                "014D0A0A:C350 024D0A0A:1F90 06 00000000:00000000 03:00001776 00000000     0        0 0 3",
                None,
            ),
            (
                "014D0A0A:C350 024D0A0A:1C68 02 00000001:00000000 01:00000063 00000001     0        0 9 2",
                None,
            ),
        ];
        for (line, expected) in lines {
            assert_eq!(
                in_line(&format!("   3: {line} 0000000000000000 20 4 30 10 -1"), 7_272),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn whoever_is_to_become_a_part_of_the_program_is_known_at_every_step() {
        let is = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            is_starting(&words, &STARTED)
        };
        assert!(is(&["/bin/sh", "-c", "'setsid' '/m' 'checkpoint' 'role' 'keep' '--said' 'x' &"]));
        assert!(is(&["setsid", "/m", "checkpoint", "role", "keep", "--said", "x"]));
        assert!(is(&["/m", "checkpoint", "role", "keep", "--said", "x"]));
        assert!(is(&[
            "/m",
            "checkpoint",
            "role",
            "reach",
            "--kept=x",
            "sockets",
            "node2",
            "orted"
        ]));
        assert!(!is(&["/m", "checkpoint", "role", "capture"]));
        assert!(!is(&["/m", "checkpoint", "daemon", "--directory", "keep"]));
        assert!(!is(&[]));
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_passed_over(line in "[0-9A-F: ]{0,160}") {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Some(found) = in_line(&line, 7_272) {
                prop_assert!(words.len() > 9);
                prop_assert_ne!(port_of(found), Some(7_272));
            }
        }
    }
}
