//! Load, CPU, memory and names from /proc (UCD-SNMP-MIB, RFC 2790).

use std::fs;

use super::{Roots, integer, low};
use crate::{Oid, Value};

fn file(roots: &Roots, name: &str) -> Option<String> {
    fs::read_to_string(roots.proc.join(name)).ok()
}

/// What the kernel calls this host.
pub(super) fn host_name(roots: &Roots) -> String {
    file(roots, "sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// What `uname -a` says.
pub(super) fn description(roots: &Roots) -> String {
    let part = |name: &str| {
        file(roots, &format!("sys/kernel/{name}")).unwrap_or_default().trim().to_owned()
    };
    let architecture = std::env::consts::ARCH;
    let parts = [part("ostype"), part("hostname"), part("osrelease"), part("version")];
    format!("{} {architecture}", parts.join(" "))
}

/// Hundredths of a second since the machine started, from /proc/uptime.
pub(super) fn uptime_cs(roots: &Roots) -> Option<u64> {
    hundredths(file(roots, "uptime")?.split_whitespace().next()?)
}

/// A decimal number with up to two decimals, in hundredths.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction: u64 = format!("{fraction:0<2}").get(..2)?.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 100 + fraction)
}

/// The three load averages in hundredths, from /proc/loadavg.
pub(super) fn load(roots: &Roots) -> Option<[u64; 3]> {
    let text = file(roots, "loadavg")?;
    let mut terms = text.split_whitespace().map(hundredths);
    Some([terms.next()??, terms.next()??, terms.next()??])
}

/// Column of laTable.
pub(super) fn load_cell(hundredths: u64, column: u32) -> Option<Value> {
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    Some(match column {
        3 => Value::OctetString(text.into_bytes()),
        5 => integer(hundredths),
        6 => {
            // An opaque float: the type 0x9f78 and four octets (NET-SNMP-TC Float).
            let float: f32 = text.parse().ok()?;
            let [a, b, c, d] = float.to_be_bytes();
            Value::Opaque(vec![0x9f, 0x78, 4, a, b, c, d])
        }
        _ => return None,
    })
}

/// Ticks of 1/100 s over all CPUs, in the order of the line `cpu` of /proc/stat.
#[derive(Debug)]
pub(super) struct Cpu([u64; 10]);

/// CPU time from /proc/stat.
pub(super) fn cpu(roots: &Roots) -> Option<Cpu> {
    let text = file(roots, "stat")?;
    let mut words = text.lines().next()?.split_whitespace();
    (words.next()? == "cpu").then_some(())?;
    let mut ticks = [0; 10];
    // Old kernels have fewer columns: what they do not count is 0.
    for (place, word) in ticks.iter_mut().zip(words) {
        *place = word.parse().ok()?;
    }
    Some(Cpu(ticks))
}

impl Cpu {
    /// Scalar of systemStats: user, nice, system, idle, wait, kernel, interrupt, softirq, steal,
    /// guest, guest nice.
    pub(super) fn cell(&self, scalar: u32) -> Option<Value> {
        let [user, nice, system, idle, wait, interrupt, softirq, steal, guest, guest_nice] = self.0;
        let ticks = match scalar {
            50 => user,
            51 => nice,
            52 | 55 => system,
            53 => idle,
            54 => wait,
            56 => interrupt,
            61 => softirq,
            64 => steal,
            65 => guest,
            66 => guest_nice,
            _ => return None,
        };
        Some(Value::Counter32(low(ticks)))
    }
}

/// Memory in kibibytes, from /proc/meminfo.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) total_kib: u64,
    free_kib: u64,
    buffers_kib: u64,
    cached_kib: u64,
    shared_kib: u64,
    swap_total_kib: u64,
    swap_free_kib: u64,
}

/// What `/proc/meminfo` says now; `None` where it cannot be read.
pub(super) fn memory(roots: &Roots) -> Option<Memory> {
    let text = file(roots, "meminfo")?;
    let mut memory = Memory::default();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let Some(Ok(kib)) = rest.split_whitespace().next().map(str::parse::<u64>) else { continue };
        match name {
            "MemTotal" => memory.total_kib = kib,
            "MemFree" => memory.free_kib = kib,
            "Buffers" => memory.buffers_kib = kib,
            // Both are page cache that can be given back, and net-snmp adds them up, too.
            "Cached" | "SReclaimable" => memory.cached_kib += kib,
            "Shmem" => memory.shared_kib = kib,
            "SwapTotal" => memory.swap_total_kib = kib,
            "SwapFree" => memory.swap_free_kib = kib,
            _ => {}
        }
    }
    (memory.total_kib > 0).then_some(memory)
}

impl Memory {
    /// Scalar of the UCD memory group.
    pub(super) fn cell(&self, scalar: u32) -> Option<Value> {
        Some(match scalar {
            1 => Value::Integer(0),
            2 => Value::OctetString(b"swap".to_vec()),
            3 => integer(self.swap_total_kib),
            4 => integer(self.swap_free_kib),
            5 => integer(self.total_kib),
            6 => integer(self.free_kib),
            11 => integer(self.free_kib + self.swap_free_kib),
            13 => integer(self.shared_kib),
            14 => integer(self.buffers_kib),
            15 => integer(self.cached_kib),
            _ => return None,
        })
    }

    /// Column of the row `Physical memory` of hrStorageTable.
    pub(super) fn storage_cell(&self, column: u32) -> Option<Value> {
        Some(match column {
            1 => Value::Integer(1),
            // hrStorageRam.
            2 => Value::ObjectId(Oid::from_slice(&[1, 3, 6, 1, 2, 1, 25, 2, 1, 2])),
            3 => Value::OctetString(b"Physical memory".to_vec()),
            4 => Value::Integer(1024),
            5 => integer(self.total_kib),
            6 => integer(self.total_kib.saturating_sub(self.free_kib)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let roots = Roots { proc: directory.path().into(), sys: directory.path().into() };
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("loadavg", "0.05 10.5 3.00 1/94 11986\n");
        write("uptime", "1388.07 2500.11\n");
        write("stat", "cpu  72502 1 13541 201951 1356 2 74 37 3 4\ncpu0 1 2 3\n");
        write("meminfo", "MemTotal: 100 kB\nMemFree: 40 kB\nCached: 7 kB\nSReclaimable: 2 kB\n");
        assert_eq!(load(&roots), Some([5, 1050, 300]));
        assert_eq!(uptime_cs(&roots), Some(138_807));
        let cpu = cpu(&roots).unwrap();
        assert_eq!(cpu.cell(50), Some(Value::Counter32(72_502)));
        assert_eq!(cpu.cell(61), Some(Value::Counter32(74)));
        assert_eq!(cpu.cell(66), Some(Value::Counter32(4)));
        let memory = memory(&roots).unwrap();
        assert_eq!(memory.cell(15), Some(Value::Integer(9)));
        assert_eq!(memory.storage_cell(6), Some(Value::Integer(60)));
        assert_eq!(load_cell(52, 3), Some(Value::OctetString(b"0.52".to_vec())));
    }
}
