//! Tokens: what stands in the token file, and how one is checked.
//!
//! The file holds Argon2id hashes (RFC 9106) in PHC form, one a line, so that reading it gives
//! nobody access. Checking one takes tens of milliseconds on purpose; a token that was right is
//! remembered by its SHA-256, and wrong ones are limited in number.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use axum::http::StatusCode;
use meikyo_units::{Nanos, WallTime};
use sha2::{Digest as _, Sha256};

use crate::errors::ApiError;
use crate::state::Shared;

/// Wrong tokens that are looked at in [`WINDOW`]; more are refused unseen.
const WRONG_MAX: usize = 20;
/// The span for which wrong tokens count.
const WINDOW: Nanos = Nanos::from_secs(60);
/// Right tokens that are remembered; a file has few.
const KNOWN_MAX: usize = 256;
/// Longest token in octets.
const TOKEN_BYTES_MAX: usize = 256;

/// The tokens that are taken.
#[derive(Debug)]
pub(crate) struct Tokens {
    hashes: Vec<String>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// SHA-256 of tokens that were right.
    right: BTreeSet<[u8; 32]>,
    /// When wrong ones were shown.
    wrong: Vec<WallTime>,
}

/// Why the token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The system refused.
    #[error("cannot read the token file `{path}`")]
    System {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is no hash.
    #[error("`{path}`:{line}: this is no Argon2 hash")]
    NoHash {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The file holds no hash.
    #[error("the token file `{path}` holds no hash")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The token cannot be hashed.
    #[error("the token cannot be hashed")]
    Hash,
}

impl Tokens {
    /// Reads a token file: a hash a line, `#` begins a comment.
    pub(crate) fn read(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::System { path: path.into(), source })?;
        let mut hashes = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let hash = text.trim();
            if hash.is_empty() || hash.starts_with('#') {
                continue;
            }
            if argon2::PasswordHash::new(hash).is_err() {
                return Err(TokenError::NoHash { path: path.into(), line });
            }
            hashes.push(hash.to_owned());
        }
        if hashes.is_empty() {
            return Err(TokenError::Empty { path: path.into() });
        }
        Ok(Self { hashes, seen: Mutex::default() })
    }

    /// Checks a token.
    pub(crate) async fn verify(&self, server: &Shared, token: &str) -> Result<(), ApiError> {
        let wrong = || ApiError::new(StatusCode::UNAUTHORIZED, "the token is wrong", "token");
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Err(wrong());
        }
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.right.contains(&digest) {
                return Ok(());
            }
            let now = WallTime::now();
            seen.wrong.retain(|at| now.since(*at) < WINDOW);
            if seen.wrong.len() >= WRONG_MAX {
                let text = format!("{WRONG_MAX} wrong tokens in {WINDOW}; wait a minute");
                let refused = ApiError::new(StatusCode::TOO_MANY_REQUESTS, text, "token");
                return Err(refused.retry_after(WINDOW));
            }
            // Counted before it is checked, so that many at once do not slip through.
            seen.wrong.push(now);
        }
        let (hashes, shown) = (self.hashes.clone(), token.to_owned());
        let right = server.blocking(move |_| Ok(is_one_of(&shown, &hashes))).await?;
        if !right {
            return Err(wrong());
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.wrong.pop();
        if seen.right.len() == KNOWN_MAX {
            seen.right.clear();
        }
        seen.right.insert(digest);
        Ok(())
    }
}

fn is_one_of(token: &str, hashes: &[String]) -> bool {
    let fits =
        |hash: &String| Argon2::default().verify_password(token.as_bytes(), hash.as_str()).is_ok();
    hashes.iter().any(fits)
}

/// A new token: 32 random octets as text.
pub fn make_token() -> String {
    random_text()
}

/// The hash of a token as it stands in the token file.
///
/// # Errors
/// When the token is longer than Argon2 takes.
pub fn hash_token(token: &str) -> Result<String, TokenError> {
    let salt = random_octets::<16>();
    let hash = Argon2::default().hash_password_with_salt(token.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|_| TokenError::Hash)
}

/// 32 random octets in hexadecimal.
pub(super) fn random_text() -> String {
    random_octets::<32>().iter().map(|octet| format!("{octet:02x}")).collect()
}

fn random_octets<const N: usize>() -> [u8; N] {
    let mut octets = [0; N];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut octets))
        .expect("Linux has /dev/urandom");
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_its_own_hash_only() {
        let token = make_token();
        assert_eq!(token.len(), 64);
        let hashes = [hash_token("another").unwrap(), hash_token(&token).unwrap()];
        assert!(hashes[1].starts_with("$argon2id$"));
        assert!(is_one_of(&token, &hashes));
        assert!(!is_one_of(&make_token(), &hashes));
    }

    #[test]
    fn a_file_without_hashes_is_refused_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::fs::write(&path, "# nobody\n\n").unwrap();
        assert!(matches!(Tokens::read(&path), Err(TokenError::Empty { .. })));
        std::fs::write(&path, "# plain\nsecret\n").unwrap();
        assert!(matches!(Tokens::read(&path), Err(TokenError::NoHash { line: 2, .. })));
        assert!(matches!(Tokens::read(dir.path()), Err(TokenError::System { .. })));
    }
}
