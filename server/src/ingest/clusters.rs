//! The recordings of clusters whose collectors send from afar.
//!
//! Each cluster has a recording of its own, `DIR/clusters/NAME`, below the directory of `--ingest`:
//! devices of two clusters may have the same name, and a recording has one source. What a sender may
//! write is decided by the transport, which compares the cluster with the sender's name and its token.

use std::fs;
use std::path::{Path, PathBuf};

use meikyo_recording::format;

/// The directory of all of them.
const DIRECTORY: &str = "clusters";

/// Where the recording of a cluster lies; `None` is the one that is not of a cluster.
pub(crate) fn dir_of(dir: &Path, cluster: Option<&str>) -> PathBuf {
    cluster.map_or_else(|| dir.to_path_buf(), |name| dir.join(DIRECTORY).join(name))
}

/// The cluster whose recording lies there.
pub(crate) fn name_of<'a>(dir: &Path, recording: &'a Path) -> Option<&'a str> {
    recording.strip_prefix(dir.join(DIRECTORY)).ok()?.to_str()
}

/// The recordings of clusters that were taken below a directory of `--ingest`, in the order of their names.
///
/// # Errors
/// When the directory cannot be read; that there is none is no error.
pub fn found(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir.join(DIRECTORY)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.join(format::FILE_NAME).exists() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
