//! The arrays that a program has named: where they lie, and how they are filled again.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use meikyo_checkpoint::daemon::{Offered, Place};
use meikyo_checkpoint::image::{Array, HEAD_BYTES, Rank, Table, runs};

use crate::error::ClientError;
use crate::shadow::Original;

/// What a program says of an array.
pub(crate) type Described = Array;

/// Octets of an element of a type; `None` where there is no such type.
pub(crate) fn element_bytes(element: &str) -> Option<u32> {
    Some(match element {
        "i8" | "u8" => 1,
        "i16" | "u16" => 2,
        "f32" | "i32" | "u32" => 4,
        "f64" | "i64" | "u64" | "c64" => 8,
        "c128" => 16,
        _ => return None,
    })
}

/// Where an array lies.
#[derive(Debug)]
enum Memory {
    /// In the program's own memory, at this address.
    Own(usize),
    /// In a memory file that is mapped at this address.
    Shared { address: usize, bytes: usize, file: OwnedFd },
    /// Here: the length of an output file when it was saved.
    Length { path: String, octets: Box<[u8; 8]> },
}

/// All arrays of a rank, by name.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    arrays: BTreeMap<String, (Described, Memory)>,
}

/// An image of a host, and what it holds.
#[derive(Debug)]
pub(crate) struct Image {
    path: PathBuf,
    file: File,
    table: Table,
    begin: u64,
}

impl Image {
    pub(crate) fn open(path: &Path) -> Result<Self, ClientError> {
        let read = |source| ClientError::Read { path: path.to_owned(), source };
        let what = |source| ClientError::Image { path: path.to_owned(), source };
        let file = File::open(path).map_err(read)?;
        let mut head = [0; HEAD_BYTES];
        file.read_exact_at(&mut head, 0).map_err(read)?;
        let len = Table::announced(&head).map_err(what)?;
        let mut table = vec![0; usize::try_from(len).expect("a table is short")];
        file.read_exact_at(&mut table, HEAD_BYTES as u64).map_err(read)?;
        let table = Table::read(&head, &table).map_err(what)?;
        let begin = (HEAD_BYTES as u64 + len).next_multiple_of(64);
        Ok(Self { path: path.to_owned(), file, table, begin })
    }

    /// Whether this rank of as many ranks has saved in it.
    pub(crate) fn has(&self, rank: u32, ranks: u32) -> bool {
        self.table.ranks.iter().any(|saved| (saved.rank, saved.ranks) == (rank, ranks))
    }

    fn read(&self, at: u64, target: &mut [u8]) -> Result<(), ClientError> {
        let read = |source| ClientError::Read { path: self.path.clone(), source };
        self.file.read_exact_at(target, self.begin + at).map_err(read)
    }
}

impl Arrays {
    /// Names an array of the program's own.
    pub(crate) fn protect(&mut self, array: Described, data: *mut u8) -> Result<(), ClientError> {
        self.insert(array, Memory::Own(data.expose_provenance()))
    }

    fn insert(&mut self, array: Described, memory: Memory) -> Result<(), ClientError> {
        let name = array.name.clone();
        if array.bytes().is_none() {
            return Err(ClientError::TooLarge(name));
        }
        if self.arrays.contains_key(&name) {
            return Err(ClientError::Twice(name));
        }
        self.arrays.insert(name, (array, memory));
        Ok(())
    }

    /// Has the length of a file saved, and the file cut back to it.
    pub(crate) fn file(&mut self, path: String) {
        let array = Array {
            name: format!("file:{path}"),
            element: "u8".to_owned(),
            element_bytes: 1,
            shape: vec![8],
            whole: Vec::new(),
            first: Vec::new(),
        };
        let octets = Box::new(u64::MAX.to_le_bytes());
        self.arrays.insert(array.name.clone(), (array, Memory::Length { path, octets }));
    }

    /// Makes an array in a memory file: zeros at first.
    #[expect(unsafe_code, reason = "memory files are mapped by the system")]
    pub(crate) fn allocate(&mut self, array: Described) -> Result<*mut u8, ClientError> {
        let bytes = array.bytes().and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| ClientError::TooLarge(array.name.clone()))?;
        let no_memory = |source| ClientError::Memory { name: array.name.clone(), source };
        let label = CString::new("meikyo").expect("it has no zeros");
        // SAFETY: the label is a string that ends with a zero.
        let made = unsafe { libc::memfd_create(label.as_ptr(), libc::MFD_CLOEXEC) };
        if made < 0 {
            return Err(no_memory(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was made just now and belongs to nobody else.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(made) });
        file.set_len(bytes as u64).map_err(no_memory)?;
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let len = bytes.max(1);
        // SAFETY: a new mapping of a file that is as long as is mapped, at an address of the kernel's choice.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, file.as_raw_fd(), 0) };
        if address == libc::MAP_FAILED {
            return Err(no_memory(io::Error::last_os_error()));
        }
        let data: *mut u8 = address.cast();
        let shared =
            Memory::Shared { address: data.expose_provenance(), bytes: len, file: file.into() };
        self.insert(array, shared)?;
        Ok(data)
    }

    /// What the daemon is told of arrays that it reads where they are.
    pub(crate) fn offered(&self) -> Vec<Offered> {
        let offered = self.arrays.values().map(|(array, memory)| {
            let place = match memory {
                Memory::Own(address) => Place::Address(*address as u64),
                Memory::Shared { file, .. } => Place::Descriptor(file.as_raw_fd()),
                Memory::Length { octets, .. } => Place::Address(octets.as_ptr().addr() as u64),
            };
            Offered { array: array.clone(), place }
        });
        offered.collect()
    }

    /// What the daemon is told of arrays that it reads out of their copy.
    pub(crate) fn offered_of(&self, originals: &[Original]) -> Vec<Offered> {
        let arrays = self.arrays.values().zip(originals);
        let offered = arrays.map(|((array, _), original)| Offered {
            array: array.clone(),
            place: Place::Shadow(original.at as u64),
        });
        offered.collect()
    }

    /// Notes the lengths of output files as they are at this moment.
    pub(crate) fn note_lengths(&mut self) {
        for (_, memory) in self.arrays.values_mut() {
            if let Memory::Length { path, octets } = memory {
                // A file that is not there yet will be cut to nothing.
                let len = fs::metadata(path).map_or(0, |state| state.len());
                **octets = len.to_le_bytes();
            }
        }
    }

    /// Where the memory of all arrays lies, in the order in which they are offered.
    pub(crate) fn memories(&self) -> impl Iterator<Item = Range<usize>> {
        self.arrays.values().map(|(array, memory)| {
            let bytes = array.bytes().and_then(|bytes| usize::try_from(bytes).ok());
            let bytes = bytes.expect("it was looked at when it was named");
            let begin = match memory {
                Memory::Own(address) | Memory::Shared { address, .. } => *address,
                Memory::Length { octets, .. } => octets.as_ptr().addr(),
            };
            begin..begin + bytes
        })
    }

    /// Whether every array is a block of one that all ranks share, so that any number of ranks can go on.
    fn alone(&self) -> Option<&str> {
        let is_alone = |array: &&Described| array.whole.is_empty();
        self.arrays.values().map(|(array, _)| array).find(is_alone).map(|array| &*array.name)
    }

    /// Fills all arrays with what this rank has saved.
    pub(crate) fn fill_own(&mut self, image: &Image, own: (u32, u32)) -> Result<(), ClientError> {
        self.fill(|wanted, target| {
            let is_own = |rank: &Rank| (rank.rank, rank.ranks) == own;
            let mut saved = image.table.arrays();
            let found = saved.find(|(rank, array, _)| is_own(rank) && array.name == wanted.name);
            let (_, array, begin) =
                found.ok_or_else(|| ClientError::Missing(wanted.name.clone()))?;
            if array != wanted {
                return Err(ClientError::Other(wanted.name.clone()));
            }
            image.read(begin, target)
        })
    }

    /// Fills all arrays with what any rank has saved of them.
    pub(crate) fn fill_from_all(&mut self, images: &[Image]) -> Result<(), ClientError> {
        if let Some(name) = self.alone() {
            return Err(ClientError::Alone(name.to_owned()));
        }
        self.fill(|wanted, target| {
            let mut filled = 0;
            for image in images {
                for (_, saved, begin) in image.table.arrays() {
                    for run in runs(saved, wanted).unwrap_or_default() {
                        let [to, bytes] = [run.to, run.bytes]
                            .map(|at| usize::try_from(at).expect("an array fits memory"));
                        image.read(begin + run.from, &mut target[to..to + bytes])?;
                        filled += run.bytes;
                    }
                }
            }
            // Blocks of ranks do not overlap, so that as many octets as it has are all of it.
            if filled == target.len() as u64 {
                Ok(())
            } else {
                Err(ClientError::Missing(wanted.name.clone()))
            }
        })
    }

    #[expect(unsafe_code, reason = "arrays are memory of the program")]
    fn fill(
        &mut self,
        mut fill: impl FnMut(&Described, &mut [u8]) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        for (array, memory) in self.arrays.values_mut() {
            let bytes = array.bytes().and_then(|bytes| usize::try_from(bytes).ok());
            let bytes = bytes.expect("it was looked at when it was named");
            match memory {
                Memory::Length { path, octets } => {
                    fill(array, &mut **octets)?;
                    let len = u64::from_le_bytes(**octets);
                    let write = |source| ClientError::Cut { path: PathBuf::from(&*path), source };
                    match OpenOptions::new().write(true).open(&*path) {
                        Ok(file) => file.set_len(len).map_err(write)?,
                        Err(error) if error.kind() == io::ErrorKind::NotFound && len == 0 => {}
                        Err(error) => return Err(write(error)),
                    }
                }
                Memory::Own(address) | Memory::Shared { address, .. } if bytes > 0 => {
                    let data = std::ptr::with_exposed_provenance_mut::<u8>(*address);
                    // SAFETY: the program has said that so much memory of its own lies there and stays, and it waits
                    // for this call.
                    let target = unsafe { std::slice::from_raw_parts_mut(data, bytes) };
                    fill(array, target)?;
                }
                Memory::Own(_) | Memory::Shared { .. } => {}
            }
        }
        Ok(())
    }
}

impl Drop for Arrays {
    #[expect(unsafe_code, reason = "memory files are mapped by the system")]
    fn drop(&mut self) {
        for (_, memory) in self.arrays.values() {
            if let Memory::Shared { address, bytes, .. } = memory {
                let data = std::ptr::with_exposed_provenance_mut(*address);
                // SAFETY: it was mapped so, and the program does not use it after its end.
                unsafe { libc::munmap(data, *bytes) };
            }
        }
    }
}
