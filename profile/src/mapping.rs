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

impl Mapping {
    /// What the kernel tells of a mapping: process, place in memory and in the file, and the file.
    pub(crate) fn told(
        pid: u32,
        [address, size, offset]: [u64; 3],
        (path, build_id, inode): (&[u8], &[u8], u64),
    ) -> Self {
        Self {
            pid: Some(pid),
            address,
            size,
            offset,
            path: String::from_utf8_lossy(path).into_owned(),
            build_id: (!build_id.is_empty()).then(|| hexadecimal(build_id)),
            inode: Some(inode).filter(|&inode| inode != 0),
        }
    }
}

/// Octets as the text of a build ID.
pub(crate) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
