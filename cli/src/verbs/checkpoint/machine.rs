//! A host that is reached by `ssh`, while a program that is captured as it is runs there: its container with an address on the
//! network of the host, which lasts as long as whoever runs the job is heard of.
//!
//! Whoever started it ([`super::afar`]) writes lines: `on N` and `off N`, which are answered with `N` once the device of the
//! program sends or is silent, `status N`, which is answered with `N` and how the daemon stands, `end N`, and others, which say that the
//! job still runs. A host that has heard nothing for longer than its
//! lease ends the container by itself: another has taken its place by then.

use std::fs;
use std::io::{self, BufRead as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use meikyo_checkpoint::daemon::{Answer as Told, Request, ask_within};
use meikyo_cluster::ProgramNetwork;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_spaces::{Attached, Container, ContainerOptions, Outside};
use meikyo_units::Nanos;

use super::criu;
use super::role_names::{FIRST, OUTSIDE, WORDS, socket};
use super::trouble::{LOOK_AGAIN, now};

/// The container is there.
pub(super) const UP: &str = "up";

/// From now on the program's device sends.
pub(super) const SEND: &str = "on";

/// From now on it is silent.
pub(super) const SILENT: &str = "off";

/// The container is to end.
pub(super) const END: &str = "end";

/// How does the daemon stand?
pub(super) const STATUS: &str = "status";

/// A daemon answers in this time, or not at all.
const ANSWERING: Duration = Duration::from_secs(1);

/// What a host is told of the container that it is to have.
#[derive(Debug, Args)]
pub(super) struct HostArgs {
    /// The program that captures
    #[arg(long)]
    criu: PathBuf,
    /// The directory of the daemon
    #[arg(long)]
    disk: PathBuf,
    /// Where containers are reached
    #[arg(long)]
    sockets: PathBuf,
    /// What the host is called in the program
    #[arg(long)]
    name: String,
    /// Names and addresses of all
    #[arg(long)]
    names: PathBuf,
    /// The address of this host, on whose network the program is to be
    #[arg(long)]
    beside: IpAddr,
    /// The address of the program
    #[arg(long)]
    address: Ipv4Addr,
    /// It ends when it has heard nothing for so long
    #[arg(long)]
    lease: Nanos,
}

/// Has a container as long as somebody wants it.
pub(super) fn be_host(args: &HostArgs) -> Result<Answer, Failure> {
    let heard = listen();
    criu::working(&args.criu)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&args.sockets).map_err(|error| {
        Failure::new(format!("cannot make `{}`: {error}", args.sockets.display()))
            .hint("name a directory on a local disk of every host: --disk DIR")
    })?;
    let mut network = Attached::make(args.beside, args.address, ProgramNetwork::PREFIX_BITS)?;
    let program = std::env::current_exe()?;
    let role = [WORDS[0], WORDS[1], FIRST];
    let options = ContainerOptions {
        name: args.name.clone(),
        hosts: args.names.clone(),
        socket: socket(&args.sockets, &args.name),
        binds: Vec::new(),
    };
    let mut container = Container::start(&program, &role, network.space(), &options)?;
    let outside = Outside::start(&program, &role, &socket(&args.sockets, OUTSIDE))?;
    output::print(&format!("{UP}\n"))?;
    let mut last = now();
    while container.is_running()? && last.elapsed() <= args.lease.to_std() {
        match heard.recv_timeout(LOOK_AGAIN) {
            Ok(line) => {
                // A host that was stopped for longer hears late what was said meanwhile.
                if last.elapsed() > args.lease.to_std() {
                    break;
                }
                last = now();
                match order(&line) {
                    Some((Order::Carry(is_on), number)) => {
                        network.carry(is_on)?;
                        output::print(&format!("{number} \n"))?;
                    }
                    Some((Order::Status, number)) => {
                        output::print(&format!("{number} {}\n", status(args)?))?;
                    }
                    Some((Order::End, _)) => break,
                    None => {}
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    container.end();
    drop(outside);
    Ok(Answer::No)
}

/// Lines of the standard input, until its end.
fn listen() -> Receiver<String> {
    let (sender, heard) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    heard
}

/// What a host is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The device is to send, or not.
    Carry(bool),
    /// How the daemon stands is asked.
    Status,
    /// The container is to end.
    End,
}

/// An order and its number; nothing of a line that is none.
fn order(line: &str) -> Option<(Order, u64)> {
    let (word, number) = line.split_once(' ')?;
    let order = match word {
        SEND => Order::Carry(true),
        SILENT => Order::Carry(false),
        STATUS => Order::Status,
        END => Order::End,
        _ => return None,
    };
    Some((order, number.parse().ok()?))
}

/// How the daemon of this host stands, as one line; nothing while it does not answer.
fn status(args: &HostArgs) -> Result<String, Failure> {
    match ask_within(&args.disk, &Request::Status, ANSWERING) {
        Ok(Told::Status(status)) => Ok(serde_json::to_string(&status)?),
        _ => Ok(String::new()),
    }
}

/// How long a host may be without a word while whoever writes them is busy.
pub(super) const BEAT: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_are_read_and_other_lines_are_none() {
        assert_eq!(order("on 7"), Some((Order::Carry(true), 7)));
        assert_eq!(order("off 8"), Some((Order::Carry(false), 8)));
        assert_eq!(order("status 9"), Some((Order::Status, 9)));
        for line in ["", ".", "on", "on x", "off -1", "of 7"] {
            assert_eq!(order(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_an_order_or_none(line in "\\PC{0,20}") {
            if let Some((_, number)) = order(&line) {
                prop_assert!(line.ends_with(&number.to_string()) || line.ends_with(char::is_numeric));
            }
        }
    }
}
