//! A job while it runs: its containers, its daemons, its program; what ends is noticed, and what is to be done is said.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use meikyo_checkpoint::daemon::Status;
use meikyo_checkpoint::drain::Drained;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_spaces::{Container, ContainerError, ContainerOptions, Lan, process};

use super::afar::Afar;
use super::fence::fence;
use super::role_names::{self as roles, UNREACHED};
use super::site::{Host, JOB, LINKS, PROGRAM_LINK, Site, Way};
use super::slurm;
use super::trouble::{CAUSE, Halt, LOOK_AGAIN, NotStarted, Stopped, Trouble, now, spawned};
use crate::signals;

/// Between two questions to a daemon whom it hears.
const HEAR_AGAIN: Duration = Duration::from_millis(200);

/// The same where each question is a connection to a host.
const HEAR_AGAIN_AFAR: Duration = Duration::from_secs(1);

/// Daemons have met so long after they were started.
const MEETING: Duration = Duration::from_secs(60);

/// What the program has handed over is made safe after its end, for so long at most.
const SAVING: Duration = Duration::from_secs(600);

/// A program that is told to end has so long for it.
pub(super) const ENDING: Duration = Duration::from_secs(10);

/// A daemon that ends while its host lives is started again so often.
const STARTS_MAX: u32 = 4;

/// A daemon on a host.
struct Daemon {
    child: Child,
    /// The daemon ends with it.
    input: Option<ChildStdin>,
    starts: u32,
}

pub(super) struct Job<'a> {
    site: &'a Site,
    /// By place, where hosts are containers.
    containers: Vec<Container>,
    /// What joins them.
    network: Option<Lan>,
    /// Containers on hosts that are reached by `ssh`.
    afar: Option<Afar>,
    daemons: Vec<Daemon>,
    silence: Silence,
    /// What Slurm says of the hosts, where they are of a job of it.
    slurm: Option<slurm::Watch>,
}

/// Which hosts of a program that is captured the others do not hear.
struct Silence {
    /// The place of the host whose daemon tells it.
    asked: usize,
    due: Instant,
    /// By place, since when.
    since: Vec<Option<Instant>>,
}

/// Why a job has ended before its program.
enum Unfinished {
    /// A host of this place was lost, which is explained to whoever has no spare for it.
    Lost(usize, Failure),
    /// Something else.
    Failure(Failure),
}

impl From<Failure> for Unfinished {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<io::Error> for Unfinished {
    fn from(error: io::Error) -> Self {
        Self::Failure(error.into())
    }
}

/// Runs a job to its end, on spare hosts where others are lost; daemons are started with these arguments beside, and have this
/// before the program begins.
pub(super) fn carry_out(
    site: &mut Site,
    first: &[String],
    drained: Option<&Drained>,
) -> Result<Answer, Failure> {
    let (mut first, mut drained) = (first, drained);
    loop {
        let (place, explained) = match attempt(site, first, drained) {
            Ok(answer) => return Ok(answer),
            Err(Unfinished::Failure(failure)) => return Err(failure),
            Err(Unfinished::Lost(place, explained)) => (place, explained),
        };
        let lost = site.lost(place);
        fence(site, &site.hosts[place].name)?;
        let Some(spare) = site.replace(place) else { return Err(explained) };
        output::say(&format!("the host {lost} is gone, and {spare} takes its place"));
        (first, drained) = (&[], None);
    }
}

fn attempt(site: &Site, first: &[String], drained: Option<&Drained>) -> Result<Answer, Unfinished> {
    let mut job = match Job::start(site, first) {
        Ok(job) => job,
        Err(NotStarted::Failure(failure)) => return Err(failure.into()),
        Err(NotStarted::Lost(place)) => {
            let failure = Failure::new("a container has ended while it was started").hint(format!(
                "meikyo checkpoint restart --directory {}",
                site.directory.display()
            ));
            return Err(Unfinished::Lost(place, failure));
        }
    };
    job.meet().map_err(|trouble| job.unfinished(&trouble))?;
    if let Some(drained) = drained {
        job.resume(drained)?;
    }
    let signals = signals::stream()?;
    signals.set_nonblocking(true)?;
    let mut program = site.program()?;
    let program = program.stdin(Stdio::inherit()).spawn()?;
    let (ended, is_told) = job.watch(program, &signals)?;
    // Whoever reached the program for it was killed, if there is no code.
    let code = ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(UNREACHED);
    let saved = job.settle();
    let step = saved.as_ref().and_then(|status| status.step);
    if code != 0 || is_told {
        let from = step.map_or_else(String::new, |step| format!(" from step {step}"));
        output::say(&format!(
            "the program has ended with {code}; `meikyo checkpoint restart --directory {}` goes on{from}",
            site.directory.display()
        ));
    }
    if saved.is_some() && step.is_none() {
        output::say(
            "no rank has saved anything: a program that does not use libmeikyo_checkpoint is not protected; \
             --as-is captures it unchanged",
        );
    }
    Ok(Answer::Exit(code))
}

fn network(hosts: usize, links: usize) -> Result<Lan, Failure> {
    let hint = "run it as root, or let users make namespaces (sysctl kernel.unprivileged_userns_clone=1, \
                user.max_user_namespaces); --cluster FILE runs on hosts";
    let failed = |text: String| Failure::new(text).hint(hint);
    let refused = |error: &dyn std::error::Error| {
        failed(format!("this machine makes no containers: {}", meikyo_units::in_one_line(error)))
    };
    if !rustix::process::geteuid().is_root() {
        process::become_root_of_own().map_err(|error| refused(&error))?;
    }
    Lan::make(hosts, links, None).map_err(|error| refused(&error))
}

impl<'a> Job<'a> {
    /// Starts hosts and their daemons, these with arguments beside.
    pub(super) fn start(site: &'a Site, first: &[String]) -> Result<Self, NotStarted> {
        let links = if site.as_is.is_some() { LINKS } else { 1 };
        let network = if site.is_local() { Some(network(site.hosts.len(), links)?) } else { None };
        site.prepare()?;
        let (containers, daemons) = (Vec::new(), Vec::new());
        let silence = Silence { asked: 0, due: now(), since: vec![None; site.hosts.len()] };
        let afar = site.afar().map(|_| Afar::start(site)).transpose()?;
        let names = site.hosts.iter().map(|host| host.name.as_str());
        let slurm = (site.way == Way::Slurm).then(|| slurm::Watch::new(names));
        let mut job = Self { site, containers, network, afar, daemons, silence, slurm };
        job.start_containers()?;
        for place in 0..site.hosts.len() {
            let daemon = job.start_daemon(place, first, 1)?;
            job.daemons.push(daemon);
        }
        Ok(job)
    }

    /// Lets the link of the program carry frames, or not.
    pub(super) fn carry(&mut self, is_on: bool) -> Result<(), Stopped> {
        if let Some(network) = &mut self.network {
            network.carry(PROGRAM_LINK, is_on).map_err(Failure::from)?;
        }
        if let Some(afar) = &self.afar {
            afar.carry(is_on).map_err(Halt::Late)?;
        }
        Ok(())
    }

    /// How the daemon of a place stands; nothing while it does not answer.
    pub(super) fn status(&self, place: usize) -> Option<Status> {
        match &self.afar {
            Some(afar) => afar.status(place),
            None => self.site.status(&self.site.hosts[place]),
        }
    }

    fn name(&self, place: usize) -> &str {
        &self.site.hosts[place].name
    }

    fn start_containers(&mut self) -> Result<(), NotStarted> {
        let Some(network) = &self.network else { return Ok(()) };
        let program = std::env::current_exe().map_err(Failure::from)?;
        let role = [roles::WORDS[0], roles::WORDS[1], roles::FIRST];
        for (place, host) in self.site.hosts.iter().enumerate() {
            let options = ContainerOptions {
                name: self.site.called(host).to_owned(),
                hosts: self.site.names(),
                socket: self.site.socket_of(host),
                binds: vec![(self.site.disk_of(host), self.site.disk())],
            };
            match Container::start(&program, &role, network.space(place), &options) {
                Ok(made) => self.containers.push(made),
                // It was there, and was killed.
                Err(ContainerError::Ended { .. }) => return Err(NotStarted::Lost(place)),
                Err(error) => return Err(Failure::from(error).into()),
            }
        }
        Ok(())
    }

    fn start_daemon(&self, place: usize, more: &[String], starts: u32) -> Result<Daemon, Failure> {
        let host = &self.site.hosts[place];
        let path = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
        let mut words =
            ["checkpoint", "daemon", "--with-input", "--job"].map(str::to_owned).to_vec();
        words.extend([path(self.site.path(JOB)), "--host".into(), host.name.clone()]);
        words.extend(["--directory".into(), path(self.site.disk())]);
        words.extend(self.site.limits.iter().chain(more).cloned());
        words.extend(self.site.recorded.arguments());
        let log = fs::File::create(self.site.log_of(host))?;
        let mut command = self.site.meikyo(host, &words)?;
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        let mut child = spawned(&mut command)?;
        Ok(Daemon { input: child.stdin.take(), child, starts })
    }

    /// Waits until all daemons are members of one group that knows what was committed.
    pub(super) fn meet(&mut self) -> Result<(), Trouble> {
        let deadline = now() + MEETING;
        loop {
            self.look_after()?;
            let awaited: Vec<usize> =
                (0..self.site.hosts.len()).filter(|place| !self.is_member(*place)).collect();
            let Some(&first) = awaited.first() else { return Ok(()) };
            if now() > deadline {
                let names: Vec<&str> = awaited.iter().map(|place| self.name(*place)).collect();
                let last = self.status(first).and_then(|status| status.last);
                let first = &self.site.hosts[first];
                let why = last.or_else(|| self.last_words(first)).unwrap_or_default();
                return Err(Trouble::Apart(names.join(", "), why));
            }
            thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// Has every host save what it had in an earlier job.
    pub(super) fn resume(&mut self, drained: &Drained) -> Result<(), Failure> {
        let disk = self.site.disk().to_string_lossy().into_owned();
        for (host, file) in self.site.hosts.iter().zip(&drained.files) {
            let file = file.to_string_lossy().into_owned();
            let words = ["checkpoint", "save", "--directory", &disk, "--drained", &file];
            let ended = self.site.meikyo(host, &words.map(str::to_owned))?.status()?;
            if !ended.success() {
                let text = format!("{} cannot take what `{file}` has: {ended}", host.name);
                return Err(Failure::new(text).hint("what is wrong stands above"));
            }
        }
        let step = drained.reached.step;
        let deadline = now() + SAVING;
        let is_saved = |status: Status| status.step == Some(step) && status.open.is_none();
        let places = 0..self.site.hosts.len();
        while !places.clone().all(|place| self.status(place).is_some_and(is_saved)) {
            self.look_after().map_err(|trouble| self.explained(&trouble))?;
            if now() > deadline {
                return Err(Failure::new(format!("step {step} is not saved on all hosts"))
                    .hint("`meikyo checkpoint status --directory DIR` says how a daemon stands"));
            }
            thread::park_timeout(LOOK_AGAIN);
        }
        output::say(&format!(
            "goes on from step {step}, which was copied to the shared file system"
        ));
        Ok(())
    }

    fn is_member(&self, place: usize) -> bool {
        self.status(place).is_some_and(|status| status.is_member)
    }

    /// Notices what has ended, and starts daemons again.
    pub(super) fn look_after(&mut self) -> Result<(), Trouble> {
        for place in 0..self.daemons.len() {
            let lost = |_: io::Error| Trouble::Lost(place);
            if let Some(container) = self.containers.get_mut(place)
                && !container.is_running().map_err(lost)?
            {
                return Err(Trouble::Lost(place));
            }
            if self.afar.as_mut().is_some_and(|afar| !afar.is_running(place)) {
                return Err(Trouble::Lost(place));
            }
            let ended = self.daemons[place].child.try_wait().map_err(lost)?;
            let Some(ended) = ended else { continue };
            let starts = self.daemons[place].starts;
            let host = &self.site.hosts[place];
            if starts >= STARTS_MAX || ended.code() == Some(2) {
                // It has said what is wrong.
                let why = self.last_words(host).unwrap_or_else(|| ended.to_string());
                return Err(Trouble::Daemon(place, why));
            }
            if ended.code() == Some(UNREACHED.into()) && !self.answers(host) {
                return Err(Trouble::Lost(place));
            }
            let again =
                self.start_daemon(place, &[], starts + 1).map_err(|_| Trouble::Lost(place))?;
            self.daemons[place] = again;
        }
        let failed = self.slurm.as_mut().map(slurm::Watch::poll).unwrap_or_default();
        let is_failed = |host: &Host| failed.contains_key(&host.name);
        if let Some(place) = self.site.hosts.iter().position(is_failed) {
            // Slurm may let it go on for a while.
            self.end_host(place);
            return Err(Trouble::Lost(place));
        }
        self.hear()
    }

    /// Ends the container of a host, which is noticed as every other end of one.
    pub(super) fn end_host(&mut self, place: usize) {
        if let Some(container) = self.containers.get_mut(place) {
            container.end();
        }
        if let Some(afar) = &mut self.afar {
            afar.end(place);
        }
    }

    /// Notices hosts that the others have not heard of for too long, where there is a spare for one. A host that was only
    /// cut off or stopped for a while goes on.
    fn hear(&mut self) -> Result<(), Trouble> {
        let site = self.site;
        if site.spares.is_empty() {
            return Ok(());
        }
        let now = now();
        if now < self.silence.due {
            return Ok(());
        }
        let is_near = site.is_local() || self.afar.is_some();
        self.silence.due = now + if is_near { HEAR_AGAIN } else { HEAR_AGAIN_AFAR };
        let status = self.status(self.silence.asked).filter(|status| status.is_member);
        let Silence { asked, since, .. } = &mut self.silence;
        let is_dead = |word: &String| word == "dead";
        // Whoever does not hear most of the others is cut off itself.
        let status = status.filter(|status| {
            2 * status.hosts.iter().filter(|word| !is_dead(word)).count() > status.hosts.len()
        });
        let Some(status) = status else {
            *asked = (*asked + 1) % site.hosts.len();
            return Ok(());
        };
        let patience = site.replace_after;
        let mut lost = None;
        for (place, (since, word)) in since.iter_mut().zip(&status.hosts).enumerate() {
            let name = &site.hosts[place].name;
            match *since {
                None if is_dead(word) => {
                    *since = Some(now);
                    output::say(&format!(
                        "the host {name} does not answer; it is replaced if that lasts for {patience}"
                    ));
                }
                Some(_) if !is_dead(word) => {
                    *since = None;
                    output::say(&format!("the host {name} answers again"));
                }
                Some(began) if now - began > patience.to_std() => lost = Some(place),
                _ => {}
            }
        }
        let Some(place) = lost else { return Ok(()) };
        // Nothing of it may go on beside the one that takes its place.
        self.end_host(place);
        Err(Trouble::Lost(place))
    }

    /// Whether a host is reached.
    fn answers(&self, host: &Host) -> bool {
        let status = self.site.script(host, "true").map(|mut command| command.status());
        matches!(status, Ok(Ok(status)) if status.success())
    }

    fn last_words(&self, host: &Host) -> Option<String> {
        let said = fs::read_to_string(self.site.log_of(host)).ok()?;
        let error = said.lines().find(|line| line.starts_with("error: "));
        error.or_else(|| said.lines().last()).map(str::to_owned)
    }

    /// Waits for the program's end; how it ended, and whether it was told to.
    fn watch(
        &mut self,
        mut program: Child,
        signals: &UnixStream,
    ) -> Result<(ExitStatus, bool), Unfinished> {
        let mut told: Option<Instant> = None;
        loop {
            if let Err(trouble) = self.look_after() {
                self.end(&mut program, &trouble)?;
                return Err(self.unfinished(&trouble));
            }
            if let Some(ended) = program.try_wait()? {
                if ended.success() {
                    return Ok((ended, told.is_some()));
                }
                let deadline = now() + CAUSE;
                while now() < deadline {
                    self.look_after().map_err(|trouble| self.unfinished(&trouble))?;
                    thread::park_timeout(LOOK_AGAIN);
                }
                return Ok((ended, told.is_some()));
            }
            let mut raised = [0; 16];
            if matches!(io::Read::read(&mut (&*signals), &mut raised), Ok(count) if count > 0) {
                output::say("the program is told to end");
                self.site.end_program(told.is_some())?;
                told.get_or_insert_with(now);
            }
            if told.is_some_and(|told| told.elapsed() > ENDING) {
                self.site.end_program(true)?;
                drop(program.kill());
            }
            thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// Ends a program that a host was lost for.
    fn end(&self, program: &mut Child, trouble: &Trouble) -> Result<(), Failure> {
        let has_host = !matches!(trouble, Trouble::Lost(0));
        if has_host {
            self.site.end_program(false)?;
        }
        let deadline = now() + ENDING;
        while program.try_wait()?.is_none() && now() < deadline {
            thread::park_timeout(LOOK_AGAIN);
        }
        if has_host && program.try_wait()?.is_none() {
            self.site.end_program(true)?;
        }
        // It may have ended by itself.
        drop(program.kill());
        program.wait()?;
        Ok(())
    }

    fn unfinished(&self, trouble: &Trouble) -> Unfinished {
        let explained = self.explained(trouble);
        match trouble {
            Trouble::Lost(place) => Unfinished::Lost(*place, explained),
            _ => Unfinished::Failure(explained),
        }
    }

    pub(super) fn explained(&self, trouble: &Trouble) -> Failure {
        let directory = self.site.directory.display();
        match trouble {
            Trouble::Lost(place) => {
                let others = (0..self.site.hosts.len()).filter(|other| other != place);
                let statuses = others.filter_map(|other| self.status(other));
                let step = statuses.filter_map(|status| status.step).max();
                let saved = step.map_or_else(
                    || "nothing was committed yet".to_owned(),
                    |step| format!("step {step} is safe on the others"),
                );
                let name = self.name(*place);
                let names: Vec<String> =
                    self.site.hosts.iter().map(|host| host.name.clone()).collect();
                let kept: Vec<String> =
                    names.iter().filter(|other| *other != name).cloned().collect();
                Failure::new(format!("the host {name} is gone; {saved}")).hint(format!(
                    "meikyo checkpoint restart --directory {directory} goes on when {name} is back; in its place \
                     another does: --on '{},OTHER'",
                    meikyo_cluster::fold(&kept)
                ))
            }
            Trouble::Apart(names, why) => {
                Failure::new(format!("daemons do not meet on {names}: {why}")).hint(format!(
                    "hosts have to reach each other at TCP port {}: --port names another",
                    self.site.port
                ))
            }
            Trouble::Daemon(place, why) => {
                let (name, log) = (self.name(*place), self.site.log_of(&self.site.hosts[*place]));
                let why = why.strip_prefix("error: ").unwrap_or(why);
                Failure::new(format!("the daemon of {name} has ended: {why}")).hint(format!(
                    "`{}` has all that it said; then meikyo checkpoint restart --directory {directory}",
                    log.display()
                ))
            }
        }
    }

    /// Waits until what the program has handed over is saved or given up; how the first daemon stands then.
    pub(super) fn settle(&mut self) -> Option<Status> {
        let deadline = now() + SAVING;
        loop {
            if self.look_after().is_err() {
                return None;
            }
            let statuses: Option<Vec<Status>> =
                (0..self.site.hosts.len()).map(|place| self.status(place)).collect();
            let is_quiet = |status: &Status| status.open.is_none() && status.handed.is_none();
            match statuses {
                Some(statuses) if statuses.iter().all(is_quiet) => {
                    return statuses.into_iter().next();
                }
                _ if now() > deadline => return None,
                _ => thread::park_timeout(LOOK_AGAIN),
            }
        }
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // They are told by the end of their input, and write down what is in memory.
        self.daemons.iter_mut().for_each(|daemon| drop(daemon.input.take()));
        let deadline = now() + if self.site.keeps_in_memory() { SAVING } else { ENDING };
        for daemon in &mut self.daemons {
            while matches!(daemon.child.try_wait(), Ok(None)) && now() < deadline {
                thread::park_timeout(LOOK_AGAIN);
            }
            drop(daemon.child.kill());
            drop(daemon.child.wait());
        }
    }
}
