//! Code that is mapped, and which file it is from.

/// Code that is mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The process; `None` for the kernel.
    pub(crate) pid: Option<u32>,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) offset: u64,
    pub(crate) path: String,
    /// Hexadecimal.
    pub(crate) build_id: Option<String>,
    /// Where the file has no build ID.
    pub(crate) inode: Option<u64>,
}

/// Octets as the text of a build ID.
pub(crate) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
