//! Programs that run beside the demo and end with it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr};

use anyhow::Context as _;

use crate::program::{Program, program};

/// A program that serves a UDP port until this is dropped.
pub(crate) struct Background {
    child: Child,
    port: u16,
    /// Kept open, so that the program can go on writing.
    _log: BufReader<ChildStderr>,
}

impl Background {
    /// Starts it and reads its standard error until `ready` finds the port in a line.
    pub(crate) fn start(
        program: Program,
        ready: impl Fn(&str) -> Option<u16>,
    ) -> anyhow::Result<Self> {
        let mut child = program.spawn_with_log()?;
        let stderr = child.stderr.take().context("standard error is not piped")?;
        let mut log = BufReader::new(stderr);
        let mut said = String::new();
        loop {
            let start = said.len();
            if log.read_line(&mut said)? == 0 {
                child.wait()?;
                anyhow::bail!("it ended before it was ready: {}", said.trim());
            }
            if let Some(port) = ready(&said[start..]) {
                return Ok(Self { child, port, _log: log });
            }
        }
    }

    /// The port that it serves.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself (Ctrl-C reaches it, too): then there is nothing to kill.
        if self.child.kill().is_ok() {
            self.child.wait().expect("a child that was killed can be waited for");
        }
    }
}

/// A real `snmpd` on a free loopback port, with its own configuration and no rights: community
/// `public` may read everything.
pub(crate) fn snmpd(directory: &Path) -> anyhow::Result<Background> {
    let path = ["/usr/sbin/snmpd", "/usr/local/sbin/snmpd"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .context("`snmpd` is not installed; `apt-get install snmpd`")?;
    let port = std::net::UdpSocket::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let configuration = directory.join("snmpd.conf");
    let text = format!("agentaddress udp:127.0.0.1:{port}\nrocommunity public 127.0.0.1\ndisk /\n");
    std::fs::write(&configuration, text)
        .with_context(|| format!("cannot write `{}`", configuration.display()))?;
    let configuration = configuration.to_string_lossy().into_owned();
    let mut arguments = vec!["-f", "-Le", "-C", "-I", "-smux", "-c", &configuration];
    let is_root = program(directory, "id", &["-u"]).output()?.trim() == "0";
    if is_root {
        // It reads its configuration and opens its port first.
        arguments.extend(["-u", "nobody", "-g", "nogroup"]);
    }
    let persistent = directory.join("snmpd-state");
    let program = program(directory, path, &arguments)
        .env("SNMP_PERSISTENT_DIR", &persistent.to_string_lossy());
    // The last line of its start; requests are answered from here on.
    Background::start(program, |line| line.contains("NET-SNMP version").then_some(port))
}
