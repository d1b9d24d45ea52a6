//! Functions of files that only the host has: read there, told as rows, and looked up here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use blazesym::SymType;
use blazesym::inspect::{Inspector, SymInfo, source as inspect};
use blazesym::symbolize::{Input, Symbolizer};
use meikyo_recording::{PackError, PackedRows, Packer};

use super::Unnamed;
use super::debug_files::{by_symbols, names_at, segments_of};
use super::usual_names::UsualNames;
use crate::block::FILLED;
use crate::elf;
use crate::existing::{build_id_in, mapped_file};
use crate::kernel::KernelFacts;
use crate::regular::Regular;
use crate::tables::file_symbols;

/// Functions of a file that are told at most.
const FUNCTIONS_MAX: usize = 400_000;

/// Octets of a function's name that are told at most.
const NAME_MAX: usize = 1_024;

/// Where a function of a file begins, how far it goes (0: to the next one), and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileFunction {
    /// Octets from the file's begin.
    pub offset: u64,
    /// Octets of it.
    pub size: u64,
    /// Its name, demangled.
    pub name: Rc<str>,
}

/// The functions of the file with a build ID, where a process has mapped it or where its path leads to; `None`
/// where no such file is there any more.
pub fn functions_of_file(build_id: &str, path: &str, pid: u32) -> Option<Vec<FileFunction>> {
    let is_it = |file: &Regular| build_id_in(file).as_deref() == Some(build_id);
    let file = mapped_file(pid, path, is_it)?;
    Some(functions_in(&file))
}

/// The functions of this host's kernel, in its own text; `None` where another one runs, or it hides them.
pub fn functions_of_kernel(build_id: &str) -> Option<Vec<FileFunction>> {
    let facts = KernelFacts::of_this_host();
    let (begin, size) = facts.text.filter(|_| facts.build_id.as_deref() == Some(build_id))?;
    let symbols = File::open("/proc/kallsyms").ok()?;
    Some(functions_in_kallsyms(std::io::BufReader::new(symbols), (begin, size)))
}

fn functions_in_kallsyms(symbols: impl BufRead, (begin, size): (u64, u64)) -> Vec<FileFunction> {
    let function = |line: String| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = words.next().is_some_and(|kind| "tTwW".contains(kind));
        let offset = address.checked_sub(begin).filter(|offset| *offset < size && is_code)?;
        Some(FileFunction { offset, size: 0, name: cut(words.next()?).into() })
    };
    let functions = symbols.lines().map_while(Result::ok).filter_map(function);
    in_order(functions.collect())
}

/// The functions in the debug information of a file, which lie in the file where the begin of it (`head`) says.
pub fn functions_of_debug_info(debug_info: &Path, head: &[u8]) -> Vec<FileFunction> {
    let of_head = |offset: u64, size: u64| {
        let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
        Some(head.get(offset..offset.checked_add(size)?)?.to_vec())
    };
    let Some((_, segments)) = elf::segments(of_head) else { return Vec::new() };
    // 0 is the address of what is defined elsewhere.
    let found = sizes_by_place(debug_info, |of| Some(of.addr).filter(|&address| address > 0));
    let addresses: Vec<u64> = found.keys().copied().collect();
    let usual = File::open(debug_info).map(|file| UsualNames::of(&file)).unwrap_or_default();
    let named = named(debug_info, &usual, Input::VirtOffset(&addresses), found);
    let in_file = named.into_iter().filter_map(|function| {
        let (offset, _) = elf::offset_of(&segments, function.offset)?;
        Some(FileFunction { offset, ..function })
    });
    in_order(in_file.collect())
}

fn functions_in(file: &Regular) -> Vec<FileFunction> {
    let usual = file.open().map(|file| UsualNames::of(&file)).unwrap_or_default();
    let path = file.path();
    let found = sizes_by_place(&path, |of| of.file_offset);
    let offsets: Vec<u64> = found.keys().copied().collect();
    let mut functions = named(&path, &usual, Input::FileOffset(&offsets), found);
    let segments = segments_of(file).unwrap_or_default();
    functions.extend(usual.entries().filter_map(|(address, size, name)| {
        let (offset, _) = elf::offset_of(&segments, address)?;
        Some(FileFunction { offset, size, name: Rc::clone(name) })
    }));
    in_order(functions)
}

/// How large the functions of a file are, by their places.
fn sizes_by_place(file: &Path, place: impl Fn(&SymInfo<'_>) -> Option<u64>) -> BTreeMap<u64, u64> {
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    // Symbols alone: a host is not made to read debug information.
    let mut inspected = inspect::Elf::new(file);
    inspected.debug_syms = false;
    let inspected = Inspector::new().for_each(&inspect::Source::Elf(inspected), |of| {
        if of.sym_type == SymType::Function
            && let Some(place) = place(of)
        {
            let size = found.entry(place).or_default();
            *size = (*size).max(of.size.unwrap_or(0) as u64);
        }
        if found.len() < FUNCTIONS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if inspected.is_err() { BTreeMap::new() } else { found }
}

/// The functions of a file at some places, named as they are where the file is at hand.
fn named(
    file: &Path,
    usual: &UsualNames,
    places: Input<&[u64]>,
    found: BTreeMap<u64, u64>,
) -> Vec<FileFunction> {
    let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false);
    let names = names_at(&symbolizer.build(), by_symbols(file), usual, places);
    let named = found.into_iter().zip(names).filter_map(|((offset, size), name)| {
        Some(FileFunction { offset, size, name: cut(&name.ok()?).into() })
    });
    named.collect()
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_MAX)]
}

/// By offset, one of each.
fn in_order(mut functions: Vec<FileFunction>) -> Vec<FileFunction> {
    functions.sort_unstable();
    functions.dedup_by_key(|function| function.offset);
    functions.truncate(FUNCTIONS_MAX);
    functions
}

/// Functions of a file as rows of [`file_symbols`], in blocks that are not too long to be sent. A file without any
/// has a row without a name, so that it is not asked for again.
///
/// # Errors
/// When rows do not fit into a block.
pub fn told(
    (host, time): (&str, i64),
    build_id: &str,
    functions: &[FileFunction],
) -> Result<Vec<PackedRows>, PackError> {
    let mut packer = Packer::new(file_symbols::schema());
    let mut blocks = Vec::new();
    let mut octets = 0;
    let rows = functions.iter().map(Some).chain(functions.is_empty().then_some(None));
    for function in rows {
        let length = function.map_or(0, |function| function.name.len()) + ROW_OCTETS;
        if octets + length > FILLED {
            blocks.push(packer.pack()?);
            octets = 0;
        }
        octets += length;
        let (host, build_id) = (packer.symbol(host), packer.symbol(build_id));
        let batch = packer.batch();
        batch.begin_row(time);
        batch.put(file_symbols::HOST, host);
        batch.put(file_symbols::BUILD_ID, build_id);
        if let Some(FileFunction { offset, size, name }) = function {
            batch.put(file_symbols::OFFSET_BYTES, *offset);
            batch.put(file_symbols::SIZE_BYTES, *size);
            batch.put(file_symbols::FUNCTION, name);
        }
    }
    blocks.push(packer.pack()?);
    Ok(blocks)
}

/// Octets of a row without its name, at most.
const ROW_OCTETS: usize = 24;

/// Functions that were told, by build ID.
#[derive(Debug, Default)]
pub struct ToldFunctions(BTreeMap<Rc<str>, Vec<FileFunction>>);

impl ToldFunctions {
    /// Takes a function; no order is needed.
    pub fn take(&mut self, build_id: &Rc<str>, function: FileFunction) {
        self.0.entry(Rc::clone(build_id)).or_default().push(function);
    }

    /// All were taken.
    pub fn finish(&mut self) {
        // Several hosts can have told the same.
        self.0.values_mut().for_each(|functions| *functions = in_order(std::mem::take(functions)));
    }

    /// The function at an offset; `None` where nothing was told of the file.
    pub fn name(&self, build_id: &str, offset: u64) -> Option<Result<Rc<str>, Unnamed>> {
        let functions = self.0.get(build_id)?;
        let before = functions.partition_point(|function| function.offset <= offset);
        let function = before.checked_sub(1).map(|at| &functions[at]);
        let is_in = |of: &&FileFunction| of.size == 0 || offset - of.offset < of.size;
        let name = function.filter(is_in).map(|function| Rc::clone(&function.name));
        Some(name.ok_or(Unnamed::NoSymbol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regular::Links;

    #[test]
    fn functions_of_this_program_are_those_that_its_file_is_looked_up_by() {
        let own = std::env::current_exe().unwrap();
        let build_id = build_id_in(&Regular::at(&own, Links::Followed).unwrap()).unwrap();
        let path = own.to_str().unwrap();
        let functions = functions_of_file(&build_id, path, std::process::id()).unwrap();
        assert!(functions.len() > 1_000, "{}", functions.len());
        assert_eq!(functions_of_file("abcd", path, 1), None);
        let mut told = ToldFunctions::default();
        let id: Rc<str> = build_id.as_str().into();
        // In another order, and twice.
        for function in functions.iter().rev().chain(&functions[..10]) {
            told.take(&id, function.clone());
        }
        told.finish();
        let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false);
        let middles = functions.iter().filter(|function| function.size > 8).step_by(37);
        // Several names may be of one place, of which either is right.
        let is_of_one = |offset: &u64| {
            let has = |of: &&FileFunction| of.offset <= *offset && *offset < of.offset + of.size;
            functions.iter().filter(has).count() == 1
        };
        let middles = middles.map(|function| function.offset + function.size / 2);
        let offsets: Vec<u64> = middles.filter(is_of_one).collect();
        // Debug information has shorter names; hosts tell those of the table of symbols.
        let own = by_symbols(&own);
        let usual = UsualNames::default();
        let expected = names_at(&symbolizer.build(), own, &usual, Input::FileOffset(&offsets));
        let found: Vec<_> =
            offsets.iter().map(|offset| told.name(&build_id, *offset).unwrap()).collect();
        let differing: Vec<_> = found.iter().zip(&expected).filter(|(a, b)| a != b).collect();
        let (agree, all) = (found.len() - differing.len(), found.len());
        // Functions that lie within each other may be called either way.
        assert!(all > 30 && agree * 100 >= all * 95, "{agree} of {all}: {differing:?}");
        assert_eq!(told.name("abcd", 1), None);
    }

    #[test]
    fn functions_of_a_kernel_lie_behind_the_begin_of_its_text() {
        let symbols = "ffffffff81000000 T _text\nffffffff81000100 t f\nffffffff81000180 D data\n\
                       ffffffff81000200 W g\nffffffff81002000 T _etext\nffffffffc0400000 t h [m]\n";
        let functions = functions_in_kallsyms(symbols.as_bytes(), (0xffff_ffff_8100_0000, 0x2000));
        let found: Vec<_> = functions.iter().map(|of| (of.offset, &*of.name)).collect();
        assert_eq!(found, [(0, "_text"), (0x100, "f"), (0x200, "g")]);
    }

    #[test]
    fn a_file_without_functions_is_told_as_such() {
        let blocks = told(("a", 5), "abcd", &[]).unwrap();
        assert_eq!(blocks.iter().map(PackedRows::rows).collect::<Vec<_>>(), [1]);
        let name: Rc<str> = "f".repeat(1_000).into();
        let many: Vec<_> = (0..5_000)
            .map(|offset| FileFunction { offset, size: 1, name: Rc::clone(&name) })
            .collect();
        let blocks = told(("a", 5), "abcd", &many).unwrap();
        assert!(blocks.len() > 4, "{}", blocks.len());
        assert_eq!(blocks.iter().map(PackedRows::rows).sum::<usize>(), 5_000);
        assert!(blocks.iter().all(|block| block.payload().len() < 1 << 20));
    }
}
