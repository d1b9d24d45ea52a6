//! Reading the rules of a file.

use std::collections::BTreeMap;

use meikyo_places::hint;
use meikyo_units::Nanos;
use meikyo_units::glob::{is_pattern, matches};

use super::level::{Family, Level};
use super::{
    ALERT_RULES_MAX, AlertRule, Condition, DISK_SIZE, LevelUnit, Side, Threshold, Watched,
};
use crate::fold::unfold;
use crate::layer::read_span;
use crate::section::{Reading, Section, Sourced};
use crate::{Device, Measure, Place, What};

/// The kinds of rules by the key that makes them; a rule has exactly one.
const KINDS: [&str; 4] = ["above", "below", "silent", "frozen"];

/// Keys that belong to levels only.
const OF_LEVELS: [&str; 2] = ["clear", "for"];

/// Columns of whole numbers that neither count nor are amounts: states and speeds.
const WHOLE: [&str; 2] = ["oper_status", "speed_mbps"];

/// Longest name of a rule, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// How long a device may be silent: shorter ones are told from a slow answer by nothing.
const SILENT_RANGE: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(30 * 86_400));

/// How long readings can be asked to agree.
const LASTING_RANGE: (Nanos, Nanos) = (Nanos::ZERO, Nanos::from_secs(86_400));

/// Reads every `[[alerts]]` of the file.
pub(crate) fn read_rules(
    reading: &mut Reading,
    file: &Section<'_>,
    devices: &[Device],
) -> Vec<AlertRule> {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut rules = Vec::new();
    let sections = file.sections(reading, "alerts");
    if let Some(beyond) = sections.get(ALERT_RULES_MAX) {
        let text = format!("more than {ALERT_RULES_MAX} rules");
        reading.note(beyond.line, "alerts", text);
    }
    for section in sections.iter().take(ALERT_RULES_MAX) {
        let name = read_name(reading, section, &mut names);
        let condition = read_condition(reading, section);
        let patterns = read_devices(reading, section, devices);
        let (Some(name), Some(condition), Some(patterns)) = (name, condition, patterns) else {
            continue;
        };
        let place = Place { line: section.line };
        let rule = AlertRule { name, condition, devices: patterns, place };
        check_devices(reading, section, &rule, devices);
        rules.push(rule);
    }
    rules
}

/// The name: what begins a text for people and ends at its first colon.
fn read_name(
    reading: &mut Reading,
    section: &Section<'_>,
    names: &mut BTreeMap<String, usize>,
) -> Option<String> {
    if !section.has("name") {
        section.note(
            reading,
            "name",
            "missing; every rule has a name, for example \"uplink-busy\"",
        );
    }
    let name = section.parsed(reading, "name", |name| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.len() > NAME_BYTES_MAX || !name.chars().all(allowed) {
            return Err(format!(
                "`{name}` is not a name; allowed are at most {NAME_BYTES_MAX} letters, digits, \
                 `-`, `_` and `.`"
            ));
        }
        Ok(name.to_owned())
    })?;
    if let Some(line) = names.get(&name.value) {
        let text = format!("`{}` is the name of a rule in line {line} already", name.value);
        reading.note(name.line, section.key("name"), text);
        return None;
    }
    names.insert(name.value.clone(), name.line);
    Some(name.value)
}

fn read_condition(reading: &mut Reading, section: &Section<'_>) -> Option<Condition> {
    let given: Vec<&str> = KINDS.into_iter().filter(|kind| section.has(kind)).collect();
    let kind = match given[..] {
        [kind] => kind,
        [] => {
            let text = "missing; a rule has exactly one of `above`, `below`, `silent` and `frozen`";
            section.note(reading, "above", text);
            return None;
        }
        [first, second, ..] => {
            let text = format!(
                "`{first}` is there already; a rule has exactly one of `above`, `below`, `silent` \
                 and `frozen`"
            );
            section.note(reading, second, text);
            return None;
        }
    };
    let level = matches!(kind, "above" | "below");
    for key in OF_LEVELS.into_iter().filter(|key| !level && section.has(key)) {
        section.note(reading, key, format!("`{key}` is for rules with `above` or `below`"));
    }
    match kind {
        "above" => read_threshold(reading, section, Side::Above).map(Condition::Threshold),
        "below" => read_threshold(reading, section, Side::Below).map(Condition::Threshold),
        "silent" => {
            if section.has("value") {
                section.note(reading, "value", "a device is silent as a whole; leave it out");
            }
            let span = read_span(reading, section, "silent", SILENT_RANGE)?;
            Some(Condition::Silent { span: span.value })
        }
        _ => {
            let on = section.flag(reading, "frozen")?;
            if !on.value {
                let text = "allowed is true; a rule that is not wanted is left out";
                reading.note(on.line, section.key("frozen"), text);
            }
            let watched = match section.has("value") {
                true => Some(read_watched(reading, section)?),
                false => None,
            };
            Some(Condition::Frozen { watched })
        }
    }
}

fn read_threshold(reading: &mut Reading, section: &Section<'_>, side: Side) -> Option<Threshold> {
    let lasting = read_span(reading, section, "for", LASTING_RANGE);
    if !section.has("value") {
        let text = "missing; say which value, for example \"interface:eth*(out_octets)\"";
        section.note(reading, "value", text);
    }
    let watched = read_watched(reading, section)?;
    let family = family(reading, section, &watched)?;
    let read = |reading: &mut Reading, key| {
        let level = section.number(reading, key)?;
        match Level::parse(&level.value, family) {
            Ok(value) => Some(Sourced { value, line: level.line }),
            Err(text) => {
                reading.note(level.line, section.key(key), text);
                None
            }
        }
    };
    let raise = read(reading, side.word())?.value;
    let given = section.has("clear");
    let clear = match given {
        true => {
            let clear = read(reading, "clear")?;
            check_clear(reading, section, side, &raise, &clear)?;
            clear.value
        }
        // A state never lies between two whole numbers.
        false if watched.columns.iter().any(|column| WHOLE.contains(&column.as_str())) => {
            raise.clone()
        }
        false => raise.a_tenth(if side == Side::Above { -1 } else { 1 }),
    };
    let whole_at_raise = !given && matches!(watched.what, What::Object(_));
    if section.has("for") && lasting.is_none() {
        return None;
    }
    let lasting = lasting.map_or(Nanos::ZERO, |lasting| lasting.value);
    Some(Threshold { watched, side, raise, clear, whole_at_raise, lasting })
}

/// The level to clear at lies on the good side, in the same unit.
fn check_clear(
    reading: &mut Reading,
    section: &Section<'_>,
    side: Side,
    raise: &Level,
    clear: &Sourced<Level>,
) -> Option<()> {
    let (word, bound) = match side {
        Side::Above => ("above", "at most"),
        Side::Below => ("below", "at least"),
    };
    if std::mem::discriminant(&raise.unit()) != std::mem::discriminant(&clear.value.unit()) {
        let text = format!("`{}` is of another unit than `{word}`, `{raise}`", clear.value);
        reading.note(clear.line, section.key("clear"), text);
        return None;
    }
    let wrong = match side {
        Side::Above => clear.value.thousandths() > raise.thousandths(),
        Side::Below => clear.value.thousandths() < raise.thousandths(),
    };
    if wrong {
        let text = format!(
            "`{}` lies {word} the level of `{raise}`; allowed is {bound} that",
            clear.value
        );
        reading.note(clear.line, section.key("clear"), text);
        return None;
    }
    Some(())
}

/// The one unit that the watched columns have.
fn family(reading: &mut Reading, section: &Section<'_>, watched: &Watched) -> Option<Family> {
    let all = watched.what.columns();
    let Some(first) = watched.columns.first() else {
        if all.is_empty() {
            return Some(Family::Plain);
        }
        let columns: Vec<_> = all.iter().map(|column| format!("`{column}`")).collect();
        let text = format!(
            "`{}` has several values; say which in parentheses: {}",
            watched.text,
            columns.join(", ")
        );
        section.note(reading, "value", text);
        return None;
    };
    let family = Family::of_column(first);
    if let Some(other) = watched.columns.iter().find(|other| Family::of_column(other) != family) {
        let text = format!("`{first}` and `{other}` have different units; write a rule for each");
        section.note(reading, "value", text);
        return None;
    }
    let is_part = matches!(watched.what, What::Disk(_))
        && watched.columns.iter().all(|column| column != DISK_SIZE);
    Some(if is_part && family == Family::Bytes { Family::OfDisk } else { family })
}

/// The words of a measurement, with `*` and `?` in its name.
fn read_watched(reading: &mut Reading, section: &Section<'_>) -> Option<Watched> {
    let line = section.line_of(reading, "value");
    let watched = section.parsed(reading, "value", |text| {
        let place = Place { line };
        let object = || {
            // A wildcard in an object's instance; a digit stands in for it where the form is checked.
            let of_digits = Measure::parse(&text.replace(['*', '?'], "0"), place).ok()?;
            let is_object = is_pattern(text) && matches!(of_digits.what, What::Object(_));
            let what = What::Object(text.trim().trim_start_matches('.').to_owned());
            is_object.then_some(Measure { what, ..of_digits })
        };
        let measure = match Measure::parse(text, place) {
            Ok(measure) => measure,
            Err(error) => object().ok_or_else(|| error.to_string())?,
        };
        if measure.every.is_some() {
            return Err(format!("`{text}`: every reading is looked at; leave `every` out"));
        }
        if measure.what == What::Uptime {
            return Err("`uptime` has no value to look at; a rule with `silent` watches whether \
                        a device answers"
                .to_owned());
        }
        Ok(Watched { what: measure.what, columns: measure.columns, text: text.to_owned() })
    })?;
    Some(watched.value)
}

/// The patterns of names; each is the name of a device at least.
fn read_devices(
    reading: &mut Reading,
    section: &Section<'_>,
    devices: &[Device],
) -> Option<Vec<String>> {
    if !section.has("devices") {
        return Some(Vec::new());
    }
    let mut patterns = Vec::new();
    for text in section.texts(reading, "devices")?.value {
        let unfolded = match unfold(&text.value) {
            Ok(unfolded) => unfolded,
            Err(error) => {
                reading.note(text.line, section.key("devices"), error.to_string());
                continue;
            }
        };
        let names = || devices.iter().map(|device| device.name.as_str());
        // A file whose devices are wrong would make further, false problems.
        let stranger = unfolded
            .iter()
            .find(|pattern| !devices.is_empty() && !names().any(|name| matches(pattern, name)));
        if let Some(pattern) = stranger {
            let meant = hint(pattern, names());
            let text_ = format!("no host or switch is named `{pattern}`{meant}");
            reading.note(text.line, section.key("devices"), text_);
        }
        patterns.extend(unfolded);
    }
    Some(patterns)
}

/// A rule that can never speak is a mistake, and so is one that can never be quiet.
fn check_devices(
    reading: &mut Reading,
    section: &Section<'_>,
    rule: &AlertRule,
    devices: &[Device],
) {
    let watched = match &rule.condition {
        Condition::Threshold(threshold) => Some(&threshold.watched),
        Condition::Frozen { watched } => watched.as_ref(),
        Condition::Silent { .. } => None,
    };
    let mut its_devices = devices.iter().filter(|device| rule.is_for(&device.name)).peekable();
    if its_devices.peek().is_none() {
        return;
    }
    if let Some(watched) = watched
        && !its_devices.clone().any(|device| watched.may_be_in(device))
    {
        let text = format!("`{}` is measured on none of the rule's devices", watched.text);
        section.note(reading, "value", text);
    } else if let Condition::Threshold(threshold) = &rule.condition
        && threshold.raise.unit() == LevelUnit::PercentOfSize
        && !its_devices.clone().any(|device| threshold.watched.may_have_size_in(device))
    {
        let text = format!(
            "a share of the size needs `{DISK_SIZE}`, which is measured on none of the rule's devices"
        );
        section.note(reading, threshold.side.word(), text);
    }
    if let Condition::Silent { span } = rule.condition
        && let Some((device, interval)) = its_devices
            .map(|device| (device, asked_every(device)))
            .find(|(_, interval)| span < *interval * 2)
    {
        let text = format!(
            "{span} is too short for `{}`, which is asked every {interval}; allowed is at least \
             twice that",
            device.name
        );
        section.note(reading, "silent", text);
    }
}

/// The span at which a device is asked anything.
fn asked_every(device: &Device) -> Nanos {
    let own = device.snmp.interval;
    let wanted = device.measure.iter().map(|measure| measure.every.unwrap_or(own));
    wanted.min().unwrap_or(own)
}
