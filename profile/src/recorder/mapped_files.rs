//! Where files were mapped last, by build ID: where to read functions that the server asks for.

use std::collections::BTreeMap;

/// Files that are remembered; a host maps some thousand different ones in a day.
const FILES_MAX: usize = 8_192;

/// Where a file was mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedAt {
    /// Its path, as its process sees it; `[kernel]` for the kernel.
    pub path: String,
    /// The process; `None` for the kernel.
    pub pid: Option<u32>,
}

#[derive(Debug, Default)]
pub(super) struct MappedFiles(BTreeMap<Box<str>, MappedAt>);

impl MappedFiles {
    pub(super) fn note(&mut self, build_id: &str, path: &str, pid: Option<u32>) {
        if let Some(at) = self.0.get_mut(build_id) {
            at.pid = pid;
            if at.path != path {
                path.clone_into(&mut at.path);
            }
            return;
        }
        if self.0.len() >= FILES_MAX {
            self.0.clear();
        }
        self.0.insert(build_id.into(), MappedAt { path: path.to_owned(), pid });
    }

    pub(super) fn at(&self, build_id: &str) -> Option<MappedAt> {
        self.0.get(build_id).cloned()
    }
}
