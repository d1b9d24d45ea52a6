//! `meikyo serve`: recordings in the browser.

use std::io::Read as _;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use meikyo_cluster::Cluster;
use meikyo_console::failure::{self, Answer, Failure};
use meikyo_console::output;
use meikyo_live::line_protocol::SampleLayout;
use meikyo_server::{
    AgingOptions, Debuginfod, Door, FabricBody, Form, HttpTarget, KeeperError, Limits, MailError,
    MailTarget, NotifyOptions, OnwardOptions, Options, REQUESTS_PER_S, Recipient, Reloaded,
    Running, StartError, TargetError, Tls,
};
use meikyo_transport::shell::ConnectError;
use meikyo_units::Nanos;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::hangup::{Hangup, Reason};
use crate::row_arguments::check_there;
use crate::this_host::ROOTS;
use crate::verbs::config;
use crate::verbs::fabric::shown::shown;

/// Serve recordings, finished or still being written, as a page and an API
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The recordings' directories [default: `recording`, unless --ingest is given]
    #[arg(value_name = "RECORDING", env = "MEIKYO_RECORDING")]
    recordings: Vec<PathBuf>,
    /// Receive rows from other hosts, write them to the recording in this directory, and serve it
    #[arg(long, value_name = "DIR")]
    ingest: Option<PathBuf>,
    /// Round the times of samples of --ingest to microseconds once they are older than this, for example 7d. Only
    /// whole segments, of one day each, are rounded
    #[arg(long, value_name = "SPAN", requires = "ingest")]
    round_samples_after: Option<Nanos>,
    /// Replace samples of --ingest that are older than this by counts for each second, CPU and code address
    #[arg(long, value_name = "SPAN", requires = "ingest")]
    sum_up_samples_after: Option<Nanos>,
    /// Ask this debuginfod for functions of programs that no host can name, for example
    /// `http://127.0.0.1:8002`; `http` on loopback only
    #[arg(long, value_name = "URL", requires = "ingest")]
    debuginfod: Option<String>,
    /// Certificate authorities that are trusted for the debuginfod, in PEM
    #[arg(long, value_name = "FILE", default_value = ROOTS)]
    debuginfod_tls_roots: PathBuf,
    /// The address; addresses other than loopback need --token-file, --tls-cert and --tls-key
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Serve at this Unix socket, which its directory's permissions protect; at no TCP address
    /// unless --listen is given, too
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// Draw the fabric of this cluster file (its section `[fabric]`)
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,
    #[command(flatten)]
    protection: Protection,
    /// Print a new token and its line for --token-file, and exit: a token for viewing, with
    /// `=ingest:PATTERN,...` one that only lets senders of these names send rows, or with
    /// `=jobs:PATTERN,...` one that only shows samples of these jobs (slurm:123) and users (user:1000)
    #[arg(
        long,
        value_name = "ROLE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "view"
    )]
    new_token: Option<TokenRole>,
    // Last, since these have headings, which options behind them would stand under, too.
    #[command(flatten)]
    influx: InfluxArgs,
    #[command(flatten)]
    remote_write: RemoteWriteArgs,
    #[command(flatten)]
    notify: NotifyArgs,
}

/// What a token is made for, as it stands before its hash.
#[derive(Debug, Clone)]
struct TokenRole {
    words: String,
}

impl FromStr for TokenRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "view" {
            return Ok(Self { words: String::new() });
        }
        for role in ["ingest", "jobs"] {
            let patterns = text.strip_prefix(role).and_then(|rest| rest.strip_prefix(':'));
            if let Some(patterns) = patterns.and_then(meikyo_server::patterns_of) {
                return Ok(Self { words: format!("{role} {} ", patterns.join(",")) });
            }
        }
        Err("write `view`, `jobs:PATTERN,...` as in `--new-token='jobs:slurm:12*,user:1000'`, or \
             `ingest:PATTERN,...` as in `--new-token='ingest:node*'`"
            .into())
    }
}

impl ServeArgs {
    /// The recordings that are served: those that were named, and the one that rows are written to.
    fn recordings(&self) -> Vec<PathBuf> {
        let is_other = |path: &&PathBuf| Some(*path) != self.ingest.as_ref();
        let named = self.recordings.iter().filter(is_other).cloned();
        let all: Vec<_> = named.chain(self.ingest.clone()).collect();
        if all.is_empty() { vec![DEFAULT_RECORDING.into()] } else { all }
    }
}

/// Who may ask, and by which name.
#[derive(Debug, Clone, Args)]
struct Protection {
    /// Require a token; the file holds Argon2 hashes, one per line, as --new-token prints them:
    /// alone for viewing, after `ingest PATTERN,...` for sending rows, or after `jobs PATTERN,...`
    /// for viewing samples of jobs
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate chain in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Prefix of all paths, for use behind a proxy; for example /meikyo
    #[arg(long, value_name = "PATH", default_value = "")]
    prefix: String,
    /// A name of the server besides localhost, or behind a proxy the origin of its pages, for
    /// example `https://mon.example`. Can be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Sustained requests per second of a client (an address, or a user at the Unix socket); bursts
    /// may be five times that. Behind a proxy all users are one client
    #[arg(long, value_name = "N", default_value_t = REQUESTS_PER_S)]
    requests_per_second: NonZeroU32,
}

impl ServeArgs {
    /// When samples become smaller.
    fn aging(&self) -> Result<AgingOptions, Failure> {
        let aging = AgingOptions {
            round_after: self.round_samples_after,
            sum_up_after: self.sum_up_samples_after,
        };
        if let AgingOptions { round_after: Some(round), sum_up_after: Some(sum_up) } = aging
            && round >= sum_up
        {
            return Err(Failure::new(format!(
                "samples are summed up after {sum_up}, before they would be rounded after {round}"
            ))
            .hint("round earlier than you sum up: --round-samples-after 1d --sum-up-samples-after 30d"));
        }
        Ok(aging)
    }

    fn debuginfod(&self) -> Result<Option<Debuginfod>, Failure> {
        let of = self.debuginfod.as_ref();
        let of = of.map(|url| Debuginfod::new(url, &self.debuginfod_tls_roots)).transpose();
        of.map_err(|error| wrong(error, "--debuginfod http://127.0.0.1:8002"))
    }
}

/// The database that rows are sent on to.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "InfluxDB")]
struct InfluxArgs {
    /// Send the rows of the recordings of --ingest, or of the only one, on to an Influx database in its line
    /// protocol, for example `http://127.0.0.1:8086/write?db=profiles`; `http` on loopback only
    #[arg(long, value_name = "URL")]
    influx: Option<String>,
    /// A file with `USER:PASSWORD`, or a token
    #[arg(long, value_name = "FILE", requires = "influx")]
    influx_credentials: Option<PathBuf>,
    /// Certificate authorities that are trusted for the database, in PEM
    #[arg(long, value_name = "FILE", default_value = ROOTS)]
    influx_tls_roots: PathBuf,
    /// Send only tables that match this pattern; can be repeated. All tables by default
    #[arg(long = "influx-table", value_name = "PATTERN", requires = "influx")]
    influx_tables: Vec<String>,
    /// Send the samples of each CPU as a measurement of its own: CPU0, CPU1 and so on
    #[arg(long, requires = "influx")]
    influx_per_cpu: bool,
}

/// A URL that nothing can be posted to, with the option as it could be written.
fn wrong(error: TargetError, example: &str) -> Failure {
    match error {
        TargetError::Address { .. } => {
            Failure::new(error).hint(format!("write for example `{example}`"))
        }
        TargetError::Roots(ConnectError::Unprotected { .. }) => {
            Failure::new(error).hint("write `https` instead of `http`")
        }
        _ => Failure::new(error),
    }
}

impl InfluxArgs {
    fn options(&self) -> Result<Option<OnwardOptions>, Failure> {
        let Some(url) = &self.influx else { return Ok(None) };
        let target =
            HttpTarget::new(url, self.influx_credentials.as_deref(), &self.influx_tls_roots);
        let target = target
            .map_err(|error| wrong(error, "--influx 'http://127.0.0.1:8086/write?db=profiles'"))?;
        let layout =
            if self.influx_per_cpu { SampleLayout::PerCpu } else { SampleLayout::OneMeasurement };
        let (tables, form) = (self.influx_tables.clone(), Form::Lines(layout));
        Ok(Some(OnwardOptions { target, tables, form }))
    }
}

/// The Prometheus that values are sent on to.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Prometheus")]
struct RemoteWriteArgs {
    /// Send the values of the recordings of --ingest, or of the only one, on to a Prometheus by remote write,
    /// for example `http://127.0.0.1:9090/api/v1/write`; `http` on loopback only
    #[arg(long, value_name = "URL")]
    remote_write: Option<String>,
    /// A file with `USER:PASSWORD`, or a token
    #[arg(long, value_name = "FILE", requires = "remote_write")]
    remote_write_credentials: Option<PathBuf>,
    /// Certificate authorities that are trusted for the Prometheus server, in PEM
    #[arg(long, value_name = "FILE", default_value = ROOTS)]
    remote_write_tls_roots: PathBuf,
    /// Send only tables that match this pattern; can be repeated. All tables of `/metrics` by default
    #[arg(long = "remote-write-table", value_name = "PATTERN", requires = "remote_write")]
    remote_write_tables: Vec<String>,
}

impl RemoteWriteArgs {
    fn options(&self) -> Result<Option<OnwardOptions>, Failure> {
        let Some(url) = &self.remote_write else { return Ok(None) };
        let credentials = self.remote_write_credentials.as_deref();
        let target = HttpTarget::new(url, credentials, &self.remote_write_tls_roots);
        let target = target
            .map_err(|error| wrong(error, "--remote-write http://127.0.0.1:9090/api/v1/write"))?;
        let (tables, form) = (self.remote_write_tables.clone(), Form::RemoteWrite);
        Ok(Some(OnwardOptions { target, tables, form }))
    }
}

/// Whom alerts are told to.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Alerts")]
struct NotifyArgs {
    /// Post every change of the alerts of a rule as JSON to this address; `http` on loopback only
    #[arg(long, value_name = "URL")]
    alert_webhook: Option<String>,
    /// A file with `USER:PASSWORD`, or a token, for the web hook
    #[arg(long, value_name = "FILE", requires = "alert_webhook")]
    alert_webhook_credentials: Option<PathBuf>,
    /// Send every change of the alerts of a rule by mail to this mailbox; can be repeated
    #[arg(long = "alert-mail", value_name = "MAILBOX", requires = "alert_mail_from")]
    alert_mail: Vec<String>,
    /// The mailbox that mail comes from
    #[arg(long, value_name = "MAILBOX", requires = "alert_mail")]
    alert_mail_from: Option<String>,
    /// The mail server that carries it on: `smtps://HOST:PORT`, or `smtp` on loopback
    #[arg(long, value_name = "URL", default_value = "smtp://127.0.0.1:25")]
    alert_smtp: String,
    /// A file with `USER:PASSWORD` for the mail server
    #[arg(long, value_name = "FILE", requires = "alert_mail")]
    alert_smtp_credentials: Option<PathBuf>,
    /// Certificate authorities that are trusted for the web hook and the mail server, in PEM
    #[arg(long, value_name = "FILE", default_value = ROOTS)]
    alert_tls_roots: PathBuf,
    /// How long to wait for more alerts of the same rule before telling of them
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    alert_group_wait: Nanos,
    /// How often to tell again of alerts that last and that nobody has acknowledged
    #[arg(long, value_name = "SPAN", default_value = "4h")]
    alert_repeat: Nanos,
}

impl NotifyArgs {
    fn options(&self) -> Result<Vec<NotifyOptions>, Failure> {
        let roots = &self.alert_tls_roots;
        let mut all = Vec::new();
        if let Some(url) = &self.alert_webhook {
            let target = HttpTarget::new(url, self.alert_webhook_credentials.as_deref(), roots);
            let target = target
                .map_err(|error| wrong(error, "--alert-webhook http://127.0.0.1:8000/alerts"))?;
            all.push(Recipient::Hook(target));
        }
        if let Some(from) = self.alert_mail_from.as_ref().filter(|_| !self.alert_mail.is_empty()) {
            let credentials = self.alert_smtp_credentials.as_deref();
            let mailboxes = (&**from, &*self.alert_mail);
            let target = MailTarget::new(&self.alert_smtp, mailboxes, credentials, roots);
            let target = target.map_err(|error| match error {
                MailError::Server { .. } => Failure::new(error)
                    .hint("write for example `--alert-smtp smtps://mail.example:465`"),
                MailError::Roots(ConnectError::Unprotected { .. }) => {
                    Failure::new(error).hint("write `smtps` instead of `smtp`")
                }
                MailError::Mailbox { .. } => {
                    Failure::new(error).hint("write for example `--alert-mail admin@mail.example`")
                }
                _ => Failure::new(error),
            })?;
            all.push(Recipient::Mail(target));
        }
        let (group_wait, repeat_every) = (self.alert_group_wait, self.alert_repeat);
        Ok(all.into_iter().map(|to| NotifyOptions { to, group_wait, repeat_every }).collect())
    }
}

/// What is served when nothing else is said.
const DEFAULT_RECORDING: &str = "recording";

/// Where a server listens when nothing else is said.
pub(crate) const DEFAULT_ADDRESS: &str = "127.0.0.1:8420";

/// Serves until a signal comes.
pub(crate) fn run(args: &ServeArgs) -> Result<Answer, Failure> {
    if let Some(role) = &args.new_token {
        return new_token(role);
    }
    // The directory of `--ingest` is made if there is none.
    let ingested = args.ingest.as_ref();
    for recording in args.recordings().iter().filter(|dir| Some(*dir) != ingested) {
        check_there(recording)?;
    }
    let mut signals = Signals::hear()?;
    let running = start(args)?;
    for url in running.urls() {
        say(&format!("serving at {url}"));
    }
    running.wake_on_failure(signals.waker.try_clone()?);
    let failed = loop {
        match signals.next()? {
            _ if running.has_failed() => break true,
            Some(Asked::End) => break false,
            Some(Asked::Reload) => reload(&running),
            None => {}
        }
    };
    running.stop();
    if failed {
        let text =
            "rows from other hosts are not taken any more: a mistake in this program, told above";
        return Err(Failure::new(text).hint("start it again; senders keep their blocks"));
    }
    Ok(Answer::Yes)
}

/// Reads anew what a server can read anew, and tells how that went.
pub(crate) fn reload(running: &Running) {
    match running.reload() {
        Ok(Reloaded { certificate: false, tokens: false }) => {
            say("SIGHUP: there is neither a certificate nor a token file to reload");
        }
        Ok(Reloaded { certificate, tokens }) => {
            let read = [(certificate, "certificate and key"), (tokens, "tokens")];
            let read: Vec<_> = read.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
            say(&format!("SIGHUP: {} reloaded", read.join(" and ")));
        }
        Err(error) => {
            say("SIGHUP: nothing was reloaded; the old files stay in use");
            say(failure::render(&explained(error)).trim_end());
        }
    }
}

fn start(args: &ServeArgs) -> Result<Running, Failure> {
    let default = DEFAULT_ADDRESS.parse().expect("the constant is an address");
    let address = args.listen.or_else(|| args.unix_socket.is_none().then_some(default));
    let doors = address.map(Door::Tcp).into_iter().chain(args.unix_socket.clone().map(Door::Unix));
    let Protection { token_file, tls_cert, tls_key, prefix, hosts, requests_per_second } =
        args.protection.clone();
    let tls = tls_cert.zip(tls_key).map(|(certificate, key)| Tls { certificate, key });
    meikyo_server::start(&Options {
        recordings: args.recordings(),
        doors: doors.collect(),
        tls,
        token_file,
        hosts,
        prefix,
        requests_per_s: requests_per_second,
        limits: Limits::STANDARD,
        fabric: args.cluster.as_deref().map(fabric_of).transpose()?,
        ingest: args.ingest.clone(),
        debuginfod: args.debuginfod()?,
        aging: args.aging()?,
        notify: args.notify.options()?,
        onward: args.influx.options()?.into_iter().chain(args.remote_write.options()?).collect(),
    })
    .map_err(explained)
}

/// Serves one recording on loopback, beside a measurement that writes it.
///
/// A fabric that cannot be drawn is told and left out: the measurement goes on without its picture.
pub(crate) fn beside(
    recording: &Path,
    address: SocketAddr,
    cluster: &Cluster,
) -> Result<Running, Failure> {
    let fabric = cluster.fabric.as_ref().and_then(|_| match shown(cluster) {
        Ok(fabric) => Some(fabric),
        Err(failure) => {
            say(&format!(
                "the fabric is not drawn; see: meikyo fabric plan --cluster {}",
                cluster.path.display()
            ));
            output::tell(failure::render(&failure).trim_end());
            None
        }
    });
    let running = meikyo_server::start(&Options {
        doors: vec![Door::Tcp(address)],
        fabric,
        ..Options::on_loopback(recording)
    })
    .map_err(explained)?;
    for url in running.urls() {
        say(&format!("serving at {url}"));
    }
    Ok(running)
}

fn fabric_of(file: &Path) -> Result<FabricBody, Failure> {
    let cluster = meikyo_cluster::load(file).map_err(|error| {
        config::explained(error, format!("meikyo config check --cluster {}", file.display()))
    })?;
    let hint = "leave out --cluster, or add a section [fabric]: docs/cluster-file.md#fabric";
    shown(&cluster).map_err(|failure| failure.hint(hint))
}

fn explained(error: StartError) -> Failure {
    let hint = match &error {
        StartError::Unprotected { .. } => {
            "make a token with `meikyo serve --new-token`, then \
             `meikyo serve --listen ... --token-file FILE --tls-cert FILE --tls-key FILE`"
        }
        StartError::Listen { .. } => {
            "name another address; with port 0 any that is free: 127.0.0.1:0"
        }
        StartError::Token(_) => "make a token and its hash with `meikyo serve --new-token`",
        StartError::Ingest(KeeperError::Foreign { .. } | KeeperError::Taken { .. }) => {
            "name a directory of its own, which need not be there: `meikyo serve --ingest DIR`"
        }
        StartError::Several { .. } => {
            "name one: `meikyo serve RECORDING --influx URL`, or what is written with `--ingest DIR`"
        }
        _ => return error.into(),
    };
    Failure::from(error).hint(hint)
}

fn new_token(role: &TokenRole) -> Result<Answer, Failure> {
    let token = meikyo_server::make_token();
    let hash = meikyo_server::hash_token(&token)?;
    say(&format!("token (shown only once): {token}"));
    output::print(&format!("{}{hash}\n", role.words))?;
    Ok(Answer::Yes)
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    End,
    Reload,
}

/// The signals that a server hears.
struct Signals {
    /// Becomes readable when one has come.
    woken: UnixStream,
    waker: UnixStream,
    end: Arc<AtomicBool>,
    hangup: Hangup,
}

impl Signals {
    fn hear() -> Result<Self, std::io::Error> {
        let (woken, waker) = UnixStream::pair()?;
        let (end, hangup) = (Arc::new(AtomicBool::new(false)), Hangup::hear()?);
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&end))?;
        }
        // After the flags, so that they are up when the pipe is readable.
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Self { woken, waker, end, hangup })
    }

    /// Waits for the next signal; `None` when it was told before, or it was something else that woke.
    fn next(&mut self) -> Result<Option<Asked>, std::io::Error> {
        self.woken.read_exact(&mut [0])?;
        if self.end.load(Ordering::Relaxed) {
            return Ok(Some(Asked::End));
        }
        Ok(match self.hangup.take_reason() {
            Some(Reason::TerminalGone) => Some(Asked::End),
            Some(Reason::Reload) => Some(Asked::Reload),
            None => None,
        })
    }
}

/// A line for people and scripts. When the terminal is gone nobody is told, and nothing else fails.
fn say(line: &str) {
    output::say(line);
}
