//! `meikyo measure`: collect from every device of a cluster file into a recording.
//!
//! # Threads
//! The main thread owns the list of devices, passes names to be resolved to the resolver's thread,
//! watches the cluster file and tells the person how it goes. The collector's and the writer's
//! threads never wait for it.

mod afar;
mod control;
pub(crate) mod devices;
mod freshening;
mod outlet;
mod report;
mod setup;
mod troubles;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use meikyo_cluster::{AlertRule, Cluster, LoadError};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_live::rules;
use meikyo_recording::alerts::{self, Alert};
use meikyo_recording::{
    Incident, IncidentKind, Keep, Kind, OpenStreamError, Recording, StreamOptions, StreamWriter,
    WhenRemoved,
};
use meikyo_server::Running;
use meikyo_snmp::collector::{
    Collector, CollectorOptions, Command, Ends, Notice, StartError, Status,
};
use meikyo_snmp::poll::{Outlet as _, Pace};
use meikyo_snmp::system::{Waker, lock_memory};
use meikyo_snmp::{resolver, tables};
use meikyo_units::{Nanos, WallTime};

use crate::hangup::{Hangup, Reason};
use crate::row_arguments::ClusterArgument;
use crate::this_host::{host_name, stop_on_signals};
use crate::verbs::config::{explained, unknown_tables};
use crate::verbs::serve;
use afar::{AfarArgs, Line};
use devices::Devices;
use freshening::Freshening;
use outlet::Outlet;
use troubles::Troubles;

/// How long the main thread waits for news before it looks at everything else: while names are
/// being resolved, and when only a signal, a new cluster file or the end can come.
const BUSY_TURN: Duration = Duration::from_millis(20);
const CALM_TURN: Duration = Duration::from_millis(200);

/// Measure every device of a cluster file and keep every reading
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    cluster: ClusterArgument,
    /// The recording to write; an existing one is continued
    #[arg(long, value_name = "RECORDING", default_value = "recording", env = "MEIKYO_RECORDING")]
    out: PathBuf,
    /// End after this span, for example 30s; by default at SIGINT or SIGTERM
    #[arg(long = "for", value_name = "SPAN")]
    span: Option<Nanos>,
    /// Spread the requests over each interval instead of sending them all at once
    #[arg(long)]
    spread: bool,
    /// Run the collector at real-time priority with locked memory; as root, also keep idle
    /// processors awake, which costs power
    #[arg(long)]
    realtime: bool,
    /// Make net-snmp agents read interface counters at every request; needs a write credential
    #[arg(long)]
    freshen: bool,
    /// With --freshen: print what it would do, without doing it
    #[arg(long, requires = "freshen", conflicts_with = "restore")]
    dry_run: bool,
    /// With --freshen: restore what a killed run has changed, and measure nothing
    #[arg(long, requires = "freshen")]
    restore: bool,
    /// How often readings are synced to the disk; a power cut loses at most this span
    #[arg(long, value_name = "SPAN", default_value = "1s")]
    sync: Nanos,
    /// What to do when somebody removes or moves the recording while it is written
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = IfRemoved::Renew)]
    if_removed: IfRemoved,
    /// Leave everything in the log instead of compacting it into Parquet files
    #[arg(long)]
    no_compact: bool,
    /// Serve the recording as a page and an API while it is written, on loopback
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1,
          default_missing_value = serve::DEFAULT_ADDRESS)]
    serve: Option<SocketAddr>,
    /// Do not print a progress line every second
    #[arg(long, short)]
    quiet: bool,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
    // Last, since it has a heading, which options behind it would stand under, too.
    #[command(flatten)]
    afar: AfarArgs,
}

/// What a measurement does without its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IfRemoved {
    /// Begin a new recording at the same path, in the same file system
    Renew,
    /// End the measurement with an error
    End,
}

impl MeasureArgs {
    /// The directory in which the measurement can be spoken to, and leaves what it must not forget: the
    /// recording, or the spool of one that writes none.
    fn home(&self) -> &Path {
        let spool = self.afar.spool().filter(|_| self.afar.no_recording);
        spool.unwrap_or(&self.out)
    }

    fn stream_options(&self, cluster: &Cluster) -> StreamOptions {
        let tables = cluster.keep_tables.iter().map(|of| (of.table.clone(), of.keep));
        StreamOptions {
            sync_every: self.sync,
            keep: Keep { all: cluster.keep, tables: tables.collect() },
            compact: !self.no_compact,
            when_removed: match self.if_removed {
                IfRemoved::Renew => WhenRemoved::Renew,
                IfRemoved::End => WhenRemoved::Drop,
            },
            ..StreamOptions::COLLECTOR
        }
    }
}

/// The cluster of a file whose tables are all known.
fn load(file: &Path) -> Result<Cluster, Failure> {
    let hint = || format!("meikyo config check --cluster {}", file.display());
    let cluster = meikyo_cluster::load(file).map_err(|error| explained(error, hint()))?;
    match unknown_tables(&cluster) {
        Some(problems) => Err(Failure::new(LoadError::Invalid(problems)).hint(hint())),
        None => Ok(cluster),
    }
}

/// Measures until the span is over or the person ends it.
pub(crate) fn run(args: &MeasureArgs) -> Result<Answer, Failure> {
    let cluster = load(&args.cluster.file)?;
    let stop = stop_on_signals()?;
    let hangup = Hangup::hear()?;
    let options = args.stream_options(&cluster);
    let described = cluster.clone();
    let devices = Devices::new(cluster)?;
    if args.dry_run {
        return freshening::dry_run(&devices, args.home());
    }
    if args.restore {
        return freshening::restore(&devices, args.home());
    }
    let left = alerts_left(args.home());
    if args.realtime {
        lock_memory().map_err(|source| StartError::Realtime { source })?;
    }
    let is_recorded = !args.afar.no_recording;
    let writer = is_recorded.then(|| writer(&args.out, options)).transpose()?;
    let forward = args.afar.start(devices.cluster())?;
    let line = Line::new(&args.afar, forward.as_ref());
    // It reads what the writer has written, at a lower priority, and shares nothing with it.
    let server =
        args.serve.map(|address| serve::beside(&args.out, address, &described)).transpose()?;
    let (commands, taken) = channel();
    let (notices_in, notices) = channel();
    let (status_in, status) = sync_channel(8);
    let waker = Arc::new(Waker::new()?);
    let mut collector = Collector::new(
        Outlet::new(writer, forward),
        &devices.specs(),
        CollectorOptions {
            pace: if args.spread { Pace::Spread } else { Pace::AtOnce },
            realtime: args.realtime,
        },
        &host_name(),
        Ends { commands: taken, notices: notices_in, status: status_in, waker: Arc::clone(&waker) },
    )?;
    let started = WallTime::now();
    collector.poller().clear_left(started, &left);
    collector.poller().set_alerts(devices.cluster().rules());
    let thread = collector.start()?;
    control::open(args.home(), commands.clone(), Arc::clone(&waker))?;
    let freshening = start_freshening(args, &devices, commands.clone(), Arc::clone(&waker))?;
    let mut measurement = Measurement {
        args,
        devices,
        commands,
        waker,
        status: None,
        started: monotonic(),
        told: 0,
        is_removed: false,
        freshening,
        freshened: BTreeSet::new(),
        line,
        troubles: Troubles::default(),
        server,
        hangup,
    };
    measurement.note_devices();
    measurement.note_rules();
    let attended = measurement.attend(&stop, &notices, &status);
    if let Some(freshening) = measurement.freshening.take() {
        freshening.restore();
    }
    measurement.send(Command::Stop);
    attended?;
    drop(measurement.server.take());
    measurement.finish(thread, &notices, &status)
}

fn writer(out: &Path, options: StreamOptions) -> Result<StreamWriter, Failure> {
    let opened =
        StreamWriter::open(out, Kind::Measured, meikyo_snmp::STREAM, tables::schemas(), options);
    opened.map_err(|error| {
        let hint = match &error {
            OpenStreamError::Locked { .. } => {
                "another `meikyo measure` writes there; end it, or give this one another `--out`"
            }
            _ => "name another directory with `--out`",
        };
        Failure::new(error).hint(hint)
    })
}

/// Prints how it went; the answer is yes when every reading that came is kept.
fn print_summary(json: bool, summary: &report::Summary) -> Result<Answer, Failure> {
    if json {
        output::print_json(summary)?;
    } else {
        output::print(&summary.text())?;
    }
    Ok(if summary.is_whole() { Answer::Yes } else { Answer::No })
}

/// What the main thread has in hand while it runs.
struct Measurement<'a> {
    args: &'a MeasureArgs,
    devices: Devices,
    commands: Sender<Command>,
    waker: Arc<Waker>,
    status: Option<Status>,
    /// Spans are those that pass, whatever the real-time clock is set to meanwhile.
    started: Instant,
    /// Problems told so far.
    told: usize,
    /// The recording was removed.
    is_removed: bool,
    freshening: Option<Freshening>,
    /// Devices whose cache was seen to since they were new or restarted.
    freshened: BTreeSet<u32>,
    /// The connection to a receiver.
    line: Option<Line>,
    troubles: Troubles,
    server: Option<Running>,
    hangup: Hangup,
}

impl Measurement<'_> {
    /// Most problems told on the terminal; all are in `events`.
    const TOLD_MAX: usize = 20;

    fn send(&self, command: Command) {
        self.queue(command);
        self.waker.wake();
    }

    /// Notes whether anything is alerted of, where the recording does not say it already: one that goes on
    /// may have had no rules before.
    fn note_rules(&self) {
        let set = self.devices.cluster().rules();
        // A receiver may have no rows of before.
        if set.is_empty() || self.line.is_some() || !had_rules(&self.args.out) {
            self.send(rules_note(&set));
        }
    }

    /// Leaves what the cluster file says of the devices beside their rows.
    fn note_devices(&self) {
        if !self.args.afar.no_recording {
            self.devices.note(&self.args.out);
        }
        if let Some(line) = &self.line {
            line.tell_devices(self.devices.facts());
        }
    }

    /// Leaves a command for the collector, which looks at it when it is awake.
    fn queue(&self, command: Command) {
        if self.commands.send(command).is_err() {
            tracing::warn!("the collector has ended by itself");
        }
    }

    /// Attends to the measurement until it is to end.
    fn attend(
        &mut self,
        stop: &AtomicBool,
        notices: &Receiver<Notice>,
        status: &Receiver<Status>,
    ) -> Result<(), Failure> {
        let (jobs, jobs_taken) = channel();
        let (outcomes_in, outcomes) = channel();
        std::thread::Builder::new().name("resolver".into()).spawn(move || {
            let mut report = |outcome| {
                if outcomes_in.send(outcome).is_err() {
                    tracing::debug!("the measurement has ended");
                }
            };
            if let Err(error) = resolver::run(&jobs_taken, resolver::OPTIONS, &mut report) {
                tracing::error!(%error, "names cannot be resolved");
            }
        })?;
        let end = self.args.span.and_then(|span| self.started.checked_add(span.to_std()));
        let mut resolving = 0_usize;
        loop {
            let now = monotonic();
            let ends = self.is_removed && self.args.if_removed == IfRemoved::End;
            if ends || self.is_asked_to_end(stop) || end.is_some_and(|end| now >= end) {
                return Ok(());
            }
            let turn = if resolving > 0 { BUSY_TURN } else { CALM_TURN };
            let left = end.map_or(turn, |end| end.saturating_duration_since(now));
            match notices.recv_timeout(turn.min(left)) {
                Ok(Notice::Resolve(ordinal)) => {
                    if let Some(job) = self.devices.job(ordinal) {
                        resolving += 1;
                        if jobs.send(job).is_err() {
                            tracing::error!("the resolver has ended");
                        }
                    }
                }
                Ok(Notice::Restarted(ordinal)) => {
                    self.freshened.remove(&ordinal);
                    tracing::info!(device = self.devices.name(ordinal), "the agent restarted");
                }
                Ok(Notice::Outage(ordinal, outage)) => self.troubles.device(ordinal, outage),
                Ok(Notice::Incident(incident)) => self.incident(&incident),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new("the collector has ended by itself"));
                }
            }
            let mut queued = false;
            while let Ok(outcome) = outcomes.try_recv() {
                resolving = resolving.saturating_sub(1);
                queued |= self.resolved(outcome);
            }
            if queued {
                self.waker.wake();
            }
            while let Ok(status) = status.try_recv() {
                if !self.args.quiet {
                    say(&report::line(&status, self.status.as_ref()));
                }
                self.status = Some(status);
            }
            self.troubles.tell(WallTime::now(), &self.devices, &mut say);
            if let Some(line) = &mut self.line {
                line.tell(WallTime::now());
            }
            self.follow_file(&jobs);
        }
    }

    /// Takes what the resolver found of a device; whether the collector is to be told of it.
    fn resolved(&mut self, outcome: resolver::Outcome) -> bool {
        for problem in outcome.result.iter().flat_map(|(_, problems)| problems) {
            self.tell(&problem.to_string());
        }
        // At the start, and when the agent restarted.
        if let (Some(freshening), Ok(_)) = (&self.freshening, &outcome.result)
            && self.freshened.insert(outcome.ordinal)
        {
            freshening.wish(outcome.ordinal);
        }
        let mut is_told = false;
        for command in self.devices.resolved(outcome) {
            self.queue(command);
            is_told = true;
        }
        is_told
    }

    /// Whether a signal says that it is over.
    fn is_asked_to_end(&self, stop: &AtomicBool) -> bool {
        match self.hangup.take_reason() {
            Some(Reason::TerminalGone) => return true,
            Some(Reason::Reload) => self.reload(),
            None => {}
        }
        stop.load(Ordering::Relaxed)
    }

    /// Answers a SIGHUP of somebody who wants files to be read anew.
    fn reload(&self) {
        say("SIGHUP: the measurement goes on; changes of the cluster file are taken over anyway");
        if let Some(server) = &self.server {
            serve::reload(server);
        }
    }

    /// Waits for the collector, closes the recording and tells how it went.
    fn finish(
        mut self,
        thread: JoinHandle<Outlet>,
        notices: &Receiver<Notice>,
        status: &Receiver<Status>,
    ) -> Result<Answer, Failure> {
        let ended = thread.join();
        let mut writer = ended.map_err(|_| Failure::new("the collector's thread has panicked"))?;
        self.hear(notices, &writer.take_incidents());
        control::close(self.args.home());
        while let Ok(last) = status.try_recv() {
            self.status = Some(last);
        }
        let (counters, forward) = writer.close()?;
        let sent = forward.map(|forward| afar::finish(&self.args.afar, forward)).transpose()?;
        let passed = monotonic().duration_since(self.started).as_nanos();
        let span = Nanos::new(u64::try_from(passed).expect("it ends within 584 years"));
        let Some(status) = &self.status else {
            return Err(Failure::new("the collector has ended without a result"));
        };
        let summary = report::Summary::new(
            (!self.args.afar.no_recording).then_some(&*self.args.out),
            self.devices.count(),
            span,
            status,
            &counters,
            self.troubles.failing(&self.devices),
            sent,
        );
        print_summary(self.args.json, &summary)
    }

    /// Takes note of what happened to the recording.
    fn incident(&mut self, incident: &Incident) {
        self.troubles.incident(incident);
        match incident.kind {
            IncidentKind::Removed => self.is_removed = true,
            IncidentKind::Renewed => {
                self.note_devices();
                let (commands, waker) = (self.commands.clone(), Arc::clone(&self.waker));
                if let Err(error) = control::open(&self.args.out, commands, waker) {
                    say(&format!("{error}: marks and acknowledgements of alerts are not possible"));
                }
            }
            _ => {}
        }
    }

    /// Hears what the collector and the writer said last, and tells it.
    fn hear(&mut self, notices: &Receiver<Notice>, incidents: &[Incident]) {
        for notice in notices.try_iter() {
            match notice {
                Notice::Outage(ordinal, outage) => self.troubles.device(ordinal, outage),
                Notice::Incident(incident) => self.troubles.incident(&incident),
                Notice::Resolve(_) | Notice::Restarted(_) => {}
            }
        }
        for incident in incidents {
            self.troubles.incident(incident);
        }
        self.troubles.tell_rest(&self.devices, &mut say);
    }

    /// Takes over a changed cluster file.
    fn follow_file(&mut self, jobs: &Sender<resolver::Job>) {
        match self.devices.reload(WallTime::now()) {
            Ok(None) => {}
            Ok(Some(changes)) => {
                say(&changes.text);
                self.note_devices();
                let note = Command::Note { kind: "reload", ordinal: None, text: changes.text };
                self.send(note);
                let (done, ordinals) = channel();
                if let Some(rules) = changes.alerts {
                    self.send(rules_note(&rules));
                    self.send(Command::Alerts(rules));
                }
                let (remove, add) = (changes.remove, changes.add);
                self.troubles.forget(&remove);
                if !remove.is_empty() || !add.is_empty() {
                    let specs = add.iter().map(|ready| (ready.spec(), None)).collect();
                    self.send(Command::Exchange { remove, add: specs, done });
                    if let Ok(ordinals) = ordinals.recv() {
                        self.freshened.retain(|ordinal| !ordinals.contains(ordinal));
                        self.devices.added(&ordinals, add);
                    }
                }
                for job in changes.jobs {
                    if jobs.send(job).is_err() {
                        tracing::error!("the resolver has ended");
                    }
                }
            }
            Err(problem) => {
                output::tell(&problem);
                self.send(Command::Note { kind: "reload_refused", ordinal: None, text: problem });
            }
        }
    }

    fn tell(&mut self, problem: &str) {
        self.told += 1;
        if self.told <= Self::TOLD_MAX {
            say(problem);
        }
        if self.told == Self::TOLD_MAX {
            say("further problems stand in the recording's table `events`");
        }
    }
}

/// The alerts that an earlier measurement left raised because it was killed. Without them it can
/// be measured as well.
fn alerts_left(recording: &Path) -> Vec<Alert> {
    let read = Recording::open(recording).and_then(|recording| alerts::read(&recording));
    match read {
        Ok((alerts, _)) => alerts.into_iter().filter(|alert| alert.cleared.is_none()).collect(),
        Err(error) => {
            tracing::debug!(%error, "no alerts of an earlier measurement");
            Vec::new()
        }
    }
}

/// Whether the recording says by now that rules of alerts are set, or says nothing.
fn had_rules(recording: &Path) -> bool {
    let read = Recording::open(recording).and_then(|recording| rules::are_set(&recording));
    read.unwrap_or_else(|error| {
        tracing::debug!(%error, "nothing is known of earlier rules of alerts");
        true
    })
}

/// The event that tells readers whether anything is alerted of.
fn rules_note(set: &[AlertRule]) -> Command {
    let (kind, text) = if set.is_empty() {
        (rules::NO_RULES, "no alert rules are set".to_owned())
    } else {
        let names: Vec<&str> = set.iter().map(|rule| rule.name.as_str()).collect();
        (rules::RULES, format!("alert rules: {}", names.join(", ")))
    };
    Command::Note { kind, ordinal: None, text }
}

/// Starts to freshen, if that is asked for; what happens is told to the person and recorded.
fn start_freshening(
    args: &MeasureArgs,
    devices: &Devices,
    commands: Sender<Command>,
    waker: Arc<Waker>,
) -> Result<Option<Freshening>, Failure> {
    if !args.freshen {
        tell_left_behind(args.home())?;
        return Ok(None);
    }
    let tell = move |ordinal, text: String| {
        say(&text);
        if commands.send(Command::Note { kind: "freshen", ordinal: Some(ordinal), text }).is_ok() {
            waker.wake();
        }
    };
    Freshening::start(devices, args.home(), tell).map(Some)
}

/// Tells of caches that a run with `--freshen` left at 0 because it was killed.
fn tell_left_behind(recording: &Path) -> Result<(), Failure> {
    let left = freshening::left_behind(recording)?;
    if let Some(first) = left.first() {
        let count = left.len();
        say(&format!(
            "{count} agents ({first} ...) still have the interface cache at 0 of a run with \
             `--freshen` that was killed; `meikyo measure --freshen --restore` sets it back"
        ));
    }
    Ok(())
}

/// A line for the person at the terminal. When the terminal is gone nobody is told, and the
/// measurement ends as it should.
fn say(line: &str) {
    output::say(line);
}

#[expect(clippy::disallowed_methods, reason = "spans follow the clock that nobody sets")]
fn monotonic() -> Instant {
    Instant::now()
}
