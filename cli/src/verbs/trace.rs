//! `meikyo trace -- mpirun ...`: what the ranks of a program ask of MPI, written down so that it can be
//! replayed on other fabrics.

pub(crate) mod files;
mod otf2;
mod recorder;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_mpi::compiler;
use serde::Serialize;

/// Record what an MPI program sends and computes, for `fabric predict` to replay
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The directory to write: a file for each rank, and `ranks.txt` with their names. It must not
    /// hold a trace already
    #[arg(long, value_name = "DIR", default_value = "trace")]
    out: PathBuf,
    /// The compiler of the MPI that the program uses [default: the one that belongs to the command]
    #[arg(long, value_name = "MPICC")]
    mpicc: Option<PathBuf>,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
    /// Turn what Score-P or another tool recorded in OTF2 into a trace instead: the file of the archive that
    /// ends in `.otf2`
    #[arg(long, value_name = "FILE", conflicts_with = "mpicc")]
    from_otf2: Option<PathBuf>,
    /// The command that starts the ranks, with its arguments
    #[arg(
        last = true,
        required_unless_present = "from_otf2",
        conflicts_with = "from_otf2",
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// What a trace came to.
#[derive(Debug, Serialize)]
struct Summary {
    schema: &'static str,
    trace: PathBuf,
    ranks: usize,
    calls: usize,
    bytes: u64,
    bytes_per_call: f64,
}

/// Has a trace written, and reads it back.
pub(crate) fn run(args: &TraceArgs) -> Result<Answer, Failure> {
    let list = args.out.join(files::LIST);
    if list.exists() {
        let there = format!("there is a trace in `{}` already", args.out.display());
        return Err(Failure::new(there).hint("name another directory with --out"));
    }
    if let Some(archive) = &args.from_otf2 {
        otf2::look_for(archive)?;
    }
    std::fs::create_dir_all(&args.out)
        .map_err(|error| Failure::new(format!("cannot make `{}`: {error}", args.out.display())))?;
    let directory = args.out.canonicalize()?;
    if let Some(archive) = &args.from_otf2 {
        let (written, notes) = otf2::import(archive, &directory)?;
        notes.iter().for_each(|note| output::say(&format!("meikyo: {note}")));
        files::list(&directory, &written)?;
        let told = tell(args, &directory, &written);
        if told.is_err() {
            // There is no trace, and the next attempt is not refused because of this one.
            std::fs::remove_file(list)?;
        }
        return told.map(|()| Answer::Yes);
    }
    let (status, written) = recorded(args, &directory)?;
    let code = code_of(status);
    if code != 0 {
        output::say(&format!("meikyo: the command ended with {code}: its trace may be cut off"));
    }
    tell(args, &directory, &written)?;
    Ok(if code == 0 { Answer::Yes } else { Answer::Exit(code) })
}

/// Runs the program with the recorder in it; how it ended, and what its ranks wrote.
fn recorded(args: &TraceArgs, directory: &Path) -> Result<(ExitStatus, Vec<PathBuf>), Failure> {
    let mpicc = args.mpicc.clone().unwrap_or_else(|| compiler::of_command(&args.command[0]));
    // Built anew for each trace: it takes a second, and the MPI at hand may be another one.
    let built = tempfile::tempdir_in(directory)?;
    let library = recorder::build(&mpicc, built.path())?;
    let status = started(args, &library, directory)?;
    built.close()?;
    let written = files::list_ranks(directory)?;
    if written.is_empty() {
        return Err(Failure::new("no rank wrote anything").hint(format!(
            "was the program linked with the MPI of `{}`, as a shared library? name another with --mpicc; \
             on other machines, `{}` must be the same directory",
            mpicc.display(),
            directory.display(),
        )));
    }
    Ok((status, written))
}

/// Reads back what was written, and says what it came to.
fn tell(args: &TraceArgs, directory: &Path, written: &[PathBuf]) -> Result<(), Failure> {
    let trace = files::read(directory)?;
    let bytes =
        written.iter().map(|file| Ok(file.metadata()?.len())).sum::<std::io::Result<u64>>()?;
    let calls = trace.calls();
    #[expect(clippy::cast_precision_loss, reason = "a quotient that is printed")]
    let bytes_per_call = bytes as f64 / calls.max(1) as f64;
    let summary = Summary {
        schema: "meikyo.trace/1",
        trace: args.out.clone(),
        ranks: trace.ranks(),
        calls,
        bytes,
        bytes_per_call,
    };
    if args.json {
        output::print_json(&summary)?;
    } else {
        let Summary { ranks, calls, bytes, .. } = summary;
        let text = format!(
            "{ranks} ranks, {calls} calls, {bytes} bytes in {0}\n\
             replay it: meikyo fabric predict --cluster FILE --program trace:{0}\n",
            args.out.display()
        );
        output::print(&text)?;
    }
    Ok(())
}

/// Runs the command to its end.
#[expect(clippy::disallowed_methods, reason = "the program that is traced")]
fn started(args: &TraceArgs, library: &Path, directory: &Path) -> Result<ExitStatus, Failure> {
    let [program, arguments @ ..] = args.command.as_slice() else {
        unreachable!("the command line asks for one");
    };
    let mut preloaded = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preloaded.push(":");
        preloaded.push(others);
    }
    let status = Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", preloaded)
        .env("MEIKYO_TRACE_DIR", directory)
        .status();
    status.map_err(|error| {
        Failure::new(format!("cannot start `{}`: {error}", program.display()))
            .hint("meikyo trace -- mpirun -n 4 ./program")
    })
}

/// As a shell tells it.
fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2)
}
