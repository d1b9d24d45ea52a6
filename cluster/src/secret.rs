//! References to secrets, and the one place where a secret itself is read.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Secret;

/// The text is not a reference. The text itself is not repeated: it may be the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "secrets stand in the file by reference only; allowed are `env:NAME` (an environment \
     variable) and `file:PATH` (the first line of a file)"
)]
pub struct ParseSecretError;

/// Why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The environment variable is not there.
    #[error("the environment variable `{name}` is not set")]
    NotSet {
        /// Its name.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read the secret in `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("the secret in `{reference}` is empty")]
    Empty {
        /// The reference.
        reference: Secret,
    },
}

impl Secret {
    /// Reads the secret. Paths are relative to `base`, the directory of the cluster file
    /// ([`Cluster::base`](crate::Cluster::base)).
    ///
    /// # Errors
    /// If the variable or the file is not there, or holds nothing.
    pub fn read(&self, base: &Path) -> Result<String, SecretError> {
        let text = match self {
            Self::Env(name) => {
                env::var(name).map_err(|_| SecretError::NotSet { name: name.clone() })?
            }
            Self::File(path) => {
                let path = base.join(path);
                fs::read_to_string(&path).map_err(|source| SecretError::Read { path, source })?
            }
        };
        match text.lines().next().map(str::trim_end) {
            Some(secret) if !secret.is_empty() => Ok(secret.to_owned()),
            _ => Err(SecretError::Empty { reference: self.clone() }),
        }
    }
}

impl FromStr for Secret {
    type Err = ParseSecretError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("env", name)) if is_variable(name) => Ok(Self::Env(name.to_owned())),
            Some(("file", path)) if is_path(path) => Ok(Self::File(PathBuf::from(path))),
            _ => Err(ParseSecretError),
        }
    }
}

/// References stand between `<` and `>`, inside of quotes, in the lines for agents.
fn is_path(path: &str) -> bool {
    !path.is_empty() && !path.contains(|c: char| c.is_control() || "<>\"".contains(c))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl fmt::Display for Secret {
    /// The reference, never the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_references_are_secrets_and_the_error_does_not_repeat_the_text() {
        assert_eq!("env:A_1".parse(), Ok(Secret::Env("A_1".into())));
        assert_eq!("file:keys/auth".parse(), Ok(Secret::File("keys/auth".into())));
        for text in ["public", "env:", "env:1", "env:A B", "file:", "file:a\nb", "file:a>b", ""] {
            assert_eq!(text.parse::<Secret>(), Err(ParseSecretError), "{text}");
        }
        assert!(!ParseSecretError.to_string().contains("public"));
    }

    #[test]
    fn the_first_line_of_a_file_beside_the_cluster_file_is_the_secret() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("auth"), "correct horse \r\nrest\n").unwrap();
        fs::write(base.path().join("empty"), "\nx").unwrap();
        let read = |name: &str| Secret::File(name.into()).read(base.path());
        assert_eq!(read("auth").unwrap(), "correct horse");
        assert!(matches!(read("empty"), Err(SecretError::Empty { .. })));
        assert!(matches!(read("missing"), Err(SecretError::Read { .. })));
        let unset = Secret::Env("MEIKYO_TEST_NEVER_SET".into()).read(base.path());
        assert!(matches!(unset, Err(SecretError::NotSet { .. })));
    }
}
