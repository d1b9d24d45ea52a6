//! What takes the room in a program: its sections, and its code by the crate that it was written in.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::program::program;

/// Crates that are named.
const CRATES_SHOWN: usize = 12;

/// Prints what takes the room in `built`, which has symbols, and how large it is as installed; whether
/// that is at most `bytes_max`.
pub(crate) fn told(
    root: &Path,
    built: &Path,
    installed: &Path,
    bytes_max: u64,
) -> anyhow::Result<bool> {
    let bytes = fs::metadata(installed)
        .with_context(|| format!("cannot read `{}`", installed.display()))?
        .len();
    let megabytes =
        |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    println!("{}: {} without debug information", installed.display(), megabytes(bytes));
    let sections = program(root, "size", &["-A", &installed.to_string_lossy()]).output()?;
    let mut sections: Vec<_> = sections.lines().filter_map(section).collect();
    sections.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let shown: Vec<_> = sections
        .iter()
        .take(6)
        .map(|(name, bytes)| format!("{name} {}", megabytes(*bytes)))
        .collect();
    println!("  {}", shown.join(", "));
    let names = ["--print-size", "--defined-only", "--demangle=rust"];
    let symbols =
        program(root, "nm", &[&names[..], &[&built.to_string_lossy()]].concat()).output()?;
    let crates = by_crate(&symbols);
    let shown: Vec<_> = crates
        .iter()
        .take(CRATES_SHOWN)
        .map(|(name, bytes)| format!("{name} {}", megabytes(*bytes)))
        .collect();
    println!("  code by crate: {}", shown.join(", "));
    if bytes > bytes_max {
        println!("  that is more than {}", megabytes(bytes_max));
    }
    Ok(bytes <= bytes_max)
}

/// A section and its size, from a line of `size -A`.
fn section(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|name| name.starts_with('.'))?;
    Some((name, words.next()?.parse().ok()?))
}

/// Octets of code by crate, the largest first, from the lines of `nm --print-size`. A generic function
/// counts where it was written, whoever uses it.
fn by_crate(symbols: &str) -> Vec<(&str, u64)> {
    let mut crates = BTreeMap::new();
    let mut last = "";
    for line in symbols.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(address), Some(size), Some(kind), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        // Functions that were found to be the same have one address and several names.
        if address == last || !matches!(kind, "t" | "T" | "w" | "W") {
            continue;
        }
        last = address;
        let Ok(size) = u64::from_str_radix(size, 16) else { continue };
        *crates.entry(crate_of(name)).or_insert(0) += size;
    }
    let mut crates: Vec<_> = crates.into_iter().collect();
    crates.sort_by_key(|&(name, bytes)| (std::cmp::Reverse(bytes), name));
    crates
}

/// The crate in `arrow_cast::cast::run`, `<alloc::vec::Vec<T> as core::fmt::Debug>::fmt` or
/// `<&mut [u8] as std::io::Read>::read`; what is not of Rust counts as C.
fn crate_of(name: &str) -> &str {
    if !name.contains("::") {
        return "C";
    }
    let name = name.trim_start_matches(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let name = ["mut ", "dyn ", "const "]
        .iter()
        .fold(name, |name, word| name.strip_prefix(word).unwrap_or(name));
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_counts_where_it_was_written_and_once_an_address() {
        let symbols = "\
0000000000001000 0000000000000010 t arrow_cast::cast::run
0000000000001000 0000000000000010 t arrow_cast::cast::run_again
0000000000002000 0000000000000100 T <arrow_cast::Mode as core::fmt::Debug>::fmt
0000000000003000 0000000000000020 t <&mut core::fmt::Formatter as core::fmt::Write>::write_str
0000000000004000 0000000000000008 T ZSTD_compress
0000000000005000 0000000000001000 R meikyo::TABLE
0000000000006000 t no_size::here";
        assert_eq!(by_crate(symbols), [("arrow_cast", 272), ("core", 32), ("C", 8)]);
    }

    #[test]
    fn sections_are_those_with_a_dot() {
        let lines = "meikyo  :\nsection  size  addr\n.text  160  4096\nTotal  160\n";
        let found: Vec<_> = lines.lines().filter_map(section).collect();
        assert_eq!(found, [(".text", 160)]);
    }
}
