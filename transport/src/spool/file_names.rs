//! What the files of a spool are called.

pub(super) fn file_name(number: u64) -> String {
    format!("{number:016x}.spool")
}

/// The file whose being there says that a life has nothing in memory only.
pub(super) fn vouching_name(boot: u64) -> String {
    format!("{boot:016x}.whole")
}

pub(super) fn vouched_life(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_suffix(".whole")?, 16).ok()
}

pub(super) fn file_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_suffix(".spool")?, 16).ok()
}
