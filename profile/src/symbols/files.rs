//! Functions of files by offset, each looked up once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolizer};

use super::Place;
use crate::existing::{KERNEL, build_id_of, kernel_build_id};

/// The function that an address lies in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its name, or why it has none.
    pub name: Result<Rc<str>, Unnamed>,
    /// The file; empty where none is known.
    pub file: Rc<str>,
}

/// Why an address has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unnamed {
    /// Nothing is known to have been mapped there.
    NotMapped,
    /// The file is not there any more, or not for this user.
    NoFile,
    /// The file that is there has another build ID.
    OtherFile,
    /// The file has no symbol there.
    NoSymbol,
    /// It lies in no file, and no compiler told what it made there.
    NotInFile,
    /// The kernel does not tell its addresses to this user (`CAP_SYSLOG`), or is another one by now.
    KernelHidden,
}

impl Unnamed {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::NotMapped,
        Self::NoFile,
        Self::OtherFile,
        Self::NoSymbol,
        Self::NotInFile,
        Self::KernelHidden,
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
        }
    }
}

/// Where the kernel's addresses begin.
pub(crate) const KERNEL_BEGIN: u64 = 1 << 63;

/// A file by its path and its build ID.
type FileKey = (Rc<str>, Option<Rc<str>>);

/// Functions of the files of this host.
#[derive(Debug)]
pub struct Symbols {
    symbolizer: Symbolizer,
    /// The file to read, or why there is none.
    files: BTreeMap<FileKey, Result<PathBuf, Unnamed>>,
    known: BTreeMap<Place, Function>,
    kernel: BTreeMap<u64, Function>,
    /// Whether the kernel that runs is the one that was sampled.
    is_same_kernel: bool,
}

impl Symbols {
    /// Symbols of this host for a profile whose kernel had that build ID.
    pub fn new(kernel: Option<&str>) -> Self {
        let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false);
        let is_same_kernel = kernel.is_some() && kernel == kernel_build_id().as_deref();
        Self {
            symbolizer: symbolizer.build(),
            files: BTreeMap::new(),
            known: BTreeMap::new(),
            kernel: BTreeMap::new(),
            is_same_kernel,
        }
    }

    /// Looks the functions of many places up, file by file, which is faster than one by one.
    pub fn look_up(&mut self, places: impl IntoIterator<Item = Place>) {
        let mut of_files: BTreeMap<FileKey, Vec<u64>> = BTreeMap::new();
        for place in places {
            if !self.known.contains_key(&place) {
                of_files.entry((place.path, place.build_id)).or_default().push(place.offset);
            }
        }
        for ((path, build_id), mut offsets) in of_files {
            offsets.sort_unstable();
            offsets.dedup();
            let key = (Rc::clone(&path), build_id.clone());
            let file = self.files.entry(key).or_insert_with(|| found(&path, build_id.as_deref()));
            let names = match file {
                Ok(file) => names_in(&self.symbolizer, file, &offsets),
                Err(unnamed) => vec![Err(*unnamed); offsets.len()],
            };
            for (offset, name) in offsets.into_iter().zip(names) {
                let place = Place { path: Rc::clone(&path), build_id: build_id.clone(), offset };
                let function = Function { name, file: Rc::clone(&path) };
                self.known.insert(place, function);
            }
        }
    }

    /// Looks the functions of addresses of the kernel up.
    pub fn look_up_kernel(&mut self, addresses: impl IntoIterator<Item = u64>) {
        let mut addresses: Vec<u64> =
            addresses.into_iter().filter(|at| !self.kernel.contains_key(at)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let source = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
        let found = self.is_same_kernel.then(|| {
            self.symbolizer.symbolize(&Source::Kernel(source), Input::AbsAddr(&addresses)).ok()
        });
        let mut found = found.flatten().unwrap_or_default().into_iter();
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

/// The file with that build ID where the process saw it.
fn found(path: &str, build_id: Option<&str>) -> Result<PathBuf, Unnamed> {
    if !path.starts_with('/') || path.starts_with("//") {
        return Err(Unnamed::NotInFile);
    }
    let file = Path::new(path);
    if !file.is_file() {
        return Err(Unnamed::NoFile);
    }
    match build_id {
        Some(build_id) if build_id_of(file).as_deref() != Some(build_id) => Err(Unnamed::OtherFile),
        _ => Ok(file.to_owned()),
    }
}

/// The names of the functions at some offsets of a file.
fn names_in(
    symbolizer: &Symbolizer,
    file: &Path,
    offsets: &[u64],
) -> Vec<Result<Rc<str>, Unnamed>> {
    let source = Source::Elf(Elf::new(file));
    let found = symbolizer.symbolize(&source, Input::FileOffset(offsets)).unwrap_or_default();
    let mut found = found.into_iter();
    let name = |_: &u64| {
        let symbol = found.next().and_then(|symbol| symbol.into_sym());
        symbol.map(|symbol| Rc::from(&*symbol.name)).ok_or(Unnamed::NoSymbol)
    };
    offsets.iter().map(name).collect()
}
