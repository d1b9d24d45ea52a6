//! A lab from its beginning to its end, as whoever commands it sees it.
#![expect(clippy::disallowed_methods, reason = "starts the keeper")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use meikyo_spaces::process;
use meikyo_units::Nanos;

use crate::blueprint::Blueprint;
use crate::client;
use crate::confinement;
use crate::directory::{self, CLUSTER, Directory, DirectoryError, KEEPER_LOG, Record};
use crate::engine::{self, Engine, EngineChoice, EngineError};
use crate::inside::{BLUEPRINT, ORDERS, Orders, Service};
use crate::protocol::Ready;
use crate::roles::Roles;
use crate::system::{self, Interest};

/// How long a keeper may take to end before it is killed: longer than it waits for the inside.
const END_PATIENCE: Nanos = Nanos::from_secs(10);
/// Memory of a machine of its own: the kernel and files that were read, and some for every space.
const MEMORY_MIB: u64 = 768;
const MEMORY_MIB_PER_SPACE: u64 = 8;

/// What is chosen about a lab beside its network.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Where the lab is kept.
    pub directory: Directory,
    /// The directory that can be written inside; `None` is one that goes with the lab.
    pub files: Option<PathBuf>,
    /// Directories and files that can be read inside beside the system's directories.
    pub read: Vec<PathBuf>,
    /// What to run on.
    pub engine: EngineChoice,
    /// Memory of a machine of its own, in MiB; `None` goes by the number of hosts and switches.
    pub memory_mib: Option<u64>,
    /// The cluster's name.
    pub name: String,
    /// The text of the cluster file. The lab keeps it: what is built does not change with the file.
    pub cluster_text: String,
    /// Programs that run in spaces as long as the lab.
    pub services: Vec<Service>,
    /// Files that are put into the writable directory: name and content.
    pub contents: Vec<(String, String)>,
}

/// A lab could not be brought up. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// There is nothing to run it on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Its keeper cannot be started.
    #[error("cannot start the process that keeps the lab")]
    Keeper(#[source] io::Error),
    /// It was started and did not come up.
    #[error("the lab did not start: {reason}{console}")]
    Failed {
        /// The error that the keeper reported.
        reason: String,
        /// The end of its console, from a new line, or nothing.
        console: String,
    },
}

/// What a lab would run on here.
///
/// # Errors
/// [`EngineError`] when nothing of what was asked for is there.
pub fn find_engine(choice: EngineChoice, roles: &Roles) -> Result<Engine, EngineError> {
    engine::choose(choice, this_program(roles, &roles.probe))
}

fn this_program(roles: &Roles, arguments: &[String]) -> Command {
    let mut command = Command::new(&roles.program);
    command.args(arguments);
    command
}

/// Brings a lab up and returns when everything in it is set up.
///
/// # Errors
/// [`UpError`]; nothing is left of the lab then.
pub fn up(blueprint: &Blueprint, roles: &Roles, options: &UpOptions) -> Result<Ready, UpError> {
    let engine = find_engine(options.engine, roles)?;
    let directory = &options.directory;
    let _alone = directory.alone()?;
    directory.make()?;
    let come = write_orders(blueprint, roles, options, engine)
        .and_then(|()| start_keeper(directory, roles));
    if come.is_err() {
        end_keeper(directory)?;
        directory.remove()?;
    }
    come
}

fn write_orders(
    blueprint: &Blueprint,
    roles: &Roles,
    options: &UpOptions,
    engine: Engine,
) -> Result<(), UpError> {
    let directory = &options.directory;
    let files = match &options.files {
        Some(files) => std::path::absolute(files)
            .and_then(std::fs::canonicalize)
            .ok()
            .filter(|path| path.is_dir())
            .ok_or_else(|| DirectoryError::NoFiles(files.clone()))?,
        None => directory.own_files(),
    };
    directory::plain(&files)?;
    let read = options.read.iter().map(|path| {
        let real = std::fs::canonicalize(path);
        real.map_err(|source| DirectoryError::Io { path: path.clone(), source })
    });
    let read = read.collect::<Result<Vec<_>, _>>()?;
    if let Some((taken, _)) = options.contents.iter().find(|(name, _)| files.join(name).exists()) {
        return Err(DirectoryError::Taken(files.join(taken)).into());
    }
    if let Some(path) = confinement::clash(&read, directory.path()) {
        return Err(DirectoryError::Shown(path).into());
    }
    if directory.path().starts_with(&files) {
        return Err(DirectoryError::Inside(files).into());
    }
    let cluster = directory.path().join(CLUSTER);
    let contents = options.contents.iter().map(|(name, content)| (files.join(name), content));
    for (path, content) in contents.chain([(cluster.clone(), &options.cluster_text)]) {
        // Never through a link, which somebody inside may have left there.
        let written =
            File::create_new(&path).and_then(|mut file| file.write_all(content.as_bytes()));
        written.map_err(|source| DirectoryError::Io { path, source })?;
    }
    let modules = match &engine {
        Engine::UserModeLinux { modules, .. } => Some(modules.clone()),
        Engine::Namespaces => None,
    };
    let orders = Orders {
        machine: engine != Engine::Namespaces,
        modules,
        files: files.clone(),
        read: read.clone(),
        services: options.services.clone(),
    };
    let switches = blueprint.switches().count();
    let spaces = blueprint.spaces.len() as u64;
    let usual = MEMORY_MIB + MEMORY_MIB_PER_SPACE * spaces;
    directory.write(BLUEPRINT, blueprint)?;
    directory.write(ORDERS, &orders)?;
    directory.write_record(&Record {
        name: options.name.clone(),
        cluster,
        engine,
        memory_mib: options.memory_mib.unwrap_or(usual),
        files,
        read,
        switches,
        hosts: blueprint.hosts().count(),
        asked_ns: directory::now_ns(),
        inside: roles.inside.clone(),
    })?;
    Ok(())
}

fn start_keeper(directory: &Directory, roles: &Roles) -> Result<Ready, UpError> {
    let log = File::create(directory.path().join(KEEPER_LOG)).map_err(UpError::Keeper)?;
    let mut keeper = this_program(roles, &roles.keeper)
        .arg(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .current_dir("/")
        .spawn()
        .map_err(UpError::Keeper)?;
    let output =
        keeper.stdout.take().ok_or_else(|| UpError::Keeper(io::ErrorKind::Other.into()))?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).map_err(UpError::Keeper)?;
    if let Ok(ready) = serde_json::from_str(&line) {
        return Ok(ready);
    }
    // It has ended or is about to; nothing of it is left when it has.
    keeper.wait().map_err(UpError::Keeper)?;
    let reason = line.trim().trim_start_matches('!');
    let reason = if reason.is_empty() { "its keeper ended".into() } else { reason.into() };
    Err(UpError::Failed { reason, console: console_end(directory) })
}

/// The last lines that the kernel and the keeper said.
fn console_end(directory: &Directory) -> String {
    let mut end = String::new();
    for name in [directory::CONSOLE, KEEPER_LOG] {
        let bytes = std::fs::read(directory.path().join(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in lines.iter().skip(lines.len().saturating_sub(5)) {
            end.push_str("\n  ");
            end.push_str(line.trim_end());
        }
    }
    end
}

/// Ends a lab and takes away what is left of it, also when its keeper is gone.
///
/// Returns whether there was anything.
///
/// # Errors
/// [`DirectoryError`] if something cannot be taken away.
pub fn down(directory: &Directory) -> Result<bool, DirectoryError> {
    let was_there = directory.is_of_a_lab();
    end_keeper(directory)?;
    if was_there {
        directory.remove()?;
    }
    Ok(was_there)
}

/// Ends the keeper, and with it everything inside.
fn end_keeper(directory: &Directory) -> Result<(), DirectoryError> {
    let Some(keeper) = directory.keeper() else { return Ok(()) };
    let failed = |source| DirectoryError::Io { path: directory.path().into(), source };
    let Ok(handle) = process::process_handle(keeper.process) else { return Ok(()) };
    // Only now is it sure that the handle is of the process that was written down.
    if directory.keeper().as_ref() != Some(&keeper) {
        return Ok(());
    }
    let interest = [Interest { fd: handle.as_fd(), read: true, write: false }];
    if client::ask_to_end(directory).is_ok() {
        let ended = system::wait(&interest, Some(END_PATIENCE)).map_err(failed)?;
        if ended.iter().any(|ready| ready.read) {
            return Ok(());
        }
    }
    process::kill(&handle).map_err(failed)?;
    system::wait(&interest, None).map_err(failed).map(drop)
}

/// The labs of this user that run, wherever their directories are, in no order that means anything.
pub fn running(roles: &Roles) -> Vec<(Directory, Record)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let lab = |process: std::fs::DirEntry| {
        if process.metadata().ok()?.uid() != system::user().0 {
            return None;
        }
        let line = std::fs::read(process.path().join("cmdline")).ok()?;
        let line = line.strip_suffix(&[0])?;
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).skip(1).collect();
        let (path, role) = words.split_last()?;
        let is_keeper = role.iter().copied().eq(roles.keeper.iter().map(String::as_bytes));
        let directory = Directory::at(Path::new(OsStr::from_bytes(path))).ok()?;
        let id: u32 = process.file_name().to_str()?.parse().ok()?;
        // Somebody may call any process like that.
        let keeps = is_keeper && directory.keeper().is_some_and(|keeper| keeper.process == id);
        keeps.then(|| directory.record().ok().map(|record| (directory, record))).flatten()
    };
    processes.filter_map(lab).collect()
}

/// Who runs this process.
pub fn user() -> u32 {
    system::user().0
}

/// Whether a path lies in the writable directory of a lab.
pub fn is_writable_inside(record: &Record, path: &Path) -> bool {
    path.starts_with(&record.files)
}
