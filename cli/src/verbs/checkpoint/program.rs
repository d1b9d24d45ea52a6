//! What a program that knows no library asks of its host's daemon: to save, to verify, to go on from there.

use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_checkpoint::daemon::{Answer as Told, Request, ask};
use meikyo_checkpoint::drain;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, bytes_text};
use serde_json::json;

use super::run;

/// What is handed over.
#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// The daemon's directory
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Number of this start of the program: the same on all hosts, and greater at each restart
    #[arg(long, default_value_t = 0, env = "MEIKYO_CHECKPOINT_RUN")]
    run: u64,
    /// The program's own number of the step, the same on all hosts
    #[arg(long, required_unless_present = "drained")]
    step: Option<u64>,
    /// File with the state of this host's part of the program
    #[arg(long, value_name = "FILE", required_unless_present = "drained")]
    image: Option<PathBuf>,
    /// Instead of both, this host's file of a checkpoint that was copied to a shared file system (`daemon --drain`)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["step", "image", "run"])]
    drained: Option<PathBuf>,
}

/// Whose newest generation is verified, and how it is told.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The daemon's directory
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What is gone on from.
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// The directory of the job; with --out, that of the host's daemon
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Only write this host's image to this file, for a program that is started in another way
    #[arg(long, value_name = "FILE", conflicts_with_all = ["on", "command"])]
    out: Option<PathBuf>,
    /// Restart from this generation instead of the newest; with --out, give the same one on all hosts
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
    /// Continue on these hosts, as many as before: those that stay keep their places, and what the others lack
    /// is rebuilt
    #[arg(long, value_name = "HOSTS")]
    on: Option<String>,
    /// Print one JSON document
    #[arg(long, requires = "out")]
    json: bool,
    /// Start this in place of the command that `run` was given, for example with another number of ranks
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Asks a daemon; what it refuses is a failure.
pub(super) fn asked(directory: &Path, request: &Request) -> Result<Told, Failure> {
    let told = ask(directory, request).map_err(|error| {
        let directory = directory.display();
        Failure::new(error).hint(format!(
            "meikyo checkpoint daemon --directory {directory} --job FILE --host NAME"
        ))
    })?;
    match told {
        Told::Refused(text) => Err(Failure::new(text)
            .hint(format!("meikyo checkpoint status --directory {}", directory.display()))),
        told => Ok(told),
    }
}

fn unexpected<T>() -> Result<T, Failure> {
    Err(Failure::new("the daemon sent an unexpected answer"))
}

/// A path that means the same to the daemon, which runs in another directory.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    Ok(std::path::absolute(path)?)
}

/// Hands a step over.
pub(super) fn save(args: &SaveArgs) -> Result<Answer, Failure> {
    let (Some(step), Some(image)) = (args.step, &args.image) else { return save_drained(args) };
    let request = Request::Save { run: args.run, step, image: absolute(image)?, stopped_ns: None };
    match asked(&args.directory, &request)? {
        Told::Snapped { .. } => Ok(Answer::Yes),
        _ => unexpected(),
    }
}

/// Hands over what was drained, once every block of it has been compared with its checksum.
fn save_drained(args: &SaveArgs) -> Result<Answer, Failure> {
    let from = args.drained.as_ref().ok_or_else(|| Failure::new("nothing is handed over"))?;
    let image = absolute(&args.directory)?.join("drained");
    let saved = drain::restore(from, &image).map_err(Failure::from).and_then(|reached| {
        let (run, step, image) = (reached.run, reached.step, image.clone());
        asked(&args.directory, &Request::Save { run, step, image, stopped_ns: None })
    });
    // The daemon has read it, or nobody will.
    drop(std::fs::remove_file(&image));
    match saved? {
        Told::Snapped { .. } => Ok(Answer::Yes),
        _ => unexpected(),
    }
}

/// Verifies the newest generation; the answer is no when a block is damaged.
pub(super) fn verify(args: &VerifyArgs) -> Result<Answer, Failure> {
    let Told::Verified { generation, damaged_blocks } = asked(&args.directory, &Request::Verify)?
    else {
        return unexpected();
    };
    if args.json {
        output::print_json(&json!({
            "schema": "meikyo.checkpoint.verify/1",
            "generation": generation,
            "damaged_blocks": damaged_blocks,
        }))?;
    } else {
        output::print(&format!("generation {generation}: {damaged_blocks} damaged blocks\n"))?;
    }
    Ok(if damaged_blocks == 0 { Answer::Yes } else { Answer::No })
}

/// Goes on with a job, or writes the image of the newest generation.
pub(super) fn restart(args: &RestartArgs) -> Result<Answer, Failure> {
    let Some(out) = &args.out else {
        return run::restart(&run::Again {
            directory: &args.directory,
            generation: args.generation,
            on: args.on.as_deref(),
            command: &args.command,
        });
    };
    let request = Request::Restore { to: absolute(out)?, generation: args.generation };
    let Told::Restored { generation, run, step, bytes } = asked(&args.directory, &request)? else {
        return unexpected();
    };
    if args.json {
        output::print_json(&json!({
            "schema": "meikyo.checkpoint.restart/1",
            "generation": generation,
            "run": run,
            "step": step,
            "bytes": bytes,
        }))?;
    } else {
        let amount = bytes_text(bytes);
        output::print(&format!("generation {generation}, step {step}: {amount}\n"))?;
    }
    Ok(Answer::Yes)
}
