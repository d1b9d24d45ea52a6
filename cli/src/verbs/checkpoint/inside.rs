//! What is done on a host whose part of a program is captured as it is, by processes of their own in its container: the
//! program is kept together there, written by CRIU, and brought back.
//!
//! Whoever starts them on all hosts of a job ([`super::parts`]) reads what they say line by line, and answers with a line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use meikyo_checkpoint::capture::bundle::{self, Facts, IMAGES, Table};
use meikyo_checkpoint::capture::criu::{Criu, Standing};
use meikyo_checkpoint::capture::files;
use meikyo_checkpoint::capture::processes::{self, SHARED_MEMORY};
use meikyo_checkpoint::capture::under_way::{Started, UnderWay, under_way};
use meikyo_checkpoint::daemon::{Answer as Told, AskError, Request, ask};
use meikyo_console::failure::{self, Answer, Failure};
use meikyo_console::output;
use meikyo_spaces::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::role_names::{KEEP, REACH, WORDS};
use super::site::{ENDED, ERRORS, LAST_PROCESS, OUTPUT, PROCESS};

/// They are here, and nothing is stopped yet.
pub(super) const HERE: &str = "here";

/// Everything is written, and the program stands still.
pub(super) const DUMPED: &str = "dumped";

/// All hosts stand still, nothing is under way between them, and files that are saved by choice are copied.
pub(super) const WHOLE: &str = "whole";

/// It is not possible now, because of what is under way, which stands behind it.
pub(super) const LATER: &str = "later";

/// The daemon has taken it: so many octets, and how long the program stood still.
pub(super) const SAVED: &str = "saved";

/// What is brought back is known and lies ready: its generation, run and step.
pub(super) const READY: &str = "ready";

/// The program goes on.
pub(super) const RESTORED: &str = "restored";

/// Whoever runs the program is to know what stands behind it.
pub(super) const NOTED: &str = "noted";

/// It is not possible, because of what stands behind it.
pub(super) const FAILED: &str = "failed";

/// What they are told to go on.
pub(super) const ON: &str = "on";

/// In the directory of the host's daemon.
const CAPTURE: &str = "capture";

/// Daemons that rebuild something have so long for it.
const REBUILDING: Duration = Duration::from_secs(600);

/// Between two questions to a daemon that rebuilds something.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// By these, whoever starts a part of the program on another host finds the job of Slurm.
const OF_STEPS: [&str; 2] = ["SLURM_JOB_ID", "SLURM_CONF"];

/// A program that could not be started, as shells say it.
const NOT_STARTED: u8 = 127;

/// A part of the program that is kept together.
#[derive(Debug, Args)]
pub(super) struct KeepArgs {
    /// The job, if this is what was started first: its output and its end are noted there
    #[arg(long, conflicts_with = "said")]
    job: Option<PathBuf>,
    /// Where everything else writes to
    #[arg(long, required_unless_present = "job")]
    said: Option<PathBuf>,
    /// The program
    #[arg(last = true, required = true)]
    words: Vec<String>,
}

/// Whoever captures this host's part of a program, or brings it back.
#[derive(Debug, Args)]
pub(super) struct PartArgs {
    /// The program that captures
    #[arg(long)]
    criu: PathBuf,
    /// The directory of the host's daemon
    #[arg(long)]
    disk: PathBuf,
    /// Where the program writes what it says
    #[arg(long)]
    job: PathBuf,
    /// A capture: which start of the program it is of
    #[arg(long, default_value_t = 0)]
    run: u64,
    /// A capture: its number
    #[arg(long, default_value_t = 0)]
    step: u64,
    /// A capture: the port of daemons, whose connections are no part of it
    #[arg(long, default_value_t = 0)]
    daemons: u16,
    /// To bring back: this generation
    #[arg(long)]
    generation: Option<u64>,
    /// Files that are part of what is captured
    #[arg(long)]
    save_files: Vec<PathBuf>,
    /// This is the host that has them in its part
    #[arg(long)]
    first: bool,
}

/// Is the first process of a tree that is captured: it starts a program, takes in all that it leaves behind, and ends when
/// nothing of it is left.
pub(super) fn keep(args: &KeepArgs) -> Result<Answer, Failure> {
    process::close_inherited()?;
    process::adopt_descendants()?;
    // What ends the program is for the program: this notes how it ended.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let appended = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
    let (output, errors) = match (&args.job, &args.said) {
        (Some(job), _) => (appended(&job.join(OUTPUT))?, appended(&job.join(ERRORS))?),
        (None, Some(said)) => (appended(said)?, appended(said)?),
        (None, None) => return Err(Failure::new("nothing says where the program writes to")),
    };
    if let Some(job) = &args.job {
        noted(&job.join(PROCESS), &std::process::id().to_string())?;
    }
    let first = started(&args.words, output, errors.try_clone()?);
    let first = match first {
        Ok(first) => first,
        Err(error) => {
            writeln!(&errors, "cannot start `{}`: {error}", args.words.join(" "))?;
            return end(args, NOT_STARTED);
        }
    };
    drop(errors);
    while let Some(ended) = process::await_child() {
        if ended.id == first {
            end(args, ended.code)?;
        }
    }
    Ok(Answer::Yes)
}

#[expect(clippy::disallowed_methods, reason = "starts the program of a job")]
fn started(words: &[String], output: File, errors: File) -> io::Result<u32> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors);
    // A launcher that finds itself in a job of Slurm would start its processes there, outside of the containers.
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in
        variables.filter(|name| name.starts_with("SLURM") && !OF_STEPS.contains(&name.as_str()))
    {
        command.env_remove(name);
    }
    Ok(command.spawn()?.id())
}

fn end(args: &KeepArgs, code: u8) -> Result<Answer, Failure> {
    if let Some(job) = &args.job {
        noted(&job.join(ENDED), &code.to_string())?;
    }
    Ok(Answer::Exit(code))
}

/// Writes a file that is there as a whole or not at all.
fn noted(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path)
}

/// Where a part lies while it is captured or brought back.
struct Lying {
    /// Images of CRIU and shared memory.
    content: PathBuf,
    /// All of it as one file.
    image: PathBuf,
    /// Where everything lay in the last.
    table: PathBuf,
}

impl Lying {
    fn new(disk: &Path) -> Result<Self, Failure> {
        let home = disk.join(CAPTURE);
        let lying = Self {
            content: home.join("content"),
            image: home.join("image"),
            table: home.join("table"),
        };
        lying.clear()?;
        fs::create_dir_all(&lying.content)?;
        Ok(lying)
    }

    fn images(&self, root: u32) -> PathBuf {
        self.content.join(format!("{IMAGES}{root}"))
    }

    /// Files of the program that are saved by choice.
    fn files(&self) -> PathBuf {
        self.content.join("files")
    }

    fn memory(&self) -> PathBuf {
        self.content.join("memory")
    }

    /// What an earlier one has left, which may have been killed.
    fn clear(&self) -> io::Result<()> {
        for gone in [fs::remove_dir_all(&self.content), fs::remove_file(&self.image)] {
            match gone {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Captures this host's part of the program, and hands it to the daemon.
pub(super) fn capture(args: &PartArgs) -> Result<Answer, Failure> {
    match captured(args) {
        Ok(Some(found)) => {
            say(&format!("{LATER} {found}"))?;
            Ok(Answer::No)
        }
        captured => told(captured.map(drop)),
    }
}

/// Brings this host's part of the program back.
pub(super) fn bring_back(args: &PartArgs) -> Result<Answer, Failure> {
    told(brought_back(args))
}

fn told(result: Result<(), Failure>) -> Result<Answer, Failure> {
    match result {
        Ok(()) => Ok(Answer::Yes),
        Err(failure) => {
            let text = failure::render(&failure);
            let text: Vec<&str> = text.lines().map(str::trim).collect();
            let text = text.join("; ");
            say(&format!("{FAILED} {}", text.strip_prefix("error: ").unwrap_or(&text)))?;
            Ok(Answer::No)
        }
    }
}

fn say(line: &str) -> Result<(), Failure> {
    Ok(output::print(&format!("{line}\n"))?)
}

/// Waits for the word to go on.
fn is_told_on() -> Result<bool, Failure> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim() == ON)
}

fn given_up() -> Failure {
    Failure::new("it was given up, as it was not possible on all hosts")
}

/// What is under way on this host beside its connections that stand, and these trees.
fn found_under_way(args: &PartArgs, roots: &[u32]) -> io::Result<Option<UnderWay>> {
    let started =
        Started { kept: &[WORDS[0], WORDS[1], KEEP], reaching: &[WORDS[0], WORDS[1], REACH] };
    under_way(args.daemons, &started, roots)
}

/// Captures it, or says what is under way that has to pass first.
fn captured(args: &PartArgs) -> Result<Option<UnderWay>, Failure> {
    let lying = Lying::new(&args.disk)?;
    let criu = Criu::new(&args.criu);
    let kept = || processes::roots(&[WORDS[0], WORDS[1], KEEP]);
    // Nothing is stopped for what is seen to be in vain.
    if let Some(found) = found_under_way(args, &kept()?)? {
        return Ok(Some(found));
    }
    say(HERE)?;
    if !is_told_on()? {
        return Err(given_up());
    }
    let begun = now();
    let roots = kept()?;
    let mut standing = Vec::new();
    for &root in &roots {
        match criu.dump(root, &lying.images(root)) {
            Ok(written) => standing.push(written),
            Err(error) => match found_under_way(args, &roots)? {
                None => return Err(why(error.into(), &roots)),
                found => return Ok(found),
            },
        }
    }
    let all = processes::with_descendants(&roots)?;
    let facts = Facts {
        last: all.last().copied().unwrap_or_default(),
        written: processes::written(&all),
        roots,
    };
    bundle::copy_all(Path::new(SHARED_MEMORY), &lying.memory())?;
    say(DUMPED)?;
    let mut is_kept = is_told_on()?;
    if is_kept {
        // All hosts stand still: what one of them has begun is seen on whichever it is to go on.
        if let Some(found) = found_under_way(args, &facts.roots)? {
            return Ok(Some(found));
        }
        if args.first && !args.save_files.is_empty() {
            files::save(&args.save_files, &lying.files())?;
        }
        say(WHOLE)?;
        is_kept = is_told_on()?;
    }
    standing.into_iter().try_for_each(|standing: Standing| standing.go_on(is_kept))?;
    let stopped = begun.elapsed();
    if !is_kept {
        return Err(given_up());
    }
    // Without it, everything gets a place anew.
    let before = fs::read(&lying.table).ok().and_then(|octets| Table::read(&octets).ok());
    let table = bundle::pack(&lying.content, facts, before.as_ref(), &lying.image)?;
    fs::write(&lying.table, table.octets()?)?;
    let stopped_ns = u64::try_from(stopped.as_nanos())?;
    let image = lying.image.clone();
    let request =
        Request::Save { run: args.run, step: args.step, image, stopped_ns: Some(stopped_ns) };
    let bytes = match ask(&args.disk, &request)? {
        Told::Snapped { bytes } => bytes,
        Told::Refused(text) => return Err(Failure::new(text)),
        _ => return Err(Failure::new("the daemon has not taken the image")),
    };
    lying.clear()?;
    say(&format!("{SAVED} {bytes} {stopped_ns}"))?;
    Ok(None)
}

/// Why a capture has failed: what is known not to work is named with its remedy.
fn why(failure: Failure, roots: &[u32]) -> Failure {
    let Ok(all) = processes::with_descendants(roots) else { return failure };
    let found = processes::obstacles(&all);
    let Some((obstacle, process)) = found.first_key_value() else { return failure };
    let (what, remedy) = obstacle.remedy();
    let text = failure::render(&failure);
    let text = text.lines().next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    Failure::new(format!("{text}; process {process} has {what}")).hint(remedy)
}

fn brought_back(args: &PartArgs) -> Result<(), Failure> {
    let lying = Lying::new(&args.disk)?;
    let criu = Criu::new(&args.criu);
    let (generation, run, step) = fetched(args, &lying.image)?;
    let table = bundle::unpack(&lying.image, &lying.content)?;
    fs::write(&lying.table, table.octets()?)?;
    for entry in fs::read_dir(SHARED_MEMORY)? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    bundle::copy_all(&lying.memory(), Path::new(SHARED_MEMORY))?;
    if args.first {
        files::bring_back(&args.save_files, &lying.files())?;
    }
    let own = [args.job.join(OUTPUT), args.job.join(ERRORS)];
    let written = table.facts.written.iter();
    for file in written.filter(|file| !files::is_chosen(&args.save_files, &file.path)) {
        if own.contains(&file.path) {
            begin_again(file)?;
        } else if [OUTPUT, ERRORS].iter().any(|name| file.path.ends_with(name))
            && !file.path.exists()
        {
            let path = file.path.display();
            return Err(Failure::new(format!(
                "the program writes to `{path}`, which is not there"
            ))
            .hint(
                "a program that was captured as it is goes on in a job of the same --directory",
            ));
        } else {
            cut_off(file)?;
        }
    }
    say(&format!("{READY} {generation} {run} {step}"))?;
    if !is_told_on()? {
        return Err(given_up());
    }
    for &root in &table.facts.roots {
        criu.restore(&lying.images(root))?;
    }
    // What begins later gets numbers that are nobody's on another host, either.
    if !table.facts.roots.is_empty() {
        fs::write(LAST_PROCESS, table.facts.last.to_string())?;
    }
    say(RESTORED)?;
    Ok(lying.clear()?)
}

/// Has the daemon write the image of the generation that all hosts go on from; its number, run and step.
fn fetched(args: &PartArgs, image: &Path) -> Result<(u64, u64, u64), Failure> {
    let request = Request::Restore { to: image.to_owned(), generation: args.generation };
    let deadline = now() + REBUILDING;
    loop {
        match ask(&args.disk, &request) {
            Ok(Told::Restored { generation, run, step, .. }) => return Ok((generation, run, step)),
            Ok(Told::Refused(text)) if !text.ends_with("ask again") || now() > deadline => {
                return Err(Failure::new(text));
            }
            Ok(Told::Refused(_)) | Err(AskError::Unreachable { .. }) if now() < deadline => {
                thread::park_timeout(ASK_AGAIN);
            }
            Ok(_) => return Err(Failure::new("the daemon sent an unexpected answer")),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes back what the program has said since. What it said before may be gone with the disk that the job had.
fn begin_again(file: &processes::Written) -> Result<(), Failure> {
    let own = OpenOptions::new().create(true).truncate(false).write(true).open(&file.path)?;
    if own.metadata()?.len() < file.bytes {
        say(&format!(
            "{NOTED} what the program said before is not in `{}` any more",
            file.path.display()
        ))?;
    }
    Ok(own.set_len(file.bytes)?)
}

/// Takes back what was written to a file since.
fn cut_off(file: &processes::Written) -> Result<(), Failure> {
    let path = file.path.display();
    let lost = |what: &str| {
        Failure::new(format!(
            "`{path}` {what}, and the program had it open with {} octets",
            file.bytes
        ))
        .hint(
            "put it back as it was at the checkpoint: files outside of /dev/shm are no part of one",
        )
    };
    let length =
        fs::metadata(&file.path).map_err(|error| lost(&format!("cannot be read ({error})")))?.len();
    if length < file.bytes {
        return Err(lost(&format!("has only {length} octets")));
    }
    if !file.is_appended {
        say(&format!(
            "{NOTED} `{path}` is changed in place: what was written into it since the checkpoint stays (run --save-files saves such)"
        ))?;
    }
    OpenOptions::new().write(true).open(&file.path)?.set_len(file.bytes)?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "says how long a program stood still, and waits for a daemon"
)]
fn now() -> Instant {
    Instant::now()
}
