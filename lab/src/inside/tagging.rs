//! Hosts that tag their frames themselves: each is told so by `tc`, with the very text that an
//! administrator would give it.

use std::io;
use std::process::Stdio;

use super::commands;
use crate::blueprint::{Blueprint, Role};
use crate::protocol::Start;
use crate::system;

/// A host could not be told which frames to tag.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaggingError {
    /// The program could not be run.
    #[error("cannot run `tc` on `{host}` (Debian package iproute2)")]
    Run {
        /// The host whose frames were to be tagged.
        host: String,
        /// Why `tc` could not be started.
        #[source]
        source: io::Error,
    },
    /// It does not take the text.
    #[error("`tc` on `{host}` refuses its rules: {said}")]
    Refused {
        /// The host whose frames were to be tagged.
        host: String,
        /// Standard error of `tc`.
        said: String,
    },
}

/// Has every host that is to tag frames do so.
///
/// # Errors
/// [`TaggingError`] at the first host that cannot.
pub(super) fn set_up(blueprint: &Blueprint) -> Result<(), TaggingError> {
    for (_, space) in blueprint.hosts() {
        let Role::Host { rules: Some(rules), .. } = &space.role else { continue };
        let host = || space.name.clone();
        let batch = Start {
            space: Some(host()),
            command: ["tc", "-batch", "-"].map(str::to_owned).into(),
            environment: Vec::new(),
        };
        let said = system::file_of(c"rules", rules.as_bytes())
            .and_then(|input| commands::command(&batch)?.stdin(Stdio::from(input)).output())
            .map_err(|source| TaggingError::Run { host: host(), source })?;
        if !said.status.success() {
            let said = String::from_utf8_lossy(&said.stderr).trim().replace('\n', "; ");
            return Err(TaggingError::Refused { host: host(), said });
        }
    }
    Ok(())
}
