//! A job whose program knows nothing of checkpoints: all its hosts are captured at once while nothing is on the wire, and a
//! host that is lost is replaced by a spare one without a person.
//!
//! A capture is one generation of the daemons, as every other. The program's link is switched off before the first host stands
//! still and on again when all are written: what TCP has sent meanwhile is sent again, so every octet is in exactly one image.
//! When a host is lost, everything of the job is ended, and its containers begin anew with a spare in the place of the lost one
//! under the same name and address: one way for every loss, and the one that `restart` goes, too.
//!
//! Cost: a stop is what the slowest host takes to be written, and up to 0.2 s more until TCP sends again what was dropped.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use meikyo_checkpoint::charter;
use meikyo_checkpoint::daemon::{Happened, Observer, What};
use meikyo_checkpoint::drain::Drained;
use meikyo_checkpoint::interval::{Risk, daly};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, bytes_text, span_text};
use meikyo_units::Nanos;

use super::fence::fence;
use super::inside::{DUMPED, HERE, READY, RESTORED, SAVED, WHOLE};
use super::parts::Parts;
use super::plan::DETECTION;
use super::role_names::{BRING_BACK, CAPTURE};
use super::shown::Shown;
use super::site::{AsIs, ENDED, ERRORS, OUTPUT, Site, Way};
use super::slurm;
use super::trouble::{CAUSE, Halt, LOOK_AGAIN, NotStarted, Stopped, Trouble, now};
use super::watch::{ENDING, Job};
use crate::signals;

/// Hosts have so long until their processes stand still and are written, and to bring them back.
const WRITING: Duration = Duration::from_secs(300);

/// Hosts have so long until they know what they bring back: others may rebuild it for them.
const FETCHING: Duration = Duration::from_secs(900);

/// The first capture without `--every`: what it takes says when the next one is due.
const FIRST: Nanos = Nanos::from_secs(10);

/// Captures are not more often.
const EVERY_MIN: Nanos = Nanos::from_millis(100);

/// TCP sends again what was dropped while the program stood still as long after that as it stood still, and so much later at
/// most: one that stood still again before would not get on.
const SENT_AGAIN: Nanos = Nanos::from_millis(400);

/// What is under way between hosts, as a connection that is being opened, passes in this time; else it is said.
const UNDER_WAY: Duration = Duration::from_secs(10);

/// What the program begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nothing.
    Afresh,
    /// The newest whole generation, or this one.
    From(Option<u64>),
    /// The newest whole generation, if there is one.
    FromAny,
}

/// How an attempt at a job has ended.
enum Outcome {
    /// The program has, with this code.
    Ended(u8),
    /// The job is to go on later from this checkpoint, which is whole.
    Later(u64),
    /// A host was lost, and there is something to go on from, or not.
    Lost(usize, bool),
}

/// Runs a job until its program ends, on spare hosts where others are lost.
pub(super) fn carry_out(
    site: &mut Site,
    first: &[String],
    origin: Origin,
    drained: Option<&Drained>,
) -> Result<Answer, Failure> {
    Ok(Answer::Exit(carry_on(site, first, origin, drained, None)?))
}

/// The same, with what is tried with it; the program's exit code.
fn carry_on(
    site: &mut Site,
    first: &[String],
    origin: Origin,
    drained: Option<&Drained>,
    mut trial: Option<&mut Trial>,
) -> Result<u8, Failure> {
    let signals = signals::stream()?;
    signals.set_nonblocking(true)?;
    let (mut first, mut drained, mut origin) = (first, drained, origin);
    if let Some(drained) = drained {
        as_is(site).starts = drained.reached.run;
    }
    let mut lost_at = None;
    let mut shown: Option<[Shown; 2]> = None;
    let mut observer = site.recorded.observer(OWN_NAME)?;
    loop {
        as_is(site).starts += 1;
        let (trial, observer_now) = (trial.as_deref_mut(), &mut observer);
        let (shown, signals) = (&mut shown, &signals);
        let mut attempt = Attempt { shown, signals, lost_at, trial, observer: observer_now };
        match attempt.carry_out(site, first, origin, drained)? {
            Outcome::Ended(code) => return Ok(code),
            Outcome::Later(step) => {
                slurm::requeue(step)?;
                return Ok(0);
            }
            Outcome::Lost(place, is_saved) => {
                lost_at = Some(now());
                let lost = site.lost(place);
                fence(site, &site.hosts[place].name)?;
                let Some(spare) = site.replace(place) else {
                    let hint = format!(
                        "meikyo checkpoint restart --directory {} goes on when {lost} is back, or with --on HOSTS with another in \
                         its place; --spares N, or `spares` of the cluster file, has others stand ready",
                        site.directory.display()
                    );
                    let text = format!("the host {lost} is gone, and no spare is left");
                    return Err(Failure::new(text).hint(hint));
                };
                output::say(&format!("the host {lost} is gone, and {spare} takes its place"));
                observer(recovering(
                    What::Replaced,
                    lost_at,
                    None,
                    format!("{spare} takes the place of {lost}"),
                ));
                (first, drained) = (&[], None);
                origin = if is_saved { Origin::From(None) } else { Origin::Afresh };
            }
        }
    }
}

/// Starts a job, captures it once, and ends it: how that went, or why it is not possible.
///
/// What the program says is not shown.
pub(super) fn examine(site: &mut Site) -> Result<Result<String, String>, Failure> {
    let mut trial = Trial { kill: None, captured: None };
    let code =
        carry_on(site, &FOUNDING.map(str::to_owned), Origin::Afresh, None, Some(&mut trial))?;
    trial.captured.ok_or_else(|| ended_early(site, code, "it was captured"))
}

/// Starts a job, captures it, kills the host of a place, and ends the program once it runs again: how long that took, or
/// why it cannot be captured.
///
/// What the program says is not shown.
pub(super) fn rehearse(
    site: &mut Site,
    place: usize,
) -> Result<Result<Rehearsed, String>, Failure> {
    let mut trial = Trial { kill: Some(Kill { place, killed: None, times: None }), captured: None };
    let code =
        carry_on(site, &FOUNDING.map(str::to_owned), Origin::Afresh, None, Some(&mut trial))?;
    match (trial.kill.and_then(|kill| kill.times), trial.captured) {
        (Some(times), _) => Ok(Ok(times)),
        (None, Some(Err(why))) => Ok(Err(why)),
        (None, _) => Err(ended_early(site, code, "it ran again on a spare")),
    }
}

/// What the daemons of a job that begins are told.
const FOUNDING: [&str; 1] = ["--found"];

fn ended_early(site: &Site, code: u8, what: &str) -> Failure {
    let said = fs::read_to_string(site.path(ERRORS)).unwrap_or_default();
    let last = said.lines().last().unwrap_or_default();
    Failure::new(format!("the program has ended with {code} before {what}: {last}"))
        .hint("capture it earlier: --after SPAN")
}

/// A program that is only run to see what becomes of it.
struct Trial {
    /// Who is killed once there is something to go on from; else the first capture is all that is wanted.
    kill: Option<Kill>,
    /// What a checkpoint takes, or why there can be none.
    captured: Option<Result<String, String>>,
}

struct Kill {
    place: usize,
    killed: Option<Instant>,
    times: Option<Rehearsed>,
}

/// How long it took from the death of a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rehearsed {
    /// Until it was noticed.
    pub(super) noticed: Nanos,
    /// Until all hosts had what they bring back, the spare too.
    pub(super) data: Nanos,
    /// Until the program ran again.
    pub(super) running: Nanos,
    /// The checkpoint that it goes on from.
    pub(super) step: u64,
}

fn as_is(site: &mut Site) -> &mut AsIs {
    site.as_is.as_mut().expect("whoever comes here captures a program as it is")
}

/// One start of everything.
struct Attempt<'a> {
    shown: &'a mut Option<[Shown; 2]>,
    signals: &'a UnixStream,
    /// When a host was lost that this one makes up for.
    lost_at: Option<Instant>,
    /// What is tried, where the program is run for nothing else.
    trial: Option<&'a mut Trial>,
    observer: &'a mut Observer,
}

/// Whoever runs a job is called so where it tells what happens.
const OWN_NAME: &str = "run";

/// Something on the way back after a host was lost, or all were.
fn recovering(
    what: What,
    lost_at: Option<Instant>,
    reached: Option<charter::Reached>,
    text: String,
) -> Happened {
    let span = lost_at.map(|lost_at| nanos(lost_at.elapsed()));
    Happened { what, generation: None, reached, cost: None, span, text }
}

/// How far a program has come that is brought back.
struct BroughtBack {
    step: u64,
    /// When all hosts had what they need for it.
    ready: Instant,
}

impl Attempt<'_> {
    fn carry_out(
        &mut self,
        site: &Site,
        first: &[String],
        origin: Origin,
        drained: Option<&Drained>,
    ) -> Result<Outcome, Failure> {
        let mut reached = Reached { step: 0, is_saved: origin != Origin::Afresh };
        let mut job = match Job::start(site, first) {
            Ok(job) => job,
            Err(NotStarted::Lost(place)) => return Ok(Outcome::Lost(place, reached.is_saved)),
            Err(NotStarted::Failure(failure)) => return Err(failure),
        };
        match self.go(&mut job, site, origin, drained, &mut reached) {
            Ok(outcome) => Ok(outcome),
            Err(Stopped::Trouble(Trouble::Lost(place))) => Ok(lost(&job, site, place, &reached)),
            Err(Stopped::Trouble(trouble)) => Err(job.explained(&trouble)),
            Err(Stopped::Halt(halt)) => Err(Failure::new(not_done(site, "brought back", &halt))),
            // A host that is gone is the reason of much.
            Err(Stopped::Failure(failure)) => match job.look_after() {
                Err(Trouble::Lost(place)) => Ok(lost(&job, site, place, &reached)),
                _ => Err(failure),
            },
        }
    }

    /// From the first daemon to the end of the program.
    fn go(
        &mut self,
        job: &mut Job<'_>,
        site: &Site,
        origin: Origin,
        drained: Option<&Drained>,
        reached: &mut Reached,
    ) -> Result<Outcome, Stopped> {
        job.meet()?;
        if let Some(drained) = drained {
            job.resume(drained)?;
        }
        let is_committed =
            |place| job.status(place).is_some_and(|status| status.committed.is_some());
        let origin = match origin {
            Origin::FromAny if (0..site.hosts.len()).any(is_committed) => Origin::From(None),
            Origin::FromAny => Origin::Afresh,
            origin => origin,
        };
        reached.is_saved = origin != Origin::Afresh;
        let after = |lost_at: Instant| {
            format!(", {} after a host was lost", span_text(nanos(lost_at.elapsed())))
        };
        match origin {
            Origin::Afresh | Origin::FromAny => {
                self.begin(site)?;
                if let Some(lost_at) = self.lost_at {
                    let after = after(lost_at);
                    output::say(&format!(
                        "the program begins anew, as nothing was saved yet{after}"
                    ));
                }
            }
            Origin::From(generation) => {
                let back = self.bring_back(job, site, generation)?;
                reached.step = back.step;
                let after = self.lost_at.map_or_else(String::new, after);
                output::say(&format!("the program goes on from checkpoint {}{after}", back.step));
                let text = format!("the program goes on from checkpoint {}", back.step);
                let from = charter::Reached { run: start_of(site), step: back.step };
                (self.observer)(recovering(What::RunsAgain, self.lost_at, Some(from), text));
                if self.is_rehearsed(&back) {
                    return Ok(Outcome::Ended(0));
                }
            }
        }
        self.watch(job, site, reached)
    }

    /// Starts the program anew.
    fn begin(&mut self, site: &Site) -> Result<(), Failure> {
        for name in [OUTPUT, ERRORS] {
            fs::write(site.path(name), [])?;
        }
        self.show(site);
        forget_end(site)?;
        for host in &site.hosts {
            finished(&mut site.number_processes(host)?, "the processes cannot be numbered")?;
        }
        finished(site.program()?.stdin(Stdio::null()), "the program cannot be started")
    }

    /// Has all hosts bring back what they have of a generation; the number of the capture.
    fn bring_back(
        &mut self,
        job: &mut Job<'_>,
        site: &Site,
        generation: Option<u64>,
    ) -> Result<BroughtBack, Stopped> {
        forget_end(site)?;
        let mut arguments = part_arguments(site);
        if let Some(generation) = generation {
            arguments.extend(["--generation".to_owned(), generation.to_string()]);
        }
        let mut parts = Parts::start(site, BRING_BACK, &arguments)?;
        let said = parts.await_all(READY, FETCHING, || job.look_after())?;
        let is_same = said.iter().all(|other| said.first() == Some(other));
        let Some(one) = said.first().filter(|_| is_same) else {
            let text = format!("hosts would go on from different checkpoints: {}", said.join(", "));
            let failure = Failure::new(text).hint("name one that all have: restart --generation N");
            return Err(failure.into());
        };
        let step = one.rsplit(' ').next().and_then(|step| step.parse().ok()).unwrap_or_default();
        let ready = now();
        let text = format!("all hosts have checkpoint {step}");
        let reached = charter::Reached { run: start_of(site), step };
        (self.observer)(recovering(What::Ready, self.lost_at, Some(reached), text));
        self.show(site);
        // Nobody answers for whom others do not know yet.
        job.carry(false)?;
        parts.go_on();
        let restored = parts.await_all(RESTORED, WRITING, || job.look_after());
        let carried = job.carry(true);
        restored?;
        carried?;
        Ok(BroughtBack { step, ready })
    }

    /// Whether the program was to be brought back for nothing but to see how long it takes.
    fn is_rehearsed(&mut self, back: &BroughtBack) -> bool {
        let kill = self.trial.as_mut().and_then(|trial| trial.kill.as_mut());
        let Some((kill, lost_at)) = kill.zip(self.lost_at) else { return false };
        let Some(killed) = kill.killed else { return false };
        kill.times = Some(Rehearsed {
            noticed: nanos(lost_at - killed),
            data: nanos(back.ready - killed),
            running: nanos(killed.elapsed()),
            step: back.step,
        });
        true
    }

    /// Does what a program is tried for; whether that is all.
    fn is_tried(&mut self, job: &mut Job<'_>, captures: &mut Captures, reached: &Reached) -> bool {
        let Some(trial) = &mut self.trial else { return false };
        if let Some(found) = captures.first.take() {
            trial.captured = Some(found);
        }
        match (&mut trial.kill, &trial.captured) {
            (_, None) => false,
            (None, Some(_)) | (Some(_), Some(Err(_))) => true,
            (Some(kill), Some(Ok(_))) => {
                if reached.is_saved && kill.killed.is_none() {
                    kill.killed = Some(now());
                    job.end_host(kill.place);
                }
                false
            }
        }
    }

    /// What the program says from here on is passed on; what was shown before a host was lost is not shown again.
    fn show(&mut self, site: &Site) {
        if self.trial.is_some() {
            return;
        }
        match &mut *self.shown {
            Some(shown) => shown.iter_mut().for_each(Shown::roll_back),
            shown => {
                *shown = Some([
                    Shown::new(site.path(OUTPUT), false),
                    Shown::new(site.path(ERRORS), true),
                ]);
            }
        }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.shown.iter_mut().flatten().try_for_each(Shown::pass_on)
    }

    /// Captures the program until it has ended or a host is lost.
    fn watch(
        &mut self,
        job: &mut Job<'_>,
        site: &Site,
        reached: &mut Reached,
    ) -> Result<Outcome, Stopped> {
        let mut captures = Captures::new(site, self.trial.is_some());
        let mut told: Option<Instant> = None;
        loop {
            // What it said last is there before its end is.
            let ended = site.ended();
            job.look_after()?;
            self.pass_on()?;
            if let Some(code) = ended {
                // A program ends because a host has ended, and what is seen first is not always that.
                let deadline = now() + CAUSE;
                while code != 0 && told.is_none() && now() < deadline {
                    job.look_after()?;
                    thread::park_timeout(LOOK_AGAIN);
                }
                return Ok(Outcome::Ended(code));
            }
            captures.turn(job, site, reached)?;
            if let Some(step) = captures.last_of_all(job, site) {
                return Ok(Outcome::Later(step));
            }
            if self.is_tried(job, &mut captures, reached) {
                return Ok(Outcome::Ended(0));
            }
            let mut raised = [0; 16];
            let count = io::Read::read(&mut &*self.signals, &mut raised).unwrap_or(0);
            let raised = &raised[..count];
            if site.way == Way::Slurm && slurm::is_time_up(raised) {
                output::say("the time of the job is nearly over: a last checkpoint is made");
                captures.end_with_next();
            } else if !raised.is_empty() {
                output::say("the program is told to end");
                if told.is_some() {
                    return Ok(Outcome::Ended(KILLED));
                }
                site.end_program(false)?;
                told = Some(now());
            }
            if told.is_some_and(|told| told.elapsed() > ENDING) {
                return Ok(Outcome::Ended(KILLED));
            }
            thread::park_timeout(LOOK_AGAIN);
        }
    }
}

/// The exit code of a program that was killed, as shells say it.
const KILLED: u8 = 128 + 9;

/// How far a program has come that is captured.
struct Reached {
    /// The number of the last capture.
    step: u64,
    /// Whether there is anything to go on from.
    is_saved: bool,
}

fn finished(command: &mut std::process::Command, what: &str) -> Result<(), Failure> {
    let ended = command.status()?;
    if ended.success() { Ok(()) } else { Err(Failure::new(format!("{what}: {ended}"))) }
}

fn forget_end(site: &Site) -> io::Result<()> {
    match fs::remove_file(site.path(ENDED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn not_done(site: &Site, what: &str, halt: &Halt) -> String {
    let name = |place: &usize| site.hosts[*place].name.clone();
    match halt {
        Halt::Failed(place, why) | Halt::UnderWay(place, why) => {
            format!("the program is not {what} on {}: {why}", name(place))
        }
        Halt::Ended(place) => {
            format!("the program is not {what} on {}: whoever does it has ended", name(place))
        }
        Halt::Late(places) => {
            let names: Vec<String> = places.iter().map(name).collect();
            format!("the program is not {what} in time on {}", names.join(", "))
        }
    }
}

fn part_arguments(site: &Site) -> Vec<String> {
    let criu = site.criu().to_string_lossy().into_owned();
    let disk = site.disk().to_string_lossy().into_owned();
    let job = site.directory.to_string_lossy().into_owned();
    let mut words = vec!["--criu".to_owned(), criu];
    words.extend(["--disk".to_owned(), disk, "--job".to_owned(), job]);
    let files = site.as_is.iter().flat_map(|as_is| &as_is.save_files);
    words.extend(files.map(|pattern| format!("--save-files={}", pattern.display())));
    words
}

/// When the program is captured, and what becomes of it.
struct Captures {
    every: Option<Nanos>,
    /// The mean time between failures of all hosts together.
    between_failures: Nanos,
    due: Instant,
    /// What is still being handed over, and its number.
    saving: Option<(Parts, u64)>,
    /// Since when there was none, as something was under way each time.
    under_way: Option<Instant>,
    /// What went wrong last.
    trouble: Option<String>,
    has_told: bool,
    /// Whether nothing is said of them.
    is_quiet: bool,
    /// How the first went, until somebody takes it.
    first: Option<Result<String, String>>,
    /// Which is to be the last one, if any.
    last: Last,
}

/// Which capture is the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// None: the program runs to its end.
    Never,
    /// The next that is possible.
    Next,
    /// This one, which is handed over.
    Made(u64),
}

impl Captures {
    fn new(site: &Site, is_quiet: bool) -> Self {
        let as_is = site.as_is.as_ref();
        let every = as_is.and_then(|as_is| as_is.every).map(|every| every.max(EVERY_MIN));
        let hosts = site.hosts.len() as u64;
        let between_failures =
            as_is.map_or(FIRST, |as_is| Nanos::new(as_is.between_failures.get() / hosts));
        let due = now() + every.unwrap_or(FIRST).to_std();
        Self {
            every,
            between_failures,
            due,
            saving: None,
            under_way: None,
            trouble: None,
            has_told: is_quiet,
            is_quiet,
            first: None,
            last: Last::Never,
        }
    }

    /// Begins a capture when it is due, and sees how the last one stands.
    fn turn(
        &mut self,
        job: &mut Job<'_>,
        site: &Site,
        reached: &mut Reached,
    ) -> Result<(), Stopped> {
        if let Some((mut parts, step)) = self.saving.take() {
            match parts.poll(SAVED) {
                None => self.saving = Some((parts, step)),
                Some(Ok(said)) => self.saved(&said, step),
                Some(Err(halt)) => self.failed(site, &halt),
            }
            return Ok(());
        }
        if !reached.is_saved && reached.step > 0 {
            let status = job.status(0);
            reached.is_saved = status.is_some_and(|status| status.committed.is_some());
        }
        if now() < self.due || matches!(self.last, Last::Made(_)) {
            return Ok(());
        }
        let step = reached.step + 1;
        match capture(job, site, step) {
            Ok(parts) => {
                reached.step = step;
                self.under_way = None;
                if self.last != Last::Never {
                    self.last = Last::Made(step);
                }
                self.saving = Some((parts, step));
            }
            Err(Stopped::Halt(Halt::UnderWay(..)))
                if self.under_way.get_or_insert_with(now).elapsed() < UNDER_WAY =>
            {
                self.due = now() + SENT_AGAIN.to_std();
            }
            Err(Stopped::Halt(halt)) => self.failed(site, &halt),
            Err(stopped) => return Err(stopped),
        }
        Ok(())
    }

    fn saved(&mut self, said: &[String], step: u64) {
        let numbers = |said: &String| {
            let (bytes, stopped) = said.split_once(' ')?;
            Some((bytes.parse::<u64>().ok()?, stopped.parse::<u64>().ok()?))
        };
        let numbers: Vec<(u64, u64)> = said.iter().filter_map(numbers).collect();
        let bytes = numbers.iter().map(|(bytes, _)| bytes).sum();
        let stopped =
            Nanos::new(numbers.iter().map(|&(_, stopped)| stopped).max().unwrap_or_default());
        let wait = self.every.unwrap_or_else(|| {
            let (cost, restart, between_failures) = (stopped, DETECTION, self.between_failures);
            daly(&Risk { cost, restart, between_failures }).max(EVERY_MIN)
        });
        let wait = if self.last == Last::Never { wait } else { Nanos::ZERO };
        let wait = wait.max(stopped + SENT_AGAIN);
        self.due = now() + wait.to_std();
        let cost = format!(
            "{} on all hosts, the program stood still for {}",
            bytes_text(bytes),
            span_text(stopped)
        );
        if !self.has_told || self.trouble.take().is_some() {
            self.has_told = true;
            output::say(&format!("checkpoint {step}: {cost}; the next in {}", span_text(wait)));
        }
        self.first.get_or_insert(Ok(cost));
    }

    /// Says what went wrong, once as long as it is the same; the program goes on.
    fn failed(&mut self, site: &Site, halt: &Halt) {
        let why = not_done(site, "captured", halt);
        let text = format!("{why}; it goes on unprotected");
        self.first = Some(Err(why));
        if !self.is_quiet && self.trouble.as_ref() != Some(&text) {
            output::say(&text);
        }
        self.trouble = Some(text);
        let again = if self.last == Last::Never {
            self.every.unwrap_or(FIRST)
        } else {
            self.last = Last::Next;
            SENT_AGAIN
        };
        self.due = now() + again.to_std();
    }

    /// Makes one more as soon as possible, and no other.
    fn end_with_next(&mut self) {
        if self.last == Last::Never {
            self.last = Last::Next;
            self.due = now();
        }
    }

    /// The number of the last one, once all hosts have it whole.
    fn last_of_all(&self, job: &Job<'_>, site: &Site) -> Option<u64> {
        let Last::Made(step) = self.last else { return None };
        let is_whole = |place| {
            job.status(place)
                .is_some_and(|status| status.step == Some(step) && status.open.is_none())
        };
        (self.saving.is_none() && (0..site.hosts.len()).all(is_whole)).then_some(step)
    }
}

/// What is left when a host is lost: a checkpoint may have been committed since anybody looked.
fn lost(job: &Job<'_>, site: &Site, place: usize, reached: &Reached) -> Outcome {
    let others = (0..site.hosts.len()).filter(|other| *other != place);
    let mut statuses = others.filter_map(|other| job.status(other));
    let is_saved = reached.is_saved || statuses.any(|status| status.committed.is_some());
    Outcome::Lost(place, is_saved)
}

/// Which start of the program this is.
fn start_of(site: &Site) -> u64 {
    site.as_is.as_ref().map_or(0, |as_is| as_is.starts)
}

/// Has all hosts write what they have of the program, and go on.
fn capture(job: &mut Job<'_>, site: &Site, step: u64) -> Result<Parts, Stopped> {
    let mut arguments = part_arguments(site);
    let run = start_of(site).to_string();
    let numbers = ["--run".to_owned(), run, "--step".to_owned(), step.to_string()];
    arguments.extend(numbers);
    arguments.extend(["--daemons".to_owned(), site.port.to_string()]);
    let mut parts = Parts::start(site, CAPTURE, &arguments)?;
    parts.await_all(HERE, WRITING, || job.look_after())?;
    if let Err(silent) = job.carry(false) {
        // What goes wrong with that is noticed as everything else.
        drop(job.carry(true));
        return Err(silent);
    }
    parts.go_on();
    let mut written = parts.await_all(DUMPED, WRITING, || job.look_after());
    if written.is_ok() {
        parts.go_on();
        written = parts.await_all(WHOLE, WRITING, || job.look_after());
    }
    let carried = job.carry(true);
    written?;
    carried?;
    parts.go_on();
    Ok(parts)
}

fn nanos(span: Duration) -> Nanos {
    // Saturates after five centuries, which nothing here lasts.
    Nanos::new(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}
