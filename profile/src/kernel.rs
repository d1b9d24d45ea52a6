//! The kernel of this host: which one it is, and where it lies since it was booted.
//!
//! A kernel lies somewhere else after each boot (KASLR), and so do its modules, each on its own. Kept
//! beside samples are therefore the build ID, where the kernel's own text lies, which says by how much
//! it has moved since, and the boot, on which everything lies as it lay.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};

use crate::mapping::{Mapping, hexadecimal};

/// What the kernel is called in `mappings`.
pub(crate) const KERNEL: &str = "[kernel]";

/// What everything else that the kernel runs is called in `mappings`, whose `build_id` is that of the
/// boot.
pub(crate) const BOOT: &str = "[boot]";

/// Where the kernel's addresses begin.
pub(crate) const KERNEL_BEGIN: u64 = 1 << 63;

/// A kernel as it lies on a host since a boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelFacts {
    /// Its build ID, hexadecimal.
    pub build_id: Option<String>,
    /// Where its own text begins and how far it goes; `None` where that is hidden from this user.
    pub text: Option<(u64, u64)>,
    /// The boot, hexadecimal.
    pub boot: Option<String>,
}

/// Why an address of another boot cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// Another kernel ran, or it is not known which.
    OtherKernel,
    /// The same kernel ran, but what lies outside of its own text lies elsewhere in each boot.
    OtherBoot,
}

impl KernelFacts {
    /// The kernel that runs.
    pub fn of_this_host() -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let symbols = File::open("/proc/kallsyms").ok();
        Self {
            build_id: gnu_build_id(&fs::read("/sys/kernel/notes").unwrap_or_default()),
            text: symbols.and_then(|symbols| text_of(BufReader::new(symbols))),
            boot: boot.map(|boot| boot.trim().replace('-', "")),
        }
    }

    /// Its rows of `mappings`.
    pub(crate) fn mappings(self) -> impl Iterator<Item = Mapping> {
        let whole = (KERNEL_BEGIN, u64::MAX - KERNEL_BEGIN);
        let row = |path: &str, (address, size), build_id| Mapping {
            pid: None,
            address,
            size,
            offset: 0,
            path: path.into(),
            build_id,
            inode: None,
        };
        let boot = self.boot.map(|boot| row(BOOT, whole, Some(boot)));
        [row(KERNEL, self.text.unwrap_or(whole), self.build_id)].into_iter().chain(boot)
    }

    /// Takes a row of `mappings` of the kernel.
    pub(crate) fn take(&mut self, path: &str, [address, size]: [u64; 2], build_id: Option<&str>) {
        match path {
            KERNEL => {
                self.build_id = build_id.map(str::to_owned);
                self.text = (address > KERNEL_BEGIN).then_some((address, size));
            }
            BOOT => self.boot = build_id.map(str::to_owned),
            _ => {}
        }
    }

    /// Where an address of this kernel lies in the one that runs now.
    pub(crate) fn address_in(&self, now: &Self, address: u64) -> Result<u64, Elsewhere> {
        if self.boot.is_some() && self.boot == now.boot {
            return Ok(address);
        }
        if self.build_id.is_none() || self.build_id != now.build_id {
            return Err(Elsewhere::OtherKernel);
        }
        let (Some((begin, size)), Some((begin_now, _))) = (self.text, now.text) else {
            return Err(Elsewhere::OtherBoot);
        };
        match address.checked_sub(begin) {
            Some(into) if into < size => Ok(begin_now.wrapping_add(into)),
            _ => Err(Elsewhere::OtherBoot),
        }
    }
}

/// Whether the kernel tells this user where its functions are.
pub fn kernel_has_names() -> bool {
    File::open("/proc/kallsyms").is_ok_and(|symbols| has_addresses(BufReader::new(symbols)))
}

/// Whether any symbol has an address: older kernels put those of each CPU at 0 before all others.
fn has_addresses(symbols: impl BufRead) -> bool {
    symbols.lines().map_while(Result::ok).any(|line| address_of(&line).is_some_and(|at| at != 0))
}

/// Where the kernel's own text begins and how far it goes, in the lines of `/proc/kallsyms`.
fn text_of(symbols: impl BufRead) -> Option<(u64, u64)> {
    let mut begin = None;
    for line in symbols.lines().map_while(Result::ok) {
        match line.split(' ').nth(2) {
            Some("_text") => begin = address_of(&line).filter(|&at| at != 0),
            Some("_etext") => {
                let begin = begin?;
                return Some((begin, address_of(&line)?.checked_sub(begin)?));
            }
            _ => {}
        }
    }
    None
}

fn address_of(line: &str) -> Option<u64> {
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

/// The build ID among ELF notes: lengths of name and description, type, name, description, each
/// padded to 4 octets.
fn gnu_build_id(mut notes: &[u8]) -> Option<String> {
    const GNU_BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_at_checked(12)?;
        let word = |at: usize| head[at..at + 4].try_into().ok().map(u32::from_le_bytes);
        let [name, description] = [word(0)?, word(4)?].map(|length| usize::try_from(length).ok());
        let (name, description) = (name?, description?);
        let (of_name, rest) = rest.split_at_checked(name.next_multiple_of(4))?;
        let (of_description, rest) = rest.split_at_checked(description.next_multiple_of(4))?;
        if word(8)? == GNU_BUILD_ID && of_name.starts_with(b"GNU\0") {
            return Some(hexadecimal(&of_description[..description]));
        }
        notes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first lines as Linux 5.10 has them for root, and what follows on every kernel.
    const SYMBOLS: &str = "0000000000000000 A fixed_percpu_data\n\
                           0000000000000000 A __per_cpu_start\n\
                           ffffffff81000000 T _stext\n\
                           ffffffff81000000 T _text\n\
                           ffffffff81000100 T f\n\
                           ffffffff81002000 T _etext\n\
                           ffffffffc0400000 t g\t[module]\n";

    #[test]
    fn symbols_of_each_cpu_at_0_hide_nothing_and_all_at_0_hide_everything() {
        assert!(has_addresses(SYMBOLS.as_bytes()));
        assert_eq!(text_of(SYMBOLS.as_bytes()), Some((0xffff_ffff_8100_0000, 0x2000)));
        let hidden: String =
            SYMBOLS.lines().map(|line| format!("{:016}{}\n", 0, &line[16..])).collect();
        assert!(!has_addresses(hidden.as_bytes()));
        assert_eq!(text_of(hidden.as_bytes()), None);
    }

    #[test]
    fn a_kernel_that_has_moved_is_followed_and_its_modules_are_not() {
        let text = |begin| Some((begin, 0x2000));
        let facts = |build_id: &str, begin, boot: &str| KernelFacts {
            build_id: Some(build_id.to_owned()),
            text: text(begin),
            boot: Some(boot.to_owned()),
        };
        let (begin, module) = (0xffff_ffff_8100_0000, 0xffff_ffff_c040_0000);
        let then = facts("aa", begin, "1");
        let moved = facts("aa", begin + 0x400_0000, "2");
        assert_eq!(then.address_in(&moved, begin + 0x100), Ok(begin + 0x400_0100));
        assert_eq!(moved.address_in(&then, begin + 0x400_0100), Ok(begin + 0x100));
        assert_eq!(then.address_in(&moved, begin + 0x2000), Err(Elsewhere::OtherBoot));
        // Without KASLR too: modules are loaded in another order.
        let again = facts("aa", begin, "2");
        assert_eq!(then.address_in(&again, module), Err(Elsewhere::OtherBoot));
        assert_eq!(then.address_in(&then, module), Ok(module));
        let other = facts("bb", begin, "3");
        assert_eq!(then.address_in(&other, begin + 0x100), Err(Elsewhere::OtherKernel));
        // What was recorded where the kernel hides its addresses, or says nothing of itself.
        let hidden = KernelFacts { text: None, ..facts("aa", 0, "1") };
        assert_eq!(hidden.address_in(&moved, begin), Err(Elsewhere::OtherBoot));
        let nothing = KernelFacts::default();
        assert_eq!(nothing.address_in(&KernelFacts::default(), 9), Err(Elsewhere::OtherKernel));
    }

    #[test]
    fn what_is_known_of_a_kernel_goes_through_rows_and_back() {
        let here = KernelFacts::of_this_host();
        let mut read = KernelFacts::default();
        for row in here.clone().mappings() {
            read.take(&row.path, [row.address, row.size], row.build_id.as_deref());
        }
        assert_eq!(read, here);
        assert!(here.boot.is_some_and(|boot| boot.len() == 32));
        assert_eq!(here.text.is_some(), kernel_has_names());
    }

    #[test]
    fn build_ids_stand_in_notes_behind_others() {
        let mut notes = Vec::new();
        for (name, kind, description) in
            [(&b"Linux\0"[..], 257_u32, &[1, 2, 3][..]), (b"GNU\0", 3, &[0xab, 0, 0x1f])]
        {
            for number in [name.len(), description.len()] {
                notes.extend_from_slice(&u32::try_from(number).unwrap().to_le_bytes());
            }
            notes.extend_from_slice(&kind.to_le_bytes());
            for octets in [name, description] {
                notes.extend_from_slice(octets);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        }
        assert_eq!(gnu_build_id(&notes).as_deref(), Some("ab001f"));
        assert_eq!(gnu_build_id(&notes[..notes.len() - 1]), None);
    }
}
