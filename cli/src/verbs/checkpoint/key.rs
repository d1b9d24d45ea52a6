//! `meikyo checkpoint key`: the key of a job.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use clap::Args;
use meikyo_checkpoint::tls::JobKey;
use meikyo_console::failure::{Answer, Failure};

/// Where the key goes.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The file, which must not exist yet
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Makes a key.
pub(super) fn run(args: &KeyArgs) -> Result<Answer, Failure> {
    let path = args.out.display();
    let mut file = OpenOptions::new();
    let file = file.write(true).create_new(true).mode(0o600).open(&args.out);
    let mut file = file.map_err(|error| {
        Failure::new(format!("cannot make `{path}`: {error}")).hint(match error.kind() {
            ErrorKind::AlreadyExists => "a key is never replaced: remove the file, or name another",
            _ => "name a file in a directory that you may write to",
        })
    })?;
    file.write_all(&JobKey::generate()?)?;
    file.sync_all()?;
    Ok(Answer::Yes)
}
