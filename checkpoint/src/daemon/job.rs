//! A job: which hosts, where they listen, how they protect each other, and the file of their key.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use meikyo_units::Bytes;
use serde::Deserialize;

use super::rules::{DiskRules, MemoryRules, Rules};
use crate::geometry::{BLOCK_DEFAULT, BLOCK_MAX, BLOCK_MIN, GeometryError};
use crate::layout::{Layout, LayoutError, ParseSchemeError, Scheme};
use crate::tls::{JobKey, KeyError};

/// Why a job cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JobFileError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not written as it must be.
    #[error("`{path}` is no job")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        source: Box<toml::de::Error>,
    },
    /// Its scheme is none.
    #[error(transparent)]
    Scheme(#[from] ParseSchemeError),
    /// Its hosts cannot be protected so.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Its blocks are not possible.
    #[error(transparent)]
    Block(#[from] GeometryError),
    /// A host does not have as many addresses as the first.
    #[error(
        "`{host}` has {addresses} addresses, and the first host {expected}: every host has one per link"
    )]
    Addresses {
        /// The host's name as the file has it.
        host: String,
        /// How many it has.
        addresses: usize,
        /// How many it should have.
        expected: usize,
    },
    /// Two hosts cannot be told from each other.
    #[error("`{what}` stands in the file for two hosts")]
    Twice {
        /// The name or address.
        what: String,
    },
    /// The key can be read by others.
    #[error("`{path}` can be read by others: `chmod 600` it")]
    OpenKey {
        /// The file.
        path: PathBuf,
    },
    /// The key is none.
    #[error("`{path}` holds no key")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KeyError,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    scheme: String,
    block: Option<Bytes>,
    key: PathBuf,
    #[serde(default)]
    memory: MemoryRules,
    #[serde(default)]
    disk: DiskRules,
    hosts: Vec<HostText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostText {
    name: String,
    addresses: Vec<SocketAddr>,
}

/// What a job's file says, checked, with its key.
#[derive(Debug, Clone)]
pub struct JobFile {
    layout: Layout,
    block: u32,
    key: JobKey,
    names: Vec<String>,
    addresses: Vec<Vec<SocketAddr>>,
    rules: Rules,
}

impl JobFile {
    /// Reads a job's file and its key.
    ///
    /// # Errors
    /// When one of them cannot be read, or is not as it must be.
    pub fn load(path: &Path) -> Result<Self, JobFileError> {
        let read = |source| JobFileError::Read { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(read)?;
        let text: Text = toml::from_str(&text).map_err(|source| JobFileError::Form {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let scheme: Scheme = text.scheme.parse()?;
        let layout = Layout::new(scheme, text.hosts.len())?;
        let block = text.block.map_or(Ok(BLOCK_DEFAULT), |block| u32::try_from(block.get()));
        let block = block.unwrap_or(u32::MAX);
        if !(BLOCK_MIN..=BLOCK_MAX).contains(&block) || !block.is_multiple_of(BLOCK_MIN) {
            return Err(GeometryError::Block(block).into());
        }
        let expected = text.hosts.first().map_or(1, |host| host.addresses.len());
        let expected = expected.clamp(1, usize::from(u8::MAX));
        if let Some(host) = text.hosts.iter().find(|host| host.addresses.len() != expected) {
            let (host, addresses) = (host.name.clone(), host.addresses.len());
            return Err(JobFileError::Addresses { host, addresses, expected });
        }
        let names = text.hosts.iter().map(|host| host.name.clone());
        let addresses =
            text.hosts.iter().flat_map(|host| &host.addresses).map(SocketAddr::to_string);
        let mut seen = BTreeSet::new();
        if let Some(what) = names.chain(addresses).find(|what| !seen.insert(what.clone())) {
            return Err(JobFileError::Twice { what });
        }
        let key = load_key(&path.parent().unwrap_or_else(|| Path::new("")).join(text.key))?;
        let (names, addresses) =
            text.hosts.into_iter().map(|host| (host.name, host.addresses)).unzip();
        let rules = Rules { memory: text.memory, disk: text.disk };
        Ok(Self { layout, block, key, names, addresses, rules })
    }

    /// The group's geometry.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Octets of a block.
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// The key that all hosts have.
    pub const fn key(&self) -> &JobKey {
        &self.key
    }

    /// The hosts' names, by place.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Where generations are kept, how many, and for how long, as far as the file says so.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// A number that follows from what must be the same on all hosts: scheme, block, and the hosts' names in
    /// their order.
    pub fn digest(&self) -> u32 {
        let text = format!("{} {} {:?}", self.layout.scheme(), self.block, self.names);
        crc32fast::hash(text.as_bytes())
    }

    /// Where each host listens: one address per link.
    pub fn addresses(&self) -> &[Vec<SocketAddr>] {
        &self.addresses
    }
}

fn load_key(path: &Path) -> Result<JobKey, JobFileError> {
    use std::os::unix::fs::PermissionsExt as _;
    let read = |source| JobFileError::Read { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(read)?.permissions().mode() & 0o077 != 0 {
        return Err(JobFileError::OpenKey { path: path.to_owned() });
    }
    let octets = std::fs::read(path).map_err(read)?;
    JobKey::from_pkcs8(&octets)
        .map_err(|source| JobFileError::Key { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use meikyo_units::Nanos;

    use super::*;

    fn load(job: &str, mode: u32) -> Result<JobFile, JobFileError> {
        let home = tempfile::tempdir().unwrap();
        let key = home.path().join("job.key");
        fs::write(&key, JobKey::generate().unwrap()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let path = home.path().join("job.toml");
        fs::write(&path, job).unwrap();
        JobFile::load(&path)
    }

    #[test]
    fn the_example_is_a_job_and_its_key_must_be_the_owners_only() {
        let example = include_str!("../../../examples/checkpoint-job.toml");
        let job = load(example, 0o600).unwrap();
        assert_eq!(job.names(), ["node1", "node2", "node3"]);
        assert_eq!((job.layout().scheme(), job.block()), (Scheme::Ring, 256 << 10));
        assert!(job.addresses().iter().all(|links| links.len() == 2));
        let levels = job.rules().clone().options(Nanos::from_secs(1)).unwrap();
        assert_eq!((levels.memory.map(|memory| memory.room), levels.keep.disk), (None, 3));
        let with_memory = example.replace("# [memory]", "[memory]").replace("# room", "room");
        let job = load(&with_memory, 0o600).unwrap();
        assert_eq!(job.rules().memory.room, Some(Bytes::new(8 << 30)));
        let refused = load(example, 0o644).unwrap_err();
        assert!(refused.to_string().ends_with("can be read by others: `chmod 600` it"));
    }

    #[test]
    fn a_job_that_cannot_be_is_refused_with_what_is_wrong() {
        let host = "[[hosts]]\nname = \"a\"\naddresses = [\"10.0.0.1:1\"]\n";
        let same = "[[hosts]]\nname = \"b\"\naddresses = [\"10.0.0.1:1\"]\n";
        let two_of = |name| format!("[[hosts]]\nname = \"{name}\"\naddresses = [\"10.0.0.2:1\"]\n");
        let two = format!("[[hosts]]\nname = \"b\"\naddresses = []\n{host}");
        for (text, told) in [
            (format!("scheme = \"ring\"\nkey = \"job.key\"\n{host}{host}"), "at least 3 hosts"),
            (format!("scheme = \"raid\"\nkey = \"job.key\"\n{host}"), "`raid` is not a scheme"),
            (format!("scheme = \"partner\"\nkey = \"job.key\"\nx = 1\n{host}"), "is no job"),
            (format!("scheme = \"partner\"\nkey = \"none\"\n{host}"), "at least 2 hosts"),
            (format!("scheme = \"partner\"\nkey = \"none\"\n{host}{}", two_of("b")), "cannot read"),
            (format!("scheme = \"partner\"\nkey = \"job.key\"\n{host}{host}"), "`a` stands in"),
            (
                format!("scheme = \"partner\"\nkey = \"job.key\"\n{host}{same}"),
                "`10.0.0.1:1` stands",
            ),
            (format!("scheme = \"partner\"\nkey = \"job.key\"\n{two}"), "`b` has 0 addresses"),
        ] {
            let error = load(&text, 0o600).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
