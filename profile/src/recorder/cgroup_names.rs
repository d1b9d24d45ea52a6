//! Control groups by their numbers, which are the inodes of their directories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Directories that are looked through at most: a host has some hundred.
const DIRECTORIES_MAX: usize = 20_000;

/// Names of the control groups that were met.
#[derive(Debug, Default)]
pub(super) struct CgroupNames {
    paths: BTreeMap<u64, String>,
    met: BTreeSet<u64>,
}

impl CgroupNames {
    /// The number and path of a control group that was not met before; one that is gone has no path.
    pub(super) fn met(&mut self, cgroup: u64) -> Option<(u64, String)> {
        if !self.met.insert(cgroup) {
            return None;
        }
        if !self.paths.contains_key(&cgroup) {
            self.paths = root().map(|root| paths_below(&root)).unwrap_or_default();
        }
        self.paths.get(&cgroup).map(|path| (cgroup, path.clone()))
    }

    /// Meets all of them anew.
    pub(super) fn forget_met(&mut self) {
        self.met.clear();
    }
}

/// Where the hierarchy of version 2 is mounted.
fn root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        after.starts_with("cgroup2 ").then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

fn paths_below(root: &Path) -> BTreeMap<u64, String> {
    let mut paths = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(facts) = fs::metadata(&directory) else { continue };
        let relative = directory.strip_prefix(root).unwrap_or(&directory);
        paths.insert(facts.ino(), format!("/{}", relative.display()));
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(directories.map(|entry| entry.path()).take(DIRECTORIES_MAX - open.len()));
        if paths.len() >= DIRECTORIES_MAX {
            break;
        }
    }
    paths
}
