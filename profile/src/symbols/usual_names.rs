//! What a look-up by address does not tell of an ELF file: which of the names of a place is the usual one, and which
//! function an entry of the procedure linkage table (PLT) jumps to.
//!
//! Of several names the one is taken that perf takes: of a symbol with a length before one without, of one that is not weak,
//! of one that is global, the one with fewer underscores in front, the longer one. Entries of the PLT have no symbols.
//! Each jumps to where a word of the file's data says, and the relocation of that word names the function; its
//! name ends with `@plt`, as objdump(1) and perf write it. Entries are read of x86-64 only.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

use hashbrown::HashMap;

use crate::elf::{self, Section};

/// Octets of a section that are read at most.
const SECTION_MAX: u64 = 256 << 20;

/// Kinds of sections (System V ABI, chapter 4): code and data, symbols, relocations, symbols for the dynamic loader.
const PROGRAM_BITS: u32 = 1;
const SYMBOLS: u32 = 2;
const RELOCATIONS: u32 = 4;
const DYNAMIC_SYMBOLS: u32 = 11;

/// Octets of a symbol, and of a relocation.
const SYMBOL: usize = 24;
const RELOCATION: usize = 24;

/// Kinds of symbols: functions, and those whose address a function chooses at the start.
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;

/// How symbols are bound.
const GLOBAL: u8 = 1;
const WEAK: u8 = 2;

/// Relocations of x86-64 that give a word the address of a function: of data, of the PLT, and by asking one.
const GLOBAL_DATA: u32 = 6;
const JUMP_SLOT: u32 = 7;
const INDIRECT: u32 = 37;

/// Octets of an entry where its section does not say so.
const ENTRY: u64 = 16;

/// An indirect jump over a word that is addressed from the next instruction on (`jmp *disp32(%rip)`).
const JUMP: [u8; 2] = [0xff, 0x25];

/// Names of a file.
#[derive(Debug, Default)]
pub(super) struct UsualNames {
    /// By address, where there are several.
    names: HashMap<u64, Rc<str>>,
    /// By address, the octets and the name of each entry of the PLT.
    entries: BTreeMap<u64, (u64, Rc<str>)>,
}

impl UsualNames {
    /// Those of a file; none of what is no ELF file.
    pub(super) fn of(file: &File) -> Self {
        let read = |offset, size| octets_of(file, offset, size);
        let Some(sections) = elf::sections(read) else { return Self::default() };
        let symbols = [SYMBOLS, DYNAMIC_SYMBOLS]
            .into_iter()
            .find_map(|kind| sections.iter().find(|section| section.kind == kind));
        let names = symbols.and_then(|symbols| several(&read, &sections, symbols));
        let is_x86 = elf::segments(read).is_some_and(|(machine, _)| machine == elf::X86_64);
        let entries = if is_x86 { entries(&read, &sections) } else { None };
        Self { names: names.unwrap_or_default(), entries: entries.unwrap_or_default() }
    }

    /// The usual name of a function that begins at an address, where it has several.
    pub(super) fn at(&self, begin: u64) -> Option<&Rc<str>> {
        self.names.get(&begin)
    }

    /// The name of the entry of the PLT that an address lies in.
    pub(super) fn entry(&self, address: u64) -> Option<&Rc<str>> {
        let (begin, (size, name)) = self.entries.range(..=address).next_back()?;
        (address - begin < *size).then_some(name)
    }

    /// The entries of the PLT: address, octets, name.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, u64, &Rc<str>)> {
        self.entries.iter().map(|(begin, (size, name))| (*begin, *size, name))
    }
}

/// Some octets of a file.
pub(super) fn octets_of(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    let length = file.metadata().ok()?.len();
    let is_there = offset.checked_add(size).is_some_and(|end| end <= length);
    if !is_there || size > SECTION_MAX {
        return None;
    }
    let mut octets = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut octets, offset).ok().map(|()| octets)
}

/// What decides which of several names is the usual one: the greatest.
type Rank = (bool, bool, bool, Reverse<usize>, usize);

fn rank(size: u64, binding: u8, name: &str) -> Rank {
    let underscores = name.bytes().take_while(|octet| *octet == b'_').count();
    (size > 0, binding != WEAK, binding == GLOBAL, Reverse(underscores), name.len())
}

/// The usual name by address, of functions that have several.
fn several(
    read: &impl Fn(u64, u64) -> Option<Vec<u8>>,
    sections: &[Section],
    symbols: &Section,
) -> Option<HashMap<u64, Rc<str>>> {
    let texts = sections.get(symbols.link)?;
    let (symbols, texts) = (read(symbols.offset, symbols.size)?, read(texts.offset, texts.size)?);
    // By address: its greatest name, and whether there is another.
    let mut found: HashMap<u64, (Rank, &str, bool)> = HashMap::new();
    for symbol in symbols.chunks_exact(SYMBOL) {
        let (kind, binding) = (symbol[4] & 0xf, symbol[4] >> 4);
        let is_defined = elf::u16_at(symbol, 6) != Some(0);
        if !is_defined || !matches!(kind, FUNCTION | INDIRECT_FUNCTION) {
            continue;
        }
        let (Some(name), Some(address), Some(size)) = (
            elf::u32_at(symbol, 0).and_then(|at| elf::text_at(&texts, at)),
            elf::u64_at(symbol, 8),
            elf::u64_at(symbol, 16),
        ) else {
            continue;
        };
        let rank = rank(size, binding, name);
        let (greatest, of_greatest, is_several) =
            found.entry(address).or_insert((rank, name, false));
        *is_several |= *of_greatest != name;
        if rank > *greatest {
            (*greatest, *of_greatest) = (rank, name);
        }
    }
    // Names that a compiler has mangled are all of one function, and shown otherwise.
    let is_mangled = |name: &str| name.starts_with("_Z") || name.starts_with("_R");
    let several =
        found.into_iter().filter(|(_, (_, name, is_several))| *is_several && !is_mangled(name));
    Some(several.map(|(address, (_, name, _))| (address, name.into())).collect())
}

/// The entries of the PLT.
fn entries(
    read: &impl Fn(u64, u64) -> Option<Vec<u8>>,
    sections: &[Section],
) -> Option<BTreeMap<u64, (u64, Rc<str>)>> {
    // By the address of a word, the function whose address it is given.
    let mut words: HashMap<u64, Rc<str>> = HashMap::new();
    for relocations in sections.iter().filter(|section| section.kind == RELOCATIONS) {
        let symbols = sections.get(relocations.link)?;
        let texts = sections.get(symbols.link)?;
        let (symbols, texts) = match symbols.kind {
            DYNAMIC_SYMBOLS => {
                (read(symbols.offset, symbols.size)?, read(texts.offset, texts.size)?)
            }
            // Of a static program, there are only those that ask.
            _ => (Vec::new(), Vec::new()),
        };
        for relocation in read(relocations.offset, relocations.size)?.chunks_exact(RELOCATION) {
            let word = elf::u64_at(relocation, 0)?;
            let (kind, symbol) = (elf::u32_at(relocation, 8)?, elf::u32_at(relocation, 12)?);
            let name = match kind {
                GLOBAL_DATA | JUMP_SLOT => {
                    let at = usize::try_from(symbol).ok()?.checked_mul(SYMBOL)?;
                    let name = elf::u32_at(&symbols, at).and_then(|at| elf::text_at(&texts, at));
                    name.filter(|name| !name.is_empty()).map(|name| format!("{name}@plt"))
                }
                INDIRECT => Some(format!("*ABS*+{:#x}@plt", elf::u64_at(relocation, 16)?)),
                _ => None,
            };
            words.extend(name.map(|name| (word, name.into())));
        }
    }
    let mut entries = BTreeMap::new();
    let is_plt = |of: &&Section| {
        of.kind == PROGRAM_BITS && [".plt", ".plt.sec", ".plt.got"].contains(&of.name.as_str())
    };
    for section in sections.iter().filter(is_plt) {
        let size = if (8..=64).contains(&section.entry) { section.entry } else { ENTRY };
        let code = read(section.offset, section.size)?;
        let of_entries = code.chunks_exact(usize::try_from(size).ok()?);
        for (begin, code) in
            (section.address..).step_by(usize::try_from(size).ok()?).zip(of_entries)
        {
            let jump = code.windows(JUMP.len() + 4).zip(0_u64..).find_map(|(code, into)| {
                let far = code.strip_prefix(&JUMP)?;
                let far = i32::from_le_bytes(*far.first_chunk()?);
                let next = begin.wrapping_add(into).wrapping_add(6);
                words.get(&next.wrapping_add_signed(far.into()))
            });
            if let Some(name) = jump {
                entries.insert(begin, (size, Rc::clone(name)));
            }
        }
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::tools::run;

    /// A program whose function has four names, and which calls others by its PLT; with the options given.
    fn program(directory: &tempfile::TempDir, options: &[&str]) -> String {
        let of = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let text = "#include <stdlib.h>\n#include <stdio.h>\n\
                    int __f(int of) { return of * 3 + rand(); }\n\
                    int f(int) __attribute__((alias(\"__f\")));\n\
                    int longer(int) __attribute__((alias(\"__f\")));\n\
                    int longest_and_weak(int) __attribute__((weak, alias(\"__f\")));\n\
                    int main(int count, char **words) { puts(words[0]); return f(count) + (int)(long)getenv(\"A\"); }\n";
        std::fs::write(of("a.c"), text).unwrap();
        let [source, program] = ["a.c", "a"].map(of);
        let mut command = vec!["gcc", "-O1", "-o", &program, &source];
        command.extend(options);
        run(&command);
        program
    }

    #[test]
    fn of_several_names_a_strong_global_one_with_few_underscores_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let program = program(&directory, &[]);
        let symbols = run(&["nm", &program]);
        let line = symbols.lines().find(|line| line.ends_with(" T __f")).unwrap();
        let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        let names = UsualNames::of(&File::open(&program).unwrap());
        assert_eq!(names.at(address).map(|name| &**name), Some("longer"));
        let main = symbols.lines().find(|line| line.ends_with(" T main")).unwrap();
        let main = u64::from_str_radix(main.split(' ').next().unwrap(), 16).unwrap();
        assert_eq!(names.at(main), None, "it has one name only");
    }

    #[test]
    fn entries_of_the_linkage_table_are_called_as_objdump_calls_them() {
        let directory = tempfile::tempdir().unwrap();
        for options in [
            &[][..],
            &["-fcf-protection=full", "-Wl,-z,lazy,-z,ibtplt"],
            &["-fno-pie", "-no-pie", "-Wl,-z,now"],
            &["-Wl,-s"],
        ] {
            let program = program(&directory, options);
            let told = run(&[
                "objdump",
                "-d",
                "--section=.plt",
                "--section=.plt.sec",
                "--section=.plt.got",
                &program,
            ]);
            let entry = |line: &str| {
                let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
                let name = name.split("@plt").next()?.to_owned();
                Some((u64::from_str_radix(address, 16).ok()?, name + "@plt"))
            };
            let told: Vec<_> = told.lines().filter_map(entry).collect();
            let names = UsualNames::of(&File::open(&program).unwrap());
            let mut seen = 0;
            for (address, name) in &told {
                for into in [0, 7] {
                    if let Some(found) = names.entry(address + into) {
                        assert_eq!(&**found, name, "{options:?} {told:?}");
                        seen += 1;
                    }
                }
            }
            // The first entry is for the loader, and of those that come in two parts one part jumps.
            assert_eq!(seen, 2 * names.entries().count(), "{told:?}");
            for called in ["puts@plt", "rand@plt", "getenv@plt"] {
                assert!(
                    names.entries().any(|(_, _, name)| &**name == called),
                    "{options:?}: {names:?}"
                );
            }
        }
        assert_eq!(UsualNames::of(&File::open("/proc/self/maps").unwrap()).entries().count(), 0);
    }

    #[test]
    fn files_that_are_cut_off_or_changed_have_fewer_names() {
        let directory = tempfile::tempdir().unwrap();
        let program = program(&directory, &[]);
        let whole = std::fs::read(&program).unwrap();
        let path = directory.path().join("changed");
        let mut random = 7_u64;
        for _ in 0..400 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mut octets = whole.clone();
            // Most of what matters is in the headers, at the begin and at the end.
            let near = [64, octets.len(), octets.len() - 2_048];
            let at = match random >> 62 {
                0 => (random >> 20) as usize % near[0],
                1 => near[2] + (random >> 20) as usize % 2_048,
                _ => (random >> 20) as usize % near[1],
            };
            octets[at] ^= random.to_le_bytes()[1] | 1;
            if random >> 61 & 1 == 1 {
                octets.truncate((random >> 30) as usize % whole.len());
            }
            std::fs::write(&path, &octets).unwrap();
            let names = UsualNames::of(&File::open(&path).unwrap());
            assert!(names.entries().count() < 64);
        }
    }
}
