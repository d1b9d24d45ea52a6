//! What a file tree should do: paths in an ordered map, nothing of servers.

use std::collections::BTreeMap;

use meikyo_metadata::{Errno, Inode, InodeNumber, Kind};

/// A file tree by full paths; the root is the empty path.
#[derive(Default)]
pub(crate) struct Tree(BTreeMap<String, Inode>);

impl Tree {
    /// How many files and directories there are, the root aside.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn directories(&self) -> impl Iterator<Item = InodeNumber> {
        self.0.values().filter(|inode| inode.kind == Kind::Directory).map(|inode| inode.number)
    }

    pub(crate) fn make(&mut self, path: &str, inode: Inode) -> Result<InodeNumber, Errno> {
        self.open(parent(path))?;
        if self.0.contains_key(path) {
            return Err(Errno::Exists);
        }
        self.0.insert(path.to_owned(), inode);
        Ok(inode.number)
    }

    pub(crate) fn stat(&self, path: &str) -> Result<Inode, Errno> {
        self.open(parent(path))?;
        self.0.get(path).copied().ok_or(Errno::NotFound)
    }

    pub(crate) fn unlink(&mut self, path: &str) -> Result<(), Errno> {
        match self.stat(path)?.kind {
            Kind::Directory => Err(Errno::IsADirectory),
            Kind::File => {
                self.0.remove(path);
                Ok(())
            }
        }
    }

    pub(crate) fn list(&self, path: &str) -> Result<Vec<(String, InodeNumber, Kind)>, Errno> {
        self.open(path)?;
        let mut names: Vec<_> = self
            .0
            .iter()
            .filter(|(other, _)| parent(other) == path)
            .map(|(other, inode)| (other[path.len() + 1..].to_owned(), inode.number, inode.kind))
            .collect();
        names.sort();
        Ok(names)
    }

    pub(crate) fn remove_directory(&mut self, path: &str) -> Result<(), Errno> {
        if self.stat(path)?.kind == Kind::File {
            return Err(Errno::NotADirectory);
        }
        if !self.list(path)?.is_empty() {
            return Err(Errno::NotEmpty);
        }
        self.0.remove(path);
        Ok(())
    }

    /// Whether `path` is a directory; else why it cannot be entered: the first of its beginnings that
    /// is none decides.
    fn open(&self, path: &str) -> Result<(), Errno> {
        if path.is_empty() {
            return Ok(());
        }
        self.open(parent(path))?;
        match self.0.get(path) {
            None => Err(Errno::NotFound),
            Some(Inode { kind: Kind::File, .. }) => Err(Errno::NotADirectory),
            Some(_) => Ok(()),
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}
