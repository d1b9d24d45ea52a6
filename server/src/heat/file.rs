//! `FIRST.heat`, the rows beside a segment, in chunks that are appended.
//!
//! All numbers are little endian. A chunk is
//!
//! | octets | what |
//! | --- | --- |
//! | 0-3 | `MKHT` |
//! | 4-7 | version, 1 |
//! | 8-11 | octets of the body |
//! | 12-15 | CRC-32 of octets 16 to 47 and the body |
//! | 16-23, 24-31 | the least and the greatest second of its rows, since the epoch |
//! | 32-39 | number of the segment's last frame that it accounts for |
//! | 40-43 | CRC-32 of that frame's payload, by which another frame of that number is known |
//! | 44-47 | hosts that are new in it |
//! | 48- | for each new host an octet with the length of its name, and the name; then the rows |
//!
//! and a row of 78 octets is the host (4 octets: its number in the file, from 0), the CPU (4), the second (8),
//! the number of the frame (8), the samples (4) and an octet for each of the 50 tiles.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::TILES;
use super::core_seconds::CoreSecond;

const MAGIC: [u8; 4] = *b"MKHT";
const VERSION: u32 = 1;
const HEAD_LEN: usize = 48;
const ROW_LEN: usize = 28 + TILES;

/// Octets of a chunk's body at most; a longer one is none.
const BODY_MAX: usize = 64 << 20;

/// Where a chunk lies, and what it accounts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) at: u64,
    body_len: usize,
    crc: u32,
    /// The least and the greatest second of its rows.
    pub(super) seconds: (i64, i64),
    /// The last frame, and the checksum of its payload.
    pub(super) last: (u64, u32),
    new_hosts: u32,
}

impl Chunk {
    /// Where it ends.
    pub(super) fn end(&self) -> u64 {
        self.at + (HEAD_LEN + self.body_len) as u64
    }

    fn decode(head: &[u8; HEAD_LEN], at: u64) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(four(&head[at..]));
        let long = |at: usize| u64::from_le_bytes(eight(&head[at..]));
        let body_len = usize::try_from(word(8)).ok().filter(|len| *len <= BODY_MAX)?;
        let is_ours = head[..4] == MAGIC && word(4) == VERSION;
        is_ours.then(|| Self {
            at,
            body_len,
            crc: word(12),
            seconds: (long(16).cast_signed(), long(24).cast_signed()),
            last: (long(32), word(40)),
            new_hosts: word(44),
        })
    }
}

/// A row as it stands in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) host: u32,
    pub(super) cpu: u32,
    pub(super) second: i64,
    pub(super) samples: u32,
    pub(super) tiles: &'a [u8; TILES],
}

/// Reads a chunk's body into `body`; the new hosts' names and where the rows begin.
///
/// # Errors
/// When the file cannot be read, or the chunk is damaged.
pub(super) fn read_body(file: &File, chunk: &Chunk, body: &mut Vec<u8>) -> io::Result<Vec<String>> {
    body.resize(HEAD_LEN + chunk.body_len, 0);
    file.read_exact_at(body, chunk.at)?;
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a chunk of it is damaged");
    if crc32fast::hash(&body[16..]) != chunk.crc {
        return Err(damaged());
    }
    let (mut names, mut at) = (Vec::new(), HEAD_LEN);
    for _ in 0..chunk.new_hosts {
        let length = usize::from(*body.get(at).ok_or_else(damaged)?);
        let name = body.get(at + 1..at + 1 + length).ok_or_else(damaged)?;
        names.push(std::str::from_utf8(name).map_err(|_| damaged())?.to_owned());
        at += 1 + length;
    }
    if !(body.len() - at).is_multiple_of(ROW_LEN) {
        return Err(damaged());
    }
    body.drain(..at);
    Ok(names)
}

/// The rows of a body that was read.
pub(super) fn rows(body: &[u8]) -> impl Iterator<Item = Row<'_>> {
    let (rows, _) = body.as_chunks::<ROW_LEN>();
    rows.iter().map(|row| Row {
        host: u32::from_le_bytes(four(row)),
        cpu: u32::from_le_bytes(four(&row[4..])),
        second: i64::from_le_bytes(eight(&row[8..])),
        samples: u32::from_le_bytes(four(&row[24..])),
        tiles: row.last_chunk().expect("a row ends with its tiles"),
    })
}

fn four(octets: &[u8]) -> [u8; 4] {
    *octets.first_chunk().expect("callers have as many")
}

fn eight(octets: &[u8]) -> [u8; 8] {
    *octets.first_chunk().expect("callers have as many")
}

/// A file that rows are appended to.
#[derive(Debug)]
pub(super) struct HeatFile {
    file: File,
    end: u64,
    hosts: Vec<String>,
    /// The rows of the chunk that is being filled.
    rows: Vec<u8>,
    new_hosts: Vec<String>,
    seconds: Option<(i64, i64)>,
}

impl HeatFile {
    /// Opens a file, which is made where there is none, with the chunks of it for which `fits` holds one
    /// after another; what is behind them is cut off.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn open(
        path: &Path,
        mut fits: impl FnMut(&Chunk) -> bool,
    ) -> io::Result<(Self, Vec<Chunk>)> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        let (mut chunks, mut hosts, mut body) = (Vec::new(), Vec::new(), Vec::new());
        let (mut end, mut head) = (0, [0; HEAD_LEN]);
        while length - end >= HEAD_LEN as u64 {
            file.read_exact_at(&mut head, end)?;
            let chunk = Chunk::decode(&head, end).filter(|chunk| chunk.end() <= length);
            let Some(chunk) = chunk.filter(&mut fits) else { break };
            match read_body(&file, &chunk, &mut body) {
                Ok(names) => hosts.extend(names),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => break,
                Err(error) => return Err(error),
            }
            end = chunk.end();
            chunks.push(chunk);
        }
        file.set_len(end)?;
        let (rows, new_hosts, seconds) = (Vec::new(), Vec::new(), None);
        Ok((Self { file, end, hosts, rows, new_hosts, seconds }, chunks))
    }

    /// The hosts of the file by their numbers.
    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Adds rows of a frame to the chunk that is being filled.
    pub(super) fn add(&mut self, frame: u64, rows: &[CoreSecond]) {
        for CoreSecond { host, cpu, second, samples, tiles } in rows {
            let number = self.number_of(host);
            self.rows.extend_from_slice(&number.to_le_bytes());
            self.rows.extend_from_slice(&cpu.to_le_bytes());
            self.rows.extend_from_slice(&second.to_le_bytes());
            self.rows.extend_from_slice(&frame.to_le_bytes());
            self.rows.extend_from_slice(&samples.to_le_bytes());
            self.rows.extend_from_slice(tiles);
            let (least, greatest) = self.seconds.unwrap_or((*second, *second));
            self.seconds = Some((least.min(*second), greatest.max(*second)));
        }
    }

    /// Octets of rows in the chunk that is being filled.
    pub(super) fn pending(&self) -> usize {
        self.rows.len()
    }

    fn number_of(&mut self, host: &str) -> u32 {
        // Names longer than a block can be sent with do not occur; of a longer one the beginning counts.
        let host = &host[..host.floor_char_boundary(usize::from(u8::MAX))];
        let at = self.hosts.iter().position(|known| known == host).unwrap_or_else(|| {
            self.hosts.push(host.to_owned());
            self.new_hosts.push(host.to_owned());
            self.hosts.len() - 1
        });
        u32::try_from(at).expect("hosts fit the memory")
    }

    /// Appends the chunk, which accounts for all frames up to `last`; `None` when it has no rows.
    ///
    /// # Errors
    /// When the system refuses; the rows are gone then, and the file ends as it did.
    pub(super) fn append(&mut self, last: (u64, u32)) -> io::Result<Option<Chunk>> {
        let Some((least, greatest)) = self.seconds.take() else { return Ok(None) };
        let rows = std::mem::take(&mut self.rows);
        let new_hosts = std::mem::take(&mut self.new_hosts);
        let mut body = Vec::with_capacity(rows.len());
        for host in &new_hosts {
            body.push(u8::try_from(host.len()).expect("it was cut to 255 octets"));
            body.extend_from_slice(host.as_bytes());
        }
        body.extend_from_slice(&rows);
        let narrow = |count: usize| u32::try_from(count).expect("a chunk is bounded by BODY_MAX");
        let mut octets = Vec::with_capacity(HEAD_LEN + body.len());
        octets.extend_from_slice(&MAGIC);
        octets.extend_from_slice(&VERSION.to_le_bytes());
        octets.extend_from_slice(&narrow(body.len()).to_le_bytes());
        octets.extend_from_slice(&[0; 4]);
        octets.extend_from_slice(&least.to_le_bytes());
        octets.extend_from_slice(&greatest.to_le_bytes());
        octets.extend_from_slice(&last.0.to_le_bytes());
        octets.extend_from_slice(&last.1.to_le_bytes());
        octets.extend_from_slice(&narrow(new_hosts.len()).to_le_bytes());
        octets.extend_from_slice(&body);
        let crc = crc32fast::hash(&octets[16..]);
        octets[12..16].copy_from_slice(&crc.to_le_bytes());
        if let Err(error) = self.file.write_all(&octets) {
            // Nothing is appended behind a part.
            self.file.set_len(self.end)?;
            return Err(error);
        }
        let head = octets.first_chunk().expect("a chunk has a head");
        let chunk = Chunk::decode(head, self.end).expect("it was made here");
        self.end = chunk.end();
        Ok(Some(chunk))
    }
}
