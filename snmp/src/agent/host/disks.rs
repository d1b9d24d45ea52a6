//! File systems on disks of this host (UCD-SNMP-MIB dskTable, RFC 2790 hrStorageTable).

use std::fs;
use std::io;

use super::{Roots, integer, low};
use crate::{Oid, Value};

/// A mounted file system.
#[derive(Debug)]
pub(super) struct Disk {
    device: String,
    path: String,
    /// Read when first asked for.
    space: Option<Space>,
}

#[derive(Debug, Clone, Copy)]
struct Space {
    block_bytes: u64,
    blocks: u64,
    free: u64,
    available: u64,
}

/// Every file system on a block device, in the order in which they were mounted.
pub(super) fn read(roots: &Roots) -> io::Result<Vec<Disk>> {
    let text = fs::read_to_string(roots.proc.join("self/mounts"))?;
    let mut disks: Vec<Disk> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(device), Some(path)) = (words.next(), words.next()) else { continue };
        let path = unescaped(path);
        let known = disks.iter().any(|disk| disk.path == path);
        if device.starts_with("/dev/") && !known {
            disks.push(Disk { device: device.to_owned(), path, space: None });
        }
    }
    Ok(disks)
}

/// A path of /proc/mounts, where blanks and the like stand as `\040`.
fn unescaped(text: &str) -> String {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..3).filter(|_| *first == b'\\');
        let octet = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        octets.push(octet.unwrap_or(*first));
        rest = if octet.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&octets).into_owned()
}

fn space(path: &str) -> Option<Space> {
    let answer = rustix::fs::statvfs(path).ok()?;
    Some(Space {
        block_bytes: answer.f_frsize,
        blocks: answer.f_blocks,
        free: answer.f_bfree,
        available: answer.f_bavail,
    })
}

impl Disk {
    fn space(&mut self) -> Option<Space> {
        if self.space.is_none() {
            self.space = space(&self.path);
        }
        self.space
    }

    /// Column of dskTable.
    pub(super) fn cell(&mut self, column: u32) -> Option<Value> {
        match column {
            2 => return Some(Value::OctetString(self.path.clone().into_bytes())),
            3 => return Some(Value::OctetString(self.device.clone().into_bytes())),
            100 => return Some(Value::Integer(0)),
            _ => {}
        }
        let space = self.space()?;
        let kib = |blocks: u64| blocks.saturating_mul(space.block_bytes) / 1024;
        let total = kib(space.blocks);
        let available = kib(space.available);
        let used = kib(space.blocks.saturating_sub(space.free));
        let high = |kib: u64| Value::Gauge32(low(kib >> 32));
        Some(match column {
            6 => integer(total),
            7 => integer(available),
            8 => integer(used),
            // Of what users can have, rounded to the nearest, as df(1) and net-snmp reckon it.
            9 => {
                let usable = used + available;
                integer((used * 100 + usable / 2).checked_div(usable).unwrap_or(0))
            }
            11 => Value::Gauge32(low(total)),
            12 => high(total),
            13 => Value::Gauge32(low(available)),
            14 => high(available),
            15 => Value::Gauge32(low(used)),
            16 => high(used),
            _ => return None,
        })
    }

    /// Column of hrStorageTable. Units grow until the size fits 31 bits.
    pub(super) fn storage_cell(&mut self, column: u32) -> Option<Value> {
        match column {
            // hrStorageFixedDisk.
            2 => return Some(Value::ObjectId(Oid::from_slice(&[1, 3, 6, 1, 2, 1, 25, 2, 1, 4]))),
            3 => return Some(Value::OctetString(self.path.clone().into_bytes())),
            _ => {}
        }
        let space = self.space()?;
        let mut shift = 0;
        while space.blocks >> shift > 0x7fff_ffff {
            shift += 1;
        }
        Some(match column {
            4 => integer(space.block_bytes << shift),
            5 => integer(space.blocks >> shift),
            6 => integer(space.blocks.saturating_sub(space.free) >> shift),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_block_devices_are_served_once_each() {
        let directory = tempfile::tempdir().unwrap();
        let roots = Roots { proc: directory.path().into(), sys: directory.path().into() };
        fs::create_dir(directory.path().join("self")).unwrap();
        let mounts = "proc /proc proc rw 0 0\n/dev/vda1 / ext4 rw 0 0\n\
                      server:/home /home nfs4 rw 0 0\n/dev/sdb /my\\040disk xfs rw 0 0\n\
                      /dev/vda1 / ext4 rw 0 0\n";
        fs::write(directory.path().join("self/mounts"), mounts).unwrap();
        let disks = read(&roots).unwrap();
        let paths: Vec<&str> = disks.iter().map(|disk| disk.path.as_str()).collect();
        assert_eq!(paths, ["/", "/my disk"]);
    }
}
