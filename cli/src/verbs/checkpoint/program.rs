//! What a program that knows no library asks of its host's daemon: to save, to verify, to go on from there.

use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_checkpoint::daemon::{Answer as Told, Request, ask};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, bytes_text};
use serde_json::json;

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
    #[arg(long)]
    step: u64,
    /// File with the state of this host's part of the program
    #[arg(long, value_name = "FILE")]
    image: PathBuf,
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
    /// The daemon's directory
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// The file to write the image to
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Restart from this generation instead of the newest; give the same one on all hosts
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
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
    let request = Request::Save { run: args.run, step: args.step, image: absolute(&args.image)? };
    match asked(&args.directory, &request)? {
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

/// Writes the image of the newest generation.
pub(super) fn restart(args: &RestartArgs) -> Result<Answer, Failure> {
    let request = Request::Restore { to: absolute(&args.out)?, generation: args.generation };
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
