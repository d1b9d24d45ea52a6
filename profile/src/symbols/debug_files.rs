//! Files that hold the symbols of stripped files, by build ID, where packages of debug symbols install them.
//!
//! Such a file has the program headers of the stripped one with other offsets, so that a place is looked up by
//! where it lies in memory. Only its table of symbols is read: that needs no debug information to be taken
//! apart, and functions are called as `perf` calls them.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolizer};

use super::Unnamed;
use crate::existing::build_id_in;
use crate::regular::{Links, Regular};

/// Where packages of debug symbols install them, as gdb(1) looks for them.
const DIRECTORY: &str = "/usr/lib/debug/.build-id";

/// Where the symbols of stripped files are.
#[derive(Debug)]
pub(super) struct DebugFiles {
    directory: PathBuf,
}

impl DebugFiles {
    /// Those that are installed here.
    pub(super) fn of_this_host() -> Self {
        Self { directory: DIRECTORY.into() }
    }

    /// The file with the symbols of the one with a build ID, if there is one.
    pub(super) fn of(&self, build_id: &str) -> Option<PathBuf> {
        let is_hexadecimal = build_id.bytes().all(|digit| digit.is_ascii_hexdigit());
        let (first, rest) = build_id.split_at_checked(2).filter(|_| is_hexadecimal)?;
        let path = self.directory.join(first).join(format!("{rest}.debug"));
        let file = Regular::at(&path, Links::Followed).ok()?;
        (build_id_in(&file).as_deref() == Some(build_id)).then_some(path)
    }

    /// The names of the functions at some offsets of a file: by the symbols that are there for its build ID, of what
    /// has no name then by its own, and then by its debug information.
    pub(super) fn names_in(
        &self,
        symbolizer: &Symbolizer,
        (path, build_id): (&Path, Option<&str>),
        offsets: &[u64],
    ) -> Vec<Result<Rc<str>, Unnamed>> {
        let mut names = vec![Err(Unnamed::NoSymbol); offsets.len()];
        let debug_file = build_id.and_then(|build_id| self.of(build_id));
        if let Some(debug_file) = debug_file
            && let Ok(file) = Regular::at(path, Links::Followed)
            && let Some(segments) = Segments::of(&file)
        {
            // An offset that lies nowhere in memory has no function either.
            let addresses: Vec<u64> =
                offsets.iter().map(|offset| segments.address(*offset).unwrap_or(0)).collect();
            names = named(symbolizer, by_symbols(&debug_file), Input::VirtOffset(&addresses));
        }
        for source in [by_symbols(path), Elf::new(path)] {
            let nameless: Vec<usize> = (0..names.len()).filter(|&at| names[at].is_err()).collect();
            if nameless.is_empty() {
                break;
            }
            let places: Vec<u64> = nameless.iter().map(|&at| offsets[at]).collect();
            let found = named(symbolizer, source, Input::FileOffset(&places));
            for (at, name) in nameless.into_iter().zip(found) {
                names[at] = name;
            }
        }
        names
    }
}

/// A file of which the table of symbols is read alone.
pub(super) fn by_symbols(path: &Path) -> Elf {
    let mut source = Elf::new(path);
    source.debug_syms = false;
    source
}

/// The names of the functions at some places of a file.
pub(super) fn named(
    symbolizer: &Symbolizer,
    file: Elf,
    places: Input<&[u64]>,
) -> Vec<Result<Rc<str>, Unnamed>> {
    let count = match places {
        Input::AbsAddr(places) | Input::VirtOffset(places) | Input::FileOffset(places) => places.len(),
    };
    let found = symbolizer.symbolize(&Source::Elf(file), places).unwrap_or_default();
    let mut found = found.into_iter();
    let name = |_| {
        let symbol = found.next().and_then(|symbol| symbol.into_sym());
        symbol.map(|symbol| Rc::from(&*symbol.name)).ok_or(Unnamed::NoSymbol)
    };
    (0..count).map(name).collect()
}

/// Part of a file that lies in memory: its offset, its octets, and its address before the file is moved.
type Segment = (u64, u64, u64);

/// Where the octets of a program or a library lie in memory, before it is moved.
#[derive(Debug)]
pub(super) struct Segments(Vec<Segment>);

/// Program headers that are read at most.
const HEADERS_MAX: usize = 1 << 10;

impl Segments {
    /// Those of an ELF file of 64 bits, least octet first (System V ABI, "Program Header"); `None` of others.
    pub(super) fn of(file: &Regular) -> Option<Self> {
        const PT_LOAD: u32 = 1;
        let file = std::fs::File::open(file.path()).ok()?;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let begin = word(&head, 32)?;
        let [size, count] = [54, 56].map(|at| usize::from(u16::from_le_bytes([head[at], head[at + 1]])));
        if size != 56 || count > HEADERS_MAX {
            return None;
        }
        let mut headers = vec![0; size * count];
        file.read_exact_at(&mut headers, begin).ok()?;
        let segment = |header: &[u8]| {
            let kind = u32::from_le_bytes(*header.first_chunk()?);
            let parts = (word(header, 8)?, word(header, 32)?, word(header, 16)?);
            (kind == PT_LOAD).then_some(parts)
        };
        Some(Self(headers.chunks_exact(size).filter_map(segment).collect()))
    }

    /// The address of an octet of the file; `None` when it lies nowhere.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        let within = |&(begin, octets, address): &Segment| {
            let into = offset.checked_sub(begin).filter(|into| *into < octets)?;
            address.checked_add(into)
        };
        self.0.iter().find_map(within)
    }
}

fn word(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &[&str]) -> String {
        let output = std::process::Command::new(command[0]).args(&command[1..]).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_stripped_program_is_named_by_its_debug_file_even_one_whose_debug_information_is_compressed() {
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
        let debug_files = DebugFiles { directory: directory.path().to_owned() };
        let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
        // What lies at that address, counted from the file's begin.
        let segments = Segments::of(&file).unwrap();
        let offset = (0..file.facts().len()).find(|at| segments.address(*at) == Some(address)).unwrap();
        let names = |build_id: Option<&str>| {
            debug_files.names_in(&symbolizer, (Path::new(&program), build_id), &[offset + 1, 0])
        };
        assert_eq!(names(Some(&build_id))[0], Err(Unnamed::NoSymbol), "nobody installed it");
        std::fs::create_dir(of(&build_id[..2])).unwrap();
        std::fs::rename(&debug, of(&format!("{}/{}.debug", &build_id[..2], &build_id[2..]))).unwrap();
        assert_eq!(names(Some(&build_id))[0].as_deref(), Ok("hidden"));
        assert_eq!(names(Some("abcdef"))[0], Err(Unnamed::NoSymbol));
        assert_eq!(names(None)[0], Err(Unnamed::NoSymbol));
    }

    #[test]
    fn an_offset_lies_where_readelf_says() {
        let own = std::env::current_exe().unwrap();
        let segments = Segments::of(&Regular::at(&own, Links::Followed).unwrap()).unwrap();
        let told = run(&["readelf", "-lW", own.to_str().unwrap()]);
        let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
        let mut seen = 0;
        for line in told.lines().map(str::trim).filter(|line| line.starts_with("LOAD")) {
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            let [offset, address, octets] = [1, 2, 4].map(|at| number(words[at]));
            for into in [0, octets / 2, octets - 1] {
                assert_eq!(segments.address(offset + into), Some(address + into), "{line}");
            }
            seen += 1;
        }
        assert!(seen > 1, "{told}");
        assert_eq!(segments.address(u64::MAX), None);
    }

    #[test]
    fn a_build_id_that_is_a_path_leads_nowhere() {
        for wrong in ["", "a", "../../../../etc/passwd", "ab/../cd", "zz12", "\u{e9}\u{e9}"] {
            assert_eq!(DebugFiles::of_this_host().of(wrong), None, "{wrong}");
        }
    }
}
