//! Files that hold the symbols of stripped files, by build ID, where packages of debug symbols install them.
//!
//! Such a file has the program headers of the stripped one with other offsets, so that a place is looked up by
//! where it lies in memory. Only its table of symbols is read: that needs no debug information to be taken
//! apart, and functions are called as `perf` calls them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Sym, Symbolizer};

use super::Unnamed;
use super::usual_names::{UsualNames, octets_of};
use crate::elf::{self, Segment};
use crate::existing::build_id_in;
use crate::regular::{Links, Regular};

/// Where packages of debug symbols install them, as gdb(1) looks for them.
const DIRECTORY: &str = "/usr/lib/debug/.build-id";

/// Files whose usual names are kept at most; who looks up more begins anew.
const USUAL_MAX: usize = 256;

/// A file as it was: device, inode, octets and when it was written, s and ns.
type Version = (u64, u64, u64, i64, i64);

fn version(facts: &Metadata) -> Version {
    (facts.dev(), facts.ino(), facts.len(), facts.mtime(), facts.mtime_nsec())
}

/// Where the symbols of stripped files are.
#[derive(Debug)]
pub(super) struct DebugFiles {
    directory: PathBuf,
    usual: RefCell<BTreeMap<Version, Rc<UsualNames>>>,
}

impl DebugFiles {
    /// Those that are installed here.
    pub(super) fn of_this_host() -> Self {
        Self::below(DIRECTORY.into())
    }

    fn below(directory: PathBuf) -> Self {
        Self { directory, usual: RefCell::default() }
    }

    /// The usual names of a file.
    fn usual(&self, file: &Regular) -> Rc<UsualNames> {
        let mut usual = self.usual.borrow_mut();
        if usual.len() >= USUAL_MAX {
            usual.clear();
        }
        let read = || file.open().map(|file| UsualNames::of(&file)).unwrap_or_default();
        Rc::clone(usual.entry(version(file.facts())).or_insert_with(|| Rc::new(read())))
    }

    /// The file with the symbols of the one with a build ID, if there is one.
    pub(super) fn of(&self, build_id: &str) -> Option<PathBuf> {
        let is_hexadecimal = build_id.bytes().all(|digit| digit.is_ascii_hexdigit());
        let (first, rest) = build_id.split_at_checked(2).filter(|_| is_hexadecimal)?;
        let path = self.directory.join(first).join(format!("{rest}.debug"));
        let file = Regular::at(&path, Links::Followed).ok()?;
        (build_id_in(&file).as_deref() == Some(build_id)).then_some(path)
    }

    /// The names of the functions at some offsets of a file: of entries of its PLT, by the symbols that are there for its
    /// build ID, of what has no name then by its own, and then by its debug information.
    pub(super) fn names_in(
        &self,
        symbolizer: &Symbolizer,
        (path, build_id): (&Path, Option<&str>),
        offsets: &[u64],
    ) -> Vec<Result<Rc<str>, Unnamed>> {
        let mut names = vec![Err(Unnamed::NoSymbol); offsets.len()];
        let mut own = Rc::default();
        if let Ok(file) = Regular::at(path, Links::Followed)
            && let Some(segments) = segments_of(&file)
        {
            own = self.usual(&file);
            // An offset that lies nowhere in memory has no function either.
            let address = |offset: &u64| elf::address_of(&segments, *offset).unwrap_or(0);
            let addresses: Vec<u64> = offsets.iter().map(address).collect();
            for (name, address) in names.iter_mut().zip(&addresses) {
                *name = own.entry(*address).cloned().ok_or(Unnamed::NoSymbol);
            }
            if let Some(debug_file) = build_id.and_then(|build_id| self.of(build_id)) {
                let usual = Regular::at(&debug_file, Links::Followed).map(|file| self.usual(&file));
                let find = |places: &[u64]| {
                    let places = Input::VirtOffset(places);
                    let usual = usual.as_deref().unwrap_or(&own);
                    names_at(symbolizer, by_symbols(&debug_file), usual, places)
                };
                name_rest(&mut names, &addresses, find);
            }
        }
        let find = |places: &[u64]| {
            names_at(symbolizer, by_symbols(path), &own, Input::FileOffset(places))
        };
        name_rest(&mut names, offsets, find);
        // Debug information has names of its own.
        let usual = UsualNames::default();
        let find = |places: &[u64]| {
            names_at(symbolizer, Elf::new(path), &usual, Input::FileOffset(places))
        };
        name_rest(&mut names, offsets, find);
        names
    }
}

/// Has those of some places looked up that have no name yet.
fn name_rest(
    names: &mut [Result<Rc<str>, Unnamed>],
    places: &[u64],
    find: impl Fn(&[u64]) -> Vec<Result<Rc<str>, Unnamed>>,
) {
    let nameless: Vec<usize> = (0..names.len()).filter(|&at| names[at].is_err()).collect();
    let places: Vec<u64> = nameless.iter().map(|&at| places[at]).collect();
    if !places.is_empty() {
        for (at, name) in nameless.into_iter().zip(find(&places)) {
            names[at] = name;
        }
    }
}

/// A file of which the table of symbols is read alone.
pub(super) fn by_symbols(path: &Path) -> Elf {
    let mut source = Elf::new(path);
    source.debug_syms = false;
    source
}

/// The names of the functions at some places of a file: the usual ones of those that have several.
pub(super) fn names_at(
    symbolizer: &Symbolizer,
    file: Elf,
    usual: &UsualNames,
    places: Input<&[u64]>,
) -> Vec<Result<Rc<str>, Unnamed>> {
    let count = places.into_inner().len();
    let found = symbolizer.symbolize(&Source::Elf(file), places).unwrap_or_default();
    let mut found = found.into_iter();
    let name = |_| {
        let symbol = found.next().and_then(|symbol| symbol.into_sym());
        let usual = |symbol: &Sym<'_>| usual.at(symbol.addr).cloned();
        let name = |symbol: Sym<'_>| usual(&symbol).unwrap_or_else(|| Rc::from(&*symbol.name));
        symbol.map(name).ok_or(Unnamed::NoSymbol)
    };
    (0..count).map(name).collect()
}

/// The parts of a file of this host.
pub(super) fn segments_of(file: &Regular) -> Option<Vec<Segment>> {
    let file = file.open().ok()?;
    elf::segments(|offset, size| octets_of(&file, offset, size)).map(|(_, segments)| segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::tools::run;

    #[test]
    fn a_stripped_program_is_named_by_its_debug_file_even_one_whose_debug_information_is_compressed()
     {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let [source, program, debug] = ["a.c", "a", "a.debug"].map(of);
        let text = "static __attribute__((noinline)) int hidden(int of) { return of * 3 + 1; }\n\
                    int main(int count, char **words) { (void)words; return hidden(count); }\n";
        std::fs::write(&source, text).unwrap();
        run(&["gcc", "-g", "-gz=zlib", "-O1", "-Wl,--build-id", "-o", &program, &source]);
        let symbols = run(&["nm", &program]);
        let line = symbols.lines().find(|line| line.ends_with(" t hidden")).unwrap();
        let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        run(&["objcopy", "--only-keep-debug", &program, &debug]);
        run(&["strip", &program]);
        let file = Regular::at(Path::new(&program), Links::Followed).unwrap();
        let build_id = build_id_in(&file).unwrap();
        let debug_files = DebugFiles::below(directory.path().to_owned());
        let symbolizer =
            Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
        // What lies at that address, counted from the file's begin.
        let segments = segments_of(&file).unwrap();
        let (offset, _) = elf::offset_of(&segments, address).unwrap();
        let names = |build_id: Option<&str>| {
            debug_files.names_in(&symbolizer, (Path::new(&program), build_id), &[offset + 1, 0])
        };
        assert_eq!(names(Some(&build_id))[0], Err(Unnamed::NoSymbol), "nobody installed it");
        std::fs::create_dir(of(&build_id[..2])).unwrap();
        std::fs::rename(&debug, of(&format!("{}/{}.debug", &build_id[..2], &build_id[2..])))
            .unwrap();
        assert_eq!(names(Some(&build_id))[0].as_deref(), Ok("hidden"));
        assert_eq!(names(Some("abcdef"))[0], Err(Unnamed::NoSymbol));
        assert_eq!(names(None)[0], Err(Unnamed::NoSymbol));
    }

    #[test]
    fn an_offset_lies_where_readelf_says() {
        let own = std::env::current_exe().unwrap();
        let segments = segments_of(&Regular::at(&own, Links::Followed).unwrap()).unwrap();
        let told = run(&["readelf", "-lW", own.to_str().unwrap()]);
        let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
        let mut seen = 0;
        for line in told.lines().map(str::trim).filter(|line| line.starts_with("LOAD")) {
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            let [offset, address, octets] = [1, 2, 4].map(|at| number(words[at]));
            for into in [0, octets / 2, octets - 1] {
                assert_eq!(
                    elf::address_of(&segments, offset + into),
                    Some(address + into),
                    "{line}"
                );
            }
            seen += 1;
        }
        assert!(seen > 1, "{told}");
        assert_eq!(elf::address_of(&segments, u64::MAX), None);
    }

    #[test]
    fn a_build_id_that_is_a_path_leads_nowhere() {
        for wrong in ["", "a", "../../../../etc/passwd", "ab/../cd", "zz12", "\u{e9}\u{e9}"] {
            assert_eq!(DebugFiles::of_this_host().of(wrong), None, "{wrong}");
        }
    }
}
