//! How a command is started inside: in the network namespace of its host, under that host's name.
#![expect(clippy::disallowed_methods, reason = "starts commands in the lab")]
#![expect(unsafe_code, reason = "namespaces are entered between fork and exec")]

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use meikyo_spaces::process;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use super::PROGRAMS_INSIDE;
use crate::blueprint::{Role, Space};
use crate::network;
use crate::protocol::Start;

/// Names and addresses of all hosts.
pub(crate) const HOSTS_FILE: &str = "/run/meikyo/hosts";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The line of a host in [`HOSTS_FILE`]; that of a switch has the address of its agent.
pub(crate) fn hosts_line(space: &Space) -> String {
    let fabric = match space.role {
        Role::Host { address, .. } => Some(address),
        _ => None,
    };
    match (fabric.or(space.management), space.management) {
        (None, _) => String::new(),
        (Some(address), Some(management)) if address != management => {
            format!("{address} {0}\n{management} {0}-mgmt\n", space.name)
        }
        (Some(address), _) => format!("{address} {}\n", space.name),
    }
}

/// The command as it is started, without its standard streams.
pub(crate) fn command(start: &Start) -> io::Result<Command> {
    let (program, arguments) =
        start.command.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    command.env("PATH", format!("{PROGRAMS_INSIDE}:{PATH}"));
    command.env("HOME", "/tmp").env("LANG", "C.UTF-8");
    command.envs(start.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null());
    let space = match &start.space {
        None => None,
        Some(name) => {
            let file = File::open(network::namespace_path(name))
                .map_err(|_| io::Error::other(format!("there is no host or switch `{name}`")))?;
            Some((file, name.clone().into_bytes()))
        }
    };
    let enter = move || match &space {
        None => process::new_session(),
        Some((namespace, name)) => {
            process::new_session()?;
            process::enter(namespace, LinkNameSpaceType::Network)?;
            process::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUTS)?;
            rustix::system::sethostname(name)?;
            mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
            mount(c"sys", c"/sys", c"sysfs", MountFlags::empty(), None)?;
            Ok(mount_bind(c"/run/meikyo/hosts", c"/etc/hosts")?)
        }
    };
    // SAFETY: the closure calls only the system, and allocates nothing.
    unsafe { command.pre_exec(enter) };
    Ok(command)
}
