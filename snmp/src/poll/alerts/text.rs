//! What is said of alerts to people. Every text begins with the rule's name and a colon.

use meikyo_cluster::{AlertRule, Side, Threshold};
use meikyo_units::Nanos;

use super::Value;
use super::standing::{Turn, Zone};
use crate::tables::{Table, schema};

/// What a value is, as against the rule; the rule's and the value's name stand before it.
pub(super) fn threshold(rule: &Threshold, zone: Zone, value: Value) -> String {
    let shown = rule.raise.unit().shown(value.thousandths, value.counter);
    let clear = rule.cleared_at(value.whole);
    match (zone, rule.side) {
        (Zone::Back, Side::Above) => format!("is {shown} again, at most {clear}"),
        (Zone::Back, Side::Below) => format!("is {shown} again, at least {clear}"),
        (_, side) => format!("is {shown}, {} {}", side.word(), rule.raise),
    }
}

pub(super) fn silent(rule: &AlertRule, span: Nanos) -> String {
    format!("{}: no answer for more than {span}", rule.name)
}

pub(super) fn answers_again(rule: &AlertRule, silent: Nanos) -> String {
    let tenths = silent.get() / 100_000_000;
    format!("{}: it answers again after {}.{} s", rule.name, tenths / 10, tenths % 10)
}

pub(super) fn frozen(rule: &AlertRule, turn: Turn, table: Table) -> String {
    let (name, table) = (&rule.name, &schema(table).name);
    match turn {
        Turn::Raised => {
            format!("{name}: nothing in {table} moves any more, though the agent's uptime does")
        }
        Turn::Cleared => format!("{name}: values in {table} move again"),
    }
}

/// Cleared for another reason than by what the device says.
pub(super) fn withdrawn(rule: &AlertRule, why: &str) -> String {
    format!("{}: {why}", rule.name)
}
