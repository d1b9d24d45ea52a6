//! What an N-series switch calls its ports: `Gi1/0/7`, `Te1/0/1`.

use super::models::gigabit_ports;
use crate::dialect::linux::decimal;
use crate::dialect::typed;
use crate::{PortNumber, SwitchModel};

/// The kinds of ports: short and long name.
const KINDS: [(&str, &str); 2] = [("gi", "gigabitethernet"), ("te", "tengigabitethernet")];

/// The kind of a port, and its number among those of its kind.
fn split(model: &SwitchModel, port: PortNumber) -> (&'static str, u16) {
    match port.0.checked_sub(gigabit_ports(model)) {
        Some(ten) if ten > 0 => ("Te", ten),
        _ => ("Gi", port.0),
    }
}

/// The name of a port of the first unit, and of no expansion slot.
pub(super) fn port_name(model: &SwitchModel, port: PortNumber) -> String {
    let (kind, number) = split(model, port);
    format!("{kind}1/0/{number}")
}

/// The ports as one argument of `interface range`: `Gi1/0/1,Gi1/0/3-5,Te1/0/1`.
pub(super) fn port_list(model: &SwitchModel, ports: &[PortNumber]) -> String {
    let spans = typed::spans(ports, |port| split(model, port).0);
    let parts: Vec<String> = spans
        .into_iter()
        .map(|(first, last)| match first == last {
            true => port_name(model, first),
            false => format!("{}-{}", port_name(model, first), split(model, last).1),
        })
        .collect();
    parts.join(",")
}

/// The ports of a part of a list, the first and the last: `Gi1/0/7`, `gi1/0/3-5`, `te1/0/1-te1/0/2`.
/// `None` if it is no such part, or names what the switch does not have.
pub(super) fn ports_named(model: &SwitchModel, part: &str) -> Option<(PortNumber, PortNumber)> {
    let part = part.to_ascii_lowercase();
    let (first, last) = part.split_once('-').unwrap_or((part.as_str(), part.as_str()));
    let (kind, number) = parse(first)?;
    let (last_kind, last) = match decimal(last) {
        Some(last) => (kind, last),
        None => parse(last)?,
    };
    let port = |number| place(model, kind, number);
    (kind == last_kind && number <= last).then_some((port(number)?, port(last)?))
}

/// The kind, by its place in [`KINDS`], and the number.
fn parse(name: &str) -> Option<(usize, u16)> {
    let end = name.find(|letter: char| letter.is_ascii_digit())?;
    let kind = KINDS.iter().position(|(short, long)| [*short, *long].contains(&&name[..end]))?;
    Some((kind, decimal(name[end..].strip_prefix("1/0/")?)?))
}

fn place(model: &SwitchModel, kind: usize, number: u16) -> Option<PortNumber> {
    let gigabit = gigabit_ports(model).min(model.ports);
    let (before, most) = match kind {
        0 => (0, gigabit),
        _ => (gigabit, model.ports - gigabit),
    };
    (number <= most).then(|| PortNumber(before + number))
}
