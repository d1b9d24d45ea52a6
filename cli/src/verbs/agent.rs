//! `meikyo agent`: this host's real counters over SNMP.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::str::FromStr;

use clap::Args;
use meikyo_cluster::{
    Access as AskedAccess, AuthProtocol, ParseProtocolError, PrivProtocol, Secret,
};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_snmp::Credentials;
use meikyo_snmp::agent::host::{Host, Roots};
use meikyo_snmp::agent::{self, Access, AgentUser, Community, Engine, MESSAGE_BYTES_MAX, Stop};
use meikyo_units::WallTime;

/// Serve this host's counters over SNMP, read anew for every request.
///
/// For hosts whose own agent caches too long. Serves interfaces, load, disks, CPU, memory and the
/// system group, and can only be read. Needs no privileges.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// UDP address to listen at, which the collector polls.
    #[arg(long, default_value = "127.0.0.1:1610", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Answer versions 1 and 2c with this community, a reference as in the cluster file.
    #[arg(long, value_name = "env:NAME|file:PATH")]
    community: Option<Secret>,
    /// Answer version 3 with this user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Authentication protocol of the user (MD5, SHA-1, SHA-224, SHA-256, SHA-384 or SHA-512) and
    /// password.
    #[arg(long, value_name = "PROTOCOL:REFERENCE", requires = "user")]
    auth: Option<Keyed<AuthProtocol>>,
    /// Privacy protocol of the user (AES-128 or AES-256) and password.
    #[arg(long, value_name = "PROTOCOL:REFERENCE", requires = "auth")]
    privacy: Option<Keyed<PrivProtocol>>,
}

/// A protocol and the reference to its password: `SHA-256:file:password`.
#[derive(Debug, Clone)]
pub(crate) struct Keyed<P> {
    pub(crate) protocol: P,
    pub(crate) password: Secret,
}

impl<P: FromStr<Err = ParseProtocolError>> FromStr for Keyed<P> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write PROTOCOL:env:NAME or PROTOCOL:file:PATH".to_owned();
        let (word, reference) = text.split_once(':').ok_or_else(wrong)?;
        let protocol = word.parse().map_err(|error: ParseProtocolError| error.to_string())?;
        let password = reference.parse().map_err(|_| wrong())?;
        Ok(Self { protocol, password })
    }
}

impl AgentArgs {
    fn access(&self) -> Result<Access, Failure> {
        let here = Path::new(".");
        let mut access = Access {
            communities: Vec::new(),
            users: Vec::new(),
            message_bytes_max: MESSAGE_BYTES_MAX,
        };
        if let Some(community) = &self.community {
            let name = community.read(here)?.as_bytes().to_vec();
            access.communities.push(Community { name, write: false });
        }
        if let Some(user) = &self.user {
            let asked = AskedAccess::V3 {
                user: user.clone(),
                auth: self.auth.clone().map(|keyed| (keyed.protocol, keyed.password)),
                privacy: self.privacy.clone().map(|keyed| (keyed.protocol, keyed.password)),
            };
            access.users.extend(AgentUser::new(Credentials::resolve(&asked, here)?, false));
        }
        if access.communities.is_empty() && access.users.is_empty() {
            return Err(Failure::new("this agent would answer nobody").hint(
                "meikyo agent --user monitor --auth SHA-256:file:auth --privacy AES-128:file:privacy",
            ));
        }
        Ok(access)
    }
}

/// Serves until it is interrupted.
///
/// # Errors
/// If a secret cannot be read, the address cannot be bound or the host cannot be read.
pub(crate) fn run(args: &AgentArgs) -> Result<Answer, Failure> {
    let access = args.access()?;
    let mut engine = Engine::of_this_host(WallTime::now());
    let mut host = Host::new(Roots::default(), &engine)?;
    let socket = UdpSocket::bind(args.listen).map_err(|error| cannot_bind(args.listen, &error))?;
    let (stop, trigger) = Stop::pair()?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::low_level::pipe::register(signal, trigger.try_clone()?)?;
    }
    let address = socket.local_addr()?;
    say(&format!("ready: this host at {address}, engine {}", engine.id));
    let counters = agent::serve(&socket, &access, &mut engine, &mut host, &stop)?;
    say(&format!(
        "{} requests, {} answers, {} damaged, {} with a wrong community",
        counters.received, counters.answered, counters.malformed, counters.bad_communities
    ));
    Ok(Answer::Yes)
}

fn cannot_bind(address: SocketAddr, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot listen at UDP {address}: {error}"));
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            failure.hint(format!("meikyo agent --listen {}:1610", address.ip()))
        }
        _ => failure.hint("see which program listens there: `ss -lunp`"),
    }
}

fn say(line: &str) {
    output::say(line);
}
