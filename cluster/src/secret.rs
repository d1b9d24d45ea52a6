//! References to secrets, and the one place where a secret itself is read.

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use zeroize::Zeroizing;

use crate::Secret;

/// Octets of a secret in a file, its line end included.
const OCTETS_MAX: usize = 4_096;

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
        /// The name of the variable.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read the secret in `{path}`")]
    Read {
        /// The file that the reference names.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// Its line does not end.
    #[error("the secret in `{path}` has more than {} octets", OCTETS_MAX - 1)]
    TooLong {
        /// The file that the reference names.
        path: PathBuf,
    },
    /// There is nothing in it.
    #[error("the secret in `{reference}` is empty")]
    Empty {
        /// The reference to what is empty.
        reference: Secret,
    },
}

impl Secret {
    /// Reads the secret. Paths are relative to `base`, the directory of the cluster file
    /// ([`Cluster::base`](crate::Cluster::base)). The text is wiped when it is dropped, and no other
    /// copy is left behind; what stands in the environment stays there.
    ///
    /// # Errors
    /// If the variable or the file is not there, or holds nothing, or too much.
    pub fn read(&self, base: &Path) -> Result<Zeroizing<String>, SecretError> {
        let secret = match self {
            Self::Env(name) => {
                let not_set = |_| SecretError::NotSet { name: name.clone() };
                trimmed(&Zeroizing::new(env::var(name).map_err(not_set)?))
            }
            Self::File(path) => first_line(&base.join(path))?,
        };
        if secret.is_empty() {
            return Err(SecretError::Empty { reference: self.clone() });
        }
        Ok(secret)
    }
}

/// The first line without the white space at its end.
fn trimmed(text: &str) -> Zeroizing<String> {
    Zeroizing::new(text.lines().next().unwrap_or_default().trim_end().to_owned())
}

/// The first line of a file. It is read into one buffer that does not grow: growing would leave
/// copies in memory that nobody can wipe.
fn first_line(path: &Path) -> Result<Zeroizing<String>, SecretError> {
    let failed = |source| SecretError::Read { path: path.to_owned(), source };
    let mut file = fs::File::open(path).map_err(failed)?;
    let mut octets = Zeroizing::new([0; OCTETS_MAX]);
    let mut length = 0;
    let end = loop {
        if let Some(end) = octets[..length].iter().position(|octet| *octet == b'\n') {
            break end;
        }
        if length == OCTETS_MAX {
            return Err(SecretError::TooLong { path: path.to_owned() });
        }
        match file.read(&mut octets[length..]) {
            Ok(0) => break length,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    };
    let text = std::str::from_utf8(&octets[..end]);
    let text = text.map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    Ok(trimmed(text))
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
        assert_eq!(read("auth").unwrap().as_str(), "correct horse");
        fs::write(base.path().join("longest"), "x".repeat(OCTETS_MAX - 1) + "\nrest").unwrap();
        assert_eq!(read("longest").unwrap().len(), OCTETS_MAX - 1);
        fs::write(base.path().join("endless"), "x".repeat(OCTETS_MAX)).unwrap();
        assert!(matches!(read("endless"), Err(SecretError::TooLong { .. })));
        fs::write(base.path().join("no text"), [0xff, 0xfe, b'\n']).unwrap();
        assert!(matches!(read("no text"), Err(SecretError::Read { .. })));
        assert!(matches!(read("empty"), Err(SecretError::Empty { .. })));
        assert!(matches!(read("missing"), Err(SecretError::Read { .. })));
        let unset = Secret::Env("MEIKYO_TEST_NEVER_SET".into()).read(base.path());
        assert!(matches!(unset, Err(SecretError::NotSet { .. })));
    }
}
