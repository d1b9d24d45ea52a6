//! Network interfaces from /proc/net/dev and /sys/class/net (IF-MIB, RFC 2863).

use std::fs;
use std::io;

use super::{Roots, integer, low};
use crate::Value;

/// `IFF_UP` of netdevice(7).
const FLAG_UP: u64 = 1;

/// An interface with its counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    /// ifIndex, the kernel's.
    pub(super) index: u32,
    /// Octets, packets, errors, drops, multicast packets.
    received: [u64; 5],
    /// Octets, packets, errors, drops.
    sent: [u64; 4],
    /// sysUpTime when the counters were last seen to start anew.
    discontinuity_cs: u64,
}

/// Every interface now; `before` tells which counters started anew.
pub(super) fn read(
    roots: &Roots,
    before: &[Interface],
    uptime_cs: u64,
) -> io::Result<Vec<Interface>> {
    let text = fs::read_to_string(roots.proc.join("net/dev"))?;
    let mut interfaces: Vec<Interface> = text.lines().filter_map(parse).collect();
    for interface in &mut interfaces {
        interface.index = number(roots, &interface.name, "ifindex").map_or(0, low);
        let known = before.iter().find(|known| known.index == interface.index);
        if let Some(known) = known {
            // Under the same index another interface, or the same one with counters from 0.
            let anew = known.name != interface.name
                || interface.received[0] < known.received[0]
                || interface.sent[0] < known.sent[0];
            interface.discontinuity_cs = if anew { uptime_cs } else { known.discontinuity_cs };
        } else if !before.is_empty() {
            interface.discontinuity_cs = uptime_cs;
        }
    }
    interfaces.retain(|interface| interface.index != 0);
    Ok(interfaces)
}

/// A line of /proc/net/dev: `eth0: ` and 16 numbers; the two lines of headings have none.
fn parse(line: &str) -> Option<Interface> {
    let (name, numbers) = line.rsplit_once(':')?;
    let numbers: Vec<u64> =
        numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let at = |position: usize| numbers.get(position).copied();
    Some(Interface {
        name: name.trim().to_owned(),
        received: [at(0)?, at(1)?, at(2)?, at(3)?, at(7)?],
        sent: [at(8)?, at(9)?, at(10)?, at(11)?],
        ..Interface::default()
    })
}

fn attribute(roots: &Roots, name: &str, attribute: &str) -> Option<String> {
    let path = roots.sys.join("class/net").join(name).join(attribute);
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn number(roots: &Roots, name: &str, which: &str) -> Option<u64> {
    let text = attribute(roots, name, which)?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl Interface {
    /// Column of ifTable.
    pub(super) fn cell(&self, column: u32, roots: &Roots) -> Option<Value> {
        let counter = |number| Value::Counter32(low(number));
        Some(match column {
            1 => integer(self.index.into()),
            2 => Value::OctetString(self.name.clone().into_bytes()),
            3 => integer(kind(number(roots, &self.name, "type")?)),
            4 => integer(number(roots, &self.name, "mtu")?),
            5 => {
                let bits = self.megabits(roots).saturating_mul(1_000_000);
                // Saturates, as the MIB wants beyond 4.29 Gbit/s (RFC 2863, ifSpeed).
                Value::Gauge32(u32::try_from(bits).unwrap_or(u32::MAX))
            }
            6 => Value::OctetString(self.physical_address(roots)),
            7 => integer(if self.is_up(roots) { 1 } else { 2 }),
            8 => integer(self.oper_status(roots)),
            9 => Value::TimeTicks(0),
            10 => counter(self.received[0]),
            11 => counter(self.received[1].saturating_sub(self.received[4])),
            13 => counter(self.received[3]),
            14 => counter(self.received[2]),
            16 => counter(self.sent[0]),
            17 => counter(self.sent[1]),
            19 => counter(self.sent[3]),
            20 => counter(self.sent[2]),
            _ => return None,
        })
    }

    /// Column of ifXTable.
    pub(super) fn extended_cell(&self, column: u32, roots: &Roots) -> Option<Value> {
        Some(match column {
            1 => Value::OctetString(self.name.clone().into_bytes()),
            2 => Value::Counter32(low(self.received[4])),
            6 => Value::Counter64(self.received[0]),
            7 => Value::Counter64(self.received[1].saturating_sub(self.received[4])),
            8 => Value::Counter64(self.received[4]),
            10 => Value::Counter64(self.sent[0]),
            11 => Value::Counter64(self.sent[1]),
            15 => Value::Gauge32(low(self.megabits(roots))),
            // ifConnectorPresent: a device behind it is what the kernel knows of a connector.
            17 => {
                let device = roots.sys.join("class/net").join(&self.name).join("device");
                integer(if device.exists() { 1 } else { 2 })
            }
            18 => {
                let alias = attribute(roots, &self.name, "ifalias").unwrap_or_default();
                Value::OctetString(alias.into_bytes())
            }
            19 => Value::TimeTicks(low(self.discontinuity_cs)),
            _ => return None,
        })
    }

    /// 10^6 bit/s; 0 where the driver does not say, as RFC 2863 asks.
    fn megabits(&self, roots: &Roots) -> u64 {
        number(roots, &self.name, "speed").filter(|&speed| speed < u64::from(u32::MAX)).unwrap_or(0)
    }

    fn is_up(&self, roots: &Roots) -> bool {
        number(roots, &self.name, "flags").is_some_and(|flags| flags & FLAG_UP != 0)
    }

    /// ifOperStatus. Drivers that keep no state (lo) are up when they are switched on.
    fn oper_status(&self, roots: &Roots) -> u64 {
        match attribute(roots, &self.name, "operstate").as_deref() {
            Some("up") => 1,
            Some("down") => 2,
            Some("testing") => 3,
            Some("dormant") => 5,
            Some("notpresent") => 6,
            Some("lowerlayerdown") => 7,
            _ if self.is_up(roots) => 1,
            _ => 2,
        }
    }

    /// Empty for an interface without one, as RFC 2863 asks; the kernel says zeros for lo.
    fn physical_address(&self, roots: &Roots) -> Vec<u8> {
        let text = attribute(roots, &self.name, "address").unwrap_or_default();
        let octets = text.split(':').map(|octet| u8::from_str_radix(octet, 16));
        let octets: Vec<u8> = octets.collect::<Result<_, _>>().unwrap_or_default();
        if octets.iter().all(|&octet| octet == 0) { Vec::new() } else { octets }
    }
}

/// ifType (`IANAifType-MIB`) of an `ARPHRD_` number of the kernel.
const fn kind(hardware: u64) -> u64 {
    match hardware {
        1 => 6,
        772 => 24,
        32 => 199,
        512 => 23,
        768 | 769 | 776 | 778 => 131,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_taken_from_their_columns() {
        let line = "  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
        let interface = parse(line).unwrap();
        assert_eq!(interface.name, "eth0");
        assert_eq!(interface.received, [1, 2, 3, 4, 8]);
        assert_eq!(interface.sent, [9, 10, 11, 12]);
        assert_eq!(parse(" face |bytes    packets errs|bytes    packets"), None);
        assert_eq!(parse("eth0:1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16").unwrap().name, "eth0:1");
    }

    #[test]
    fn counters_that_start_anew_move_the_discontinuity() {
        let directory = tempfile::tempdir().unwrap();
        let roots = Roots { proc: directory.path().into(), sys: directory.path().join("sys") };
        fs::create_dir_all(directory.path().join("net")).unwrap();
        fs::create_dir_all(roots.sys.join("class/net/eth0")).unwrap();
        fs::write(roots.sys.join("class/net/eth0/ifindex"), "7\n").unwrap();
        let at = |octets: u32, before: &[Interface], uptime| {
            let line = format!("eth0: {octets} 2 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n");
            fs::write(roots.proc.join("net/dev"), line).unwrap();
            read(&roots, before, uptime).unwrap()
        };
        let first = at(100, &[], 5);
        let second = at(200, &first, 10);
        let third = at(50, &second, 15);
        let fourth = at(60, &third, 20);
        let all = [first, second, third, fourth];
        let seen: Vec<u64> = all.iter().map(|list| list[0].discontinuity_cs).collect();
        assert_eq!(seen, [0, 0, 15, 15]);
        assert_eq!(all[0][0].index, 7);
    }
}
