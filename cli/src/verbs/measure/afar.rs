//! `--to`: what is measured goes to a receiver from afar, while it is measured.

use std::path::PathBuf;

use clap::Args;
use meikyo_cluster::Cluster;
use meikyo_console::failure::Failure;
use meikyo_recording::devices::Device;
use meikyo_snmp::{STREAM, tables};
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Forward, Handle, StartError, Uplink, UplinkStatus};
use meikyo_transport::wire::Declared;
use meikyo_units::{BitsPerSecond, Bytes, Nanos, WallTime};
use serde::Serialize;

use super::say;
use crate::receiver;
use crate::this_host::{ROOTS, host_name};

/// How often the state of the connection is said, at most.
const SAY_EVERY: Nanos = Nanos::from_secs(10);

/// How long the end waits for the receiver to have everything.
const LAST_PATIENCE: Nanos = Nanos::from_secs(10);

/// Blocks that wait at most, for each of which the sender remembers about 150 octets: those of a day
/// are fewer, since blocks that are made without a connection hold the rows of a second.
const SPOOL_BLOCKS_MAX: usize = 1_000_000;

/// To whom readings are sent, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sending to another machine")]
pub(super) struct AfarArgs {
    /// Send all readings to this server, which runs `meikyo serve --ingest`, immediately; for example
    /// `https://mon.example:8420`. `http` on loopback only
    #[arg(long, value_name = "URL", requires = "spool")]
    to: Option<String>,
    /// Directory in which readings wait until the server has them; one for each measurement
    #[arg(long, value_name = "DIR", requires = "to")]
    spool: Option<PathBuf>,
    /// Limit of what waits; beyond it the oldest readings are dropped, and the server's recording
    /// reports them
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "to")]
    spool_max: Bytes,
    /// Limit of the rate at which older readings are sent beside new ones, for example 10Mbit/s
    /// [default: as the line allows]
    #[arg(long, value_name = "RATE", requires = "to")]
    catch_up: Option<BitsPerSecond>,
    /// File with a token of role `ingest`
    #[arg(long, value_name = "FILE", requires = "to")]
    token_file: Option<PathBuf>,
    /// The trusted certificate authorities, in PEM
    #[arg(long, value_name = "FILE", default_value = ROOTS)]
    tls_roots: PathBuf,
    /// The sender's name, which begins with the cluster's and which the token must allow; by default
    /// `CLUSTER:measure@HOST`
    #[arg(long, value_name = "CLUSTER:NAME", requires = "to")]
    name: Option<String>,
    /// This is one of several collectors, on different machines, of the same devices: for each interval the server
    /// takes the readings of one of them, and changes to another one if that is gone. Their names are the same up
    /// to the `@`
    #[arg(long, requires = "to")]
    standby: bool,
    /// Write no recording on this machine
    #[arg(long, requires = "to",
          conflicts_with_all = ["out", "sync", "if_removed", "no_compact", "serve"])]
    pub(super) no_recording: bool,
}

impl AfarArgs {
    /// Where the measurement can be spoken to when it writes no recording.
    pub(super) fn spool(&self) -> Option<&PathBuf> {
        self.spool.as_ref()
    }

    /// Starts to send, if that is asked for.
    pub(super) fn start(&self, cluster: &Cluster) -> Result<Option<Forward>, Failure> {
        let Some(to) = &self.to else { return Ok(None) };
        let token = receiver::token(self.token_file.as_deref())?;
        let target = receiver::target("--to", to, &self.tls_roots, token)?;
        let name = self.name.clone();
        let name = name.unwrap_or_else(|| format!("{}:measure@{}", cluster.name, host_name()));
        let identity = if self.standby { Some(identity_of(&name)?) } else { None };
        let options = SenderOptions {
            name,
            cluster: Some(cluster.name.clone()),
            identity,
            boot: WallTime::now().as_nanos().cast_unsigned(),
            machine: receiver::machine()?,
            streams: vec![Declared { stream: STREAM.to_owned(), tables: tables::schemas() }],
            spool: SpoolLimits { bytes: self.spool_max, blocks: SPOOL_BLOCKS_MAX },
            catch_up: self.catch_up.map(|rate| Bytes::new((rate.get() / 8).max(1))),
        };
        let uplink = Uplink::start(target, options, self.spool.as_deref());
        let uplink = uplink.map_err(|error| match error {
            StartError::Spool { .. } => Failure::new(error)
                .hint("name a directory that only this measurement writes to with `--spool`"),
            StartError::Sender(_) => Failure::new(error)
                .hint("the cluster file's `name` names the recording at the server"),
            StartError::Thread { .. } => Failure::new(error),
        })?;
        Ok(Some(Forward::start(uplink, STREAM, tables::schemas())?))
    }
}

/// What collectors of the same devices are called together.
fn identity_of(name: &str) -> Result<String, Failure> {
    match name.rsplit_once('@') {
        Some((identity, host)) if !identity.is_empty() && !host.is_empty() => {
            Ok(identity.to_owned())
        }
        _ => Err(Failure::new(format!("`{name}` does not say which of several collectors it is"))
            .hint(
                "name them for example `--name west:measure@mon1` and `--name west:measure@mon2`",
            )),
    }
}

/// The connection while the measurement runs.
#[derive(Debug)]
pub(super) struct Line {
    to: String,
    handle: Handle,
    said: String,
    say_at: WallTime,
}

impl Line {
    /// The connection of what is sent; `None` when nothing is.
    pub(super) fn new(args: &AfarArgs, forward: Option<&Forward>) -> Option<Self> {
        let (to, handle) = (args.to.clone()?, forward?.handle());
        Some(Self { to, handle, said: String::new(), say_at: WallTime::default() })
    }

    /// Says how the connection stands when that has changed, not too often.
    pub(super) fn tell(&mut self, now: WallTime) {
        if now < self.say_at {
            return;
        }
        let status = self.handle.status();
        let text = receiver::state(&status, &self.to);
        if text != self.said {
            say(&format!("meikyo: {text}"));
            self.said = text;
            // What comes of the first try is said as soon as it is known.
            if status.sender.is_welcome || status.trouble.is_some() {
                self.say_at = now + SAY_EVERY;
            }
        }
    }

    /// Says what the cluster file says of the devices.
    pub(super) fn tell_devices(&self, devices: Vec<Device>) {
        self.handle.tell_devices(devices);
    }
}

/// What was sent, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Sent {
    to: String,
    blocks_acknowledged: u64,
    blocks_waiting: u64,
    blocks_dropped: u64,
    rows_dropped: u64,
    bytes_written: u64,
    clock_offset_ns: Option<i64>,
    clock_error_ns: Option<u64>,
    /// Why nothing could be sent at the end.
    trouble: Option<String>,
}

impl Sent {
    /// Whether nothing was dropped; what waits is in the spool.
    pub(super) fn is_whole(&self) -> bool {
        self.blocks_dropped == 0 && self.rows_dropped == 0
    }

    /// A line for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: it has {} blocks", self.to, self.blocks_acknowledged);
        for (count, what) in [
            (self.blocks_waiting, "blocks wait in the spool"),
            (self.blocks_dropped, "blocks found no room in the spool"),
            (self.rows_dropped, "rows found no room in the queue to the sender"),
        ] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        if let Some(trouble) = &self.trouble {
            text += &format!("; not connected: {trouble}");
        }
        text + "\n"
    }
}

/// Makes blocks of everything, and waits until the receiver has them if it can be reached.
pub(super) fn finish(args: &AfarArgs, forward: Forward) -> Result<Sent, Failure> {
    let to = args.to.clone().unwrap_or_default();
    let rows_dropped = forward.rows_dropped();
    let uplink = forward.end()?;
    let is_told = |status: &UplinkStatus| status.sender.is_welcome || status.trouble.is_some();
    let status = uplink.wait(LAST_PATIENCE, is_told);
    // Nobody who cannot be reached is waited for.
    let patience = if status.trouble.is_none() { LAST_PATIENCE } else { Nanos::ZERO };
    let status = uplink.finish(patience);
    let clock = status.sender.clock;
    Ok(Sent {
        to,
        blocks_acknowledged: status.sender.acknowledged_blocks,
        blocks_waiting: status.sender.spool.blocks,
        blocks_dropped: status.sender.spool.dropped_blocks,
        rows_dropped,
        bytes_written: status.written_bytes,
        clock_offset_ns: clock.map(|clock| clock.offset_ns),
        clock_error_ns: clock.map(|clock| clock.error_ns),
        trouble: status.trouble,
    })
}
