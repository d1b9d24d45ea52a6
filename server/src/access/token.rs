//! Tokens: what stands in the token file, and how one is checked.
//!
//! The file holds Argon2id hashes (RFC 9106) in PHC form, one a line, so that reading it gives
//! nobody access. A hash may stand behind what its token is for: `view`, which is meant without a
//! word, `jobs PATTERN,...`, which shows the samples of these jobs and users only, or
//! `ingest PATTERN,...`, which lets senders of these names send rows and nothing else. Checking one takes tens of milliseconds on purpose; a token that was right is
//! remembered by its SHA-256, and wrong ones are limited in number for each client, so that nobody
//! guesses at the cost of others. One token is checked at a time, beside the threads that read.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use axum::http::StatusCode;
use meikyo_units::{Nanos, WallTime};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, watch};

use super::rate::{Client, GUESSES_MAX, GUESSES_ROOM, Rates};
use crate::errors::ApiError;

/// Tokens that wait to be checked; further ones are told to come again.
const WAITING_MAX: usize = 256;
/// Right tokens that are remembered; a file has few.
const KNOWN_MAX: usize = 256;
/// Longest token in octets.
const TOKEN_BYTES_MAX: usize = 256;

/// The tokens that are taken.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: PathBuf,
    known: Mutex<Known>,
    guesses: Rates,
    waiting: Semaphore,
    checking: Semaphore,
    /// Tokens that are being checked, by their SHA-256: who shows one of them meanwhile waits for what
    /// comes of it. After the server was started a thousand senders show the same one.
    in_check: Mutex<BTreeMap<[u8; 32], Arc<Semaphore>>>,
    /// Told when a token is no longer taken.
    revoked: watch::Sender<()>,
}

/// A token that is taken, which stands for whoever showed it.
pub(crate) type Hash = Arc<Taken>;

/// What a line of the token file says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Taken {
    hash: String,
    pub(crate) role: Role,
}

/// What a token is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Everything that the page and the API show and do.
    View,
    /// The samples of these jobs and users, patterns, and no other rows.
    Jobs(Vec<String>),
    /// Sending rows, by senders whose names fit one of these patterns.
    Ingest(Vec<String>),
}

impl Taken {
    /// Reads a line of the token file; `None` when it ends with no hash, or begins with other words.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        let (hash, role) = match words[..] {
            [hash] | ["view", hash] => (hash, Role::View),
            ["jobs", patterns, hash] => (hash, Role::Jobs(patterns_of(patterns)?)),
            ["ingest", patterns, hash] => (hash, Role::Ingest(patterns_of(patterns)?)),
            _ => return None,
        };
        argon2::PasswordHash::new(hash).ok()?;
        Some(Self { hash: hash.to_owned(), role })
    }
}

/// The patterns of senders' names in a text, which commas separate; `None` when one is empty or holds
/// what no name can hold.
pub fn patterns_of(text: &str) -> Option<Vec<String>> {
    let is_of_name = |c: char| c.is_alphanumeric() || "-_.:@*?".contains(c);
    let fits = |pattern: &str| !pattern.is_empty() && pattern.chars().all(is_of_name);
    text.split(',').all(fits).then(|| text.split(',').map(str::to_owned).collect())
}

#[derive(Debug)]
struct Known {
    hashes: Arc<[Hash]>,
    /// The hash of each token that was right, by its SHA-256.
    right: BTreeMap<[u8; 32], Hash>,
    /// How many right tokens had to be compared with the hashes.
    checked: u64,
}

/// Why the token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The system refused.
    #[error("cannot read the token file `{path}`")]
    System {
        /// Token file that was to be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is no hash.
    #[error(
        "`{path}`:{line}: this is no Argon2 hash, nor one behind `view`, `jobs PATTERN,...` or \
         `ingest PATTERN,...`; a pattern has letters, digits, `-_.:@`, `*` and `?`"
    )]
    NoHash {
        /// Token file with that line.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The file holds no hash.
    #[error("the token file `{path}` holds no hash")]
    Empty {
        /// Token file without a hash.
        path: PathBuf,
    },
    /// The token cannot be hashed.
    #[error("the token cannot be hashed")]
    Hash,
}

impl Tokens {
    /// Reads a token file: a hash a line, `#` begins a comment.
    pub(crate) fn read(path: &Path) -> Result<Self, TokenError> {
        let hashes = read_hashes(path)?;
        Ok(Self {
            path: path.to_owned(),
            known: Mutex::new(Known { hashes, right: BTreeMap::new(), checked: 0 }),
            guesses: Rates::of_guesses(),
            waiting: Semaphore::new(WAITING_MAX),
            checking: Semaphore::new(1),
            in_check: Mutex::default(),
            revoked: watch::Sender::new(()),
        })
    }

    /// What stands in the file now; nothing is replaced yet.
    pub(crate) fn read_again(&self) -> Result<Arc<[Hash]>, TokenError> {
        read_hashes(&self.path)
    }

    /// Takes other tokens from now on. Who came with one that is gone is told to go.
    pub(crate) fn replace(&self, hashes: Arc<[Hash]>) {
        let mut known = self.known();
        let revoked = known.hashes.iter().any(|hash| !hashes.contains(hash));
        known.right.retain(|_, hash| hashes.contains(hash));
        known.hashes = hashes;
        drop(known);
        if revoked {
            self.revoked.send_replace(());
        }
    }

    /// Whether the token with this hash is still taken.
    pub(crate) fn takes(&self, hash: &Hash) -> bool {
        self.known().hashes.contains(hash)
    }

    /// Waits until the token with this hash is no longer taken.
    pub(crate) async fn revoked(&self, hash: &Hash) {
        let mut revoked = self.revoked.subscribe();
        while self.takes(hash) {
            if revoked.changed().await.is_err() {
                return;
            }
        }
    }

    /// Tokens that were refused unseen since the start.
    pub(crate) fn refused(&self) -> u64 {
        self.guesses.refused()
    }

    /// Checks a token that a client shows; its hash when it is right.
    pub(crate) async fn verify(&self, client: Client, token: &str) -> Result<Hash, ApiError> {
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Err(wrong());
        }
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(hash) = self.known_by(&digest) {
            return Ok(hash);
        }
        let same = Arc::clone(self.in_check().entry(digest).or_insert_with(one_at_a_time));
        let turn = same.acquire().await;
        // Somebody else may have shown it meanwhile.
        let verified = match self.known_by(&digest) {
            Some(hash) => Ok(hash),
            None => self.verify_unknown(client, token, digest).await,
        };
        self.in_check().remove(&digest);
        drop(turn);
        verified
    }

    /// Checks a token that nobody has shown before.
    async fn verify_unknown(
        &self,
        client: Client,
        token: &str,
        digest: [u8; 32],
    ) -> Result<Hash, ApiError> {
        let _waiting = self.waiting.try_acquire().map_err(|_| {
            let text = format!("{WAITING_MAX} tokens wait to be checked; ask again in a second");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text, "token").retry_after(Nanos::SECOND)
        })?;
        // Counted before it is checked, so that many at once do not slip through.
        self.guesses.charge(client, WallTime::now()).map_err(|wait| {
            let text = format!("{GUESSES_MAX} wrong tokens from this address in {GUESSES_ROOM}");
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, text, "token").retry_after(wait)
        })?;
        let turn = self.checking.acquire().await;
        let (shown, hashes) = (token.to_owned(), Arc::clone(&self.known().hashes));
        let checked = tokio::task::spawn_blocking(move || fitting(&shown, &hashes)).await;
        drop(turn);
        let hash = checked.map_err(|error| ApiError::internal(&error))?.ok_or_else(wrong)?;
        self.guesses.give_back(client);
        let mut known = self.known();
        known.checked += 1;
        // The file may have been read anew meanwhile.
        if !known.hashes.contains(&hash) {
            return Err(wrong());
        }
        if known.right.len() == KNOWN_MAX {
            known.right.clear();
        }
        known.right.insert(digest, Arc::clone(&hash));
        Ok(hash)
    }

    /// The hash of a token that was right before.
    fn known_by(&self, digest: &[u8; 32]) -> Option<Hash> {
        self.known().right.get(digest).map(Arc::clone)
    }

    fn in_check(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], Arc<Semaphore>>> {
        self.in_check.lock().expect("nothing that holds the turns can panic")
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nothing that holds the tokens can panic")
    }
}

fn read_hashes(path: &Path) -> Result<Arc<[Hash]>, TokenError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| TokenError::System { path: path.into(), source })?;
    let mut hashes = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let taken = Taken::parse(text);
        hashes
            .push(Hash::new(taken.ok_or_else(|| TokenError::NoHash { path: path.into(), line })?));
    }
    if hashes.is_empty() {
        return Err(TokenError::Empty { path: path.into() });
    }
    Ok(hashes.into())
}

fn wrong() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "the token is wrong", "token")
}

fn one_at_a_time() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}

/// The hash that a token fits.
fn fitting(token: &str, hashes: &[Hash]) -> Option<Hash> {
    let fits = |of: &&Hash| Argon2::default().verify_password(token.as_bytes(), &*of.hash).is_ok();
    hashes.iter().find(fits).cloned()
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

/// A token as the tests of sessions need one.
#[cfg(test)]
pub(crate) fn taken_for_viewing() -> Hash {
    Hash::new(Taken { hash: String::new(), role: Role::View })
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    #[test]
    fn a_token_fits_its_own_hash_only() {
        let token = make_token();
        assert_eq!(token.len(), 64);
        let taken = |token: &str| Hash::new(Taken::parse(&hash_token(token).unwrap()).unwrap());
        let hashes = ["another", &token].map(taken);
        assert!(hashes[1].hash.starts_with("$argon2id$"));
        assert_eq!(fitting(&token, &hashes).as_ref(), Some(&hashes[1]));
        assert_eq!(fitting(&make_token(), &hashes), None);
    }

    #[test]
    fn a_line_says_what_its_token_is_for() {
        let hash = hash_token("secret").unwrap();
        let role = |words: &str| Taken::parse(&format!("{words}{hash}")).map(|taken| taken.role);
        let ingest = Role::Ingest(vec!["node*".into(), "west:*".into()]);
        assert_eq!(role(""), Some(Role::View));
        assert_eq!(role("view "), Some(Role::View));
        assert_eq!(role("ingest node*,west:*  "), Some(ingest));
        let jobs = Role::Jobs(vec!["slurm:12*".into(), "user:1000".into()]);
        assert_eq!(role("jobs slurm:12*,user:1000 "), Some(jobs));
        assert_eq!(role("jobs "), None);
        for wrong in ["ingest ", "ingest , ", "write ", "ingest a b ", "ingest a/b ", "ingest a$ "]
        {
            assert_eq!(role(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_that_a_thousand_senders_show_at_once_is_checked_once() {
        let dir = tempfile::tempdir().unwrap();
        let (path, token) = (dir.path().join("tokens"), make_token());
        std::fs::write(&path, hash_token(&token).unwrap()).unwrap();
        let tokens = Arc::new(Tokens::read(&path).unwrap());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let verified = runtime.block_on(async {
            let mut senders = tokio::task::JoinSet::new();
            for _ in 0..1_000 {
                let (tokens, token) = (Arc::clone(&tokens), token.clone());
                // All of them behind one address.
                let client = Client::at([10, 0, 0, 1].into());
                senders.spawn(async move { tokens.verify(client, &token).await.is_ok() });
            }
            senders.join_all().await
        });
        assert_eq!(verified.iter().filter(|is_right| **is_right).count(), 1_000);
        assert_eq!(tokens.known().checked, 1);
        assert!(tokens.in_check().is_empty());
        // Wrong ones are counted each.
        let wrong = make_token();
        let guess = || runtime.block_on(tokens.verify(Client::at([10, 0, 0, 2].into()), &wrong));
        let refused = (0..100).filter(|_| guess().is_err()).count();
        assert!(refused == 100 && tokens.refused() > 0, "{}", tokens.refused());
    }

    #[test]
    fn what_waits_to_be_checked_and_what_is_remembered_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let (path, token) = (dir.path().join("tokens"), make_token());
        std::fs::write(&path, hash_token(&token).unwrap()).unwrap();
        let tokens = Arc::new(Tokens::read(&path).unwrap());
        let client = |number: usize| {
            let [.., high, low] = number.to_be_bytes();
            Client::at([10, 1, high, low].into())
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let turn = tokens.checking.acquire().await.unwrap();
            let mut guessing = tokio::task::JoinSet::new();
            for number in 0..WAITING_MAX {
                let tokens = Arc::clone(&tokens);
                guessing.spawn(async move { tokens.verify(client(number), &make_token()).await });
            }
            // On one thread, who yields often enough lets everybody else begin.
            for _ in 0..WAITING_MAX {
                tokio::task::yield_now().await;
            }
            let refused = tokens.verify(client(WAITING_MAX), &token).await.unwrap_err();
            assert_eq!(refused.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
            guessing.shutdown().await;
            drop(turn);
            let taken = Arc::clone(&tokens.known().hashes[0]);
            let remembered = (0..KNOWN_MAX).map(|number| {
                let digest: [u8; 32] = Sha256::digest(number.to_be_bytes()).into();
                (digest, Arc::clone(&taken))
            });
            tokens.known().right.extend(remembered);
            tokens.verify(client(0), &token).await.unwrap();
            assert_eq!(tokens.known().right.len(), 1, "it begins anew");
        });
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
