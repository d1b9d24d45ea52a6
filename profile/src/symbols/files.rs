//! Functions of files by offset, each looked up once.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Kernel, Source};
use blazesym::symbolize::{Input, Symbolizer};

use super::debug_files::DebugFiles;
use super::{MappedFile, Place};
use crate::existing::build_id_in;
use crate::kernel::{Elsewhere, KERNEL, KERNEL_BEGIN, KernelFacts};
use crate::regular::{Links, Regular};

/// The function that an address lies in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its name, or why it has none.
    pub name: Result<Rc<str>, Unnamed>,
    /// The file; empty where none is known.
    pub file: Rc<str>,
}

/// Why an address has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unnamed {
    /// Nothing is known to have been mapped there.
    NotMapped,
    /// The file is not there any more, or not for this user.
    NoFile,
    /// The file that is there is not known to be the one that was mapped: its build ID is another one,
    /// or it has none and is another inode or was written since.
    OtherFile,
    /// The file has no symbol there.
    NoSymbol,
    /// It lies in no file, and no compiler told what it made there.
    NotInFile,
    /// The kernel does not tell its addresses to this user (`CAP_SYSLOG`).
    KernelHidden,
    /// Another kernel runs here than the one that was sampled.
    OtherKernel,
    /// The same kernel runs, but the address is not in its own text: modules lie elsewhere since the
    /// boot, and so does everything where it was not known where the kernel lay.
    OtherBoot,
}

impl Unnamed {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::NotMapped,
        Self::NoFile,
        Self::OtherFile,
        Self::NoSymbol,
        Self::NotInFile,
        Self::KernelHidden,
        Self::OtherKernel,
        Self::OtherBoot,
    ];

    /// One word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotMapped => "not_mapped",
            Self::NoFile => "no_file",
            Self::OtherFile => "other_file",
            Self::NoSymbol => "no_symbol",
            Self::NotInFile => "not_in_file",
            Self::KernelHidden => "kernel_hidden",
            Self::OtherKernel => "other_kernel",
            Self::OtherBoot => "other_boot",
        }
    }
}

impl From<Elsewhere> for Unnamed {
    fn from(why: Elsewhere) -> Self {
        match why {
            Elsewhere::OtherKernel => Self::OtherKernel,
            Elsewhere::OtherBoot => Self::OtherBoot,
        }
    }
}

/// Functions that are kept at most; who looks up more begins anew.
const KEPT_MAX: usize = 2_000_000;

/// Functions of the files of this host. What has a name keeps it, whatever recording it is met in, so
/// that each (build ID, offset) is looked up once as long as this is kept.
#[derive(Debug)]
pub struct Symbols {
    symbolizer: Symbolizer,
    debug_files: DebugFiles,
    /// The file to read, or why there is none.
    files: BTreeMap<MappedFile, Result<PathBuf, Unnamed>>,
    known: BTreeMap<Place, Function>,
    kernel: BTreeMap<u64, Function>,
    here: KernelFacts,
}

impl Symbols {
    /// Symbols of this host.
    pub fn of_this_host() -> Self {
        let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false);
        Self {
            symbolizer: symbolizer.build(),
            debug_files: DebugFiles::of_this_host(),
            files: BTreeMap::new(),
            known: BTreeMap::new(),
            kernel: BTreeMap::new(),
            here: KernelFacts::of_this_host(),
        }
    }

    /// Forgets what had no name: a file may be there by now, and what is there may be another one.
    pub fn refresh(&mut self) {
        self.files.clear();
        if self.known.len() + self.kernel.len() > KEPT_MAX {
            self.known.clear();
            self.kernel.clear();
        }
        self.known.retain(|_, function| function.name.is_ok());
        self.kernel.retain(|_, function| function.name.is_ok());
    }

    /// Where an address of a kernel lies in the one that runs here.
    ///
    /// # Errors
    /// When it cannot be known.
    pub fn in_this_kernel(&self, sampled: &KernelFacts, address: u64) -> Result<u64, Unnamed> {
        sampled.address_in(&self.here, address).map_err(Unnamed::from)
    }

    /// Looks the functions of many places up, file by file, which is faster than one by one.
    pub fn look_up(&mut self, places: impl IntoIterator<Item = Place>) {
        let mut of_files: BTreeMap<MappedFile, Vec<u64>> = BTreeMap::new();
        for place in places {
            if !self.known.contains_key(&place) {
                of_files.entry(place.file).or_default().push(place.offset);
            }
        }
        for (file, mut offsets) in of_files {
            offsets.sort_unstable();
            offsets.dedup();
            let path = self.files.entry(file.clone()).or_insert_with(|| match &*file.path {
                KERNEL => Err(Unnamed::OtherKernel),
                _ => found(&file),
            });
            let names = match path {
                Ok(path) => {
                    let of_file = (path.as_path(), file.build_id.as_deref());
                    self.debug_files.names_in(&self.symbolizer, of_file, &offsets)
                }
                Err(unnamed) => vec![Err(*unnamed); offsets.len()],
            };
            for (offset, name) in offsets.into_iter().zip(names) {
                let function = Function { name, file: Rc::clone(&file.path) };
                self.known.insert(Place { file: file.clone(), offset }, function);
            }
        }
    }

    /// Those of some places that have no name although their file is known by its build ID.
    pub(crate) fn nameless<'a>(
        &'a self,
        places: impl Iterator<Item = &'a Place>,
    ) -> impl Iterator<Item = &'a Place> {
        places.filter(|place| {
            let is_nameless = self.known.get(place).is_none_or(|function| function.name.is_err());
            is_nameless && place.file.build_id.is_some()
        })
    }

    /// Takes the names of some places that are known from elsewhere, by build ID and offset.
    pub(crate) fn take_names(
        &mut self,
        places: &[Place],
        name: impl Fn(&str, u64) -> Option<Result<Rc<str>, Unnamed>>,
    ) {
        for place in places {
            let build_id = place.file.build_id.as_deref();
            if let Some(name) = build_id.and_then(|build_id| name(build_id, place.offset)) {
                let function = Function { name, file: Rc::clone(&place.file.path) };
                self.known.insert(place.clone(), function);
            }
        }
    }

    /// Looks the functions of addresses of the kernel that runs here up.
    pub fn look_up_kernel(&mut self, addresses: impl IntoIterator<Item = u64>) {
        let mut addresses: Vec<u64> =
            addresses.into_iter().filter(|at| !self.kernel.contains_key(at)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return;
        }
        let source = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
        let found = self.symbolizer.symbolize(&Source::Kernel(source), Input::AbsAddr(&addresses));
        let mut found = found.unwrap_or_default().into_iter();
        for address in addresses {
            let symbol = found.next().and_then(|symbol| symbol.into_sym());
            // Without CAP_SYSLOG all symbols are at 0.
            let symbol = symbol.filter(|symbol| symbol.addr >= KERNEL_BEGIN);
            let name = symbol.map(|symbol| Rc::from(&*symbol.name)).ok_or(Unnamed::KernelHidden);
            self.kernel.insert(address, Function { name, file: KERNEL.into() });
        }
    }

    /// The function of a place that was looked up.
    pub fn function(&self, place: &Place) -> Option<&Function> {
        self.known.get(place)
    }

    /// The function of an address of the kernel that was looked up.
    pub fn kernel_function(&self, address: u64) -> Option<&Function> {
        self.kernel.get(&address)
    }
}

/// Whether the file with a build ID is on this machine, at the path by which a host mapped it; for `[kernel]`, whether
/// that kernel runs here. What is no file of anybody (`[vdso]`) is nowhere else either.
pub fn is_file_here(build_id: &str, path: &str) -> bool {
    if path == KERNEL {
        return KernelFacts::of_this_host().build_id.as_deref() == Some(build_id);
    }
    if !path.starts_with('/') || path.starts_with("//") {
        return true;
    }
    let (path, build_id) = (path.into(), Some(build_id.into()));
    found(&MappedFile { path, build_id, inode: None, since: 0 }).is_ok()
}

/// The path of the very file that a process had mapped.
fn found(mapped: &MappedFile) -> Result<PathBuf, Unnamed> {
    if !mapped.path.starts_with('/') || mapped.path.starts_with("//") {
        return Err(Unnamed::NotInFile);
    }
    let path = Path::new(&*mapped.path);
    let file = Regular::at(path, Links::Followed).map_err(|_| Unnamed::NoFile)?;
    let is_the_same = match &mapped.build_id {
        Some(build_id) => build_id_in(&file).as_deref() == Some(build_id),
        None => {
            let (seconds, nanos) = (file.facts().mtime(), file.facts().mtime_nsec());
            // A number that is used again is that of a file that was written later.
            let written = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            mapped.inode == Some(file.facts().ino()) && written <= mapped.since.into()
        }
    };
    if is_the_same { Ok(path.to_owned()) } else { Err(Unnamed::OtherFile) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_build_id_is_believed_only_while_it_is_the_one_that_was_mapped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.so");
        std::fs::write(&path, "no ELF file").unwrap();
        let facts = std::fs::metadata(&path).unwrap();
        let written = facts.mtime() * 1_000_000_000 + facts.mtime_nsec();
        let name: Rc<str> = path.to_str().unwrap().into();
        let mapped =
            |inode, since| MappedFile { path: Rc::clone(&name), build_id: None, inode, since };
        assert_eq!(found(&mapped(Some(facts.ino()), written)), Ok(path.clone()));
        for other in [
            mapped(Some(facts.ino() + 1), written),
            mapped(Some(facts.ino()), written - 1),
            mapped(None, written),
            MappedFile { build_id: Some("ab".into()), ..mapped(None, written) },
        ] {
            assert_eq!(found(&other), Err(Unnamed::OtherFile), "{other:?}");
        }
        let fifo = directory.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let name: Rc<str> = fifo.to_str().unwrap().into();
        let fifo = MappedFile { path: name, ..mapped(None, written) };
        assert_eq!(found(&fifo), Err(Unnamed::NoFile));
    }
}
