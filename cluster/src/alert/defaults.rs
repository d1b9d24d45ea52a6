//! Rules that hold without being written: what every administrator wants to be told.

use meikyo_units::Nanos;

use super::level::{Family, Level};
use super::{AlertRule, Condition, Side, Threshold, Watched};
use crate::{Place, What};

/// How long a device is silent until it is alerted of: longer than a restart of its agent takes.
const SILENT: Nanos = Nanos::from_secs(30);
/// How long errors go on, and a disk stays full, until it is alerted of.
const LASTING: Nanos = Nanos::from_secs(10);

/// The rules. They stand in no line of the file.
pub(crate) fn default_rules() -> Vec<AlertRule> {
    let rule = |name: &str, condition| AlertRule {
        name: name.to_owned(),
        condition,
        devices: Vec::new(),
        place: Place { line: 0 },
    };
    let watched = |what, columns: &[&str], text: &str| Watched {
        what,
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        text: text.to_owned(),
    };
    let level = |watched, side, text: &str, clear: &str, family| {
        let level = |text| Level::parse(text, family).expect("the constant is a level");
        Condition::Threshold(Threshold {
            watched,
            side,
            raise: level(text),
            clear: level(clear),
            whole_at_raise: false,
            lasting: LASTING,
        })
    };
    let errors = watched(
        What::Interface("*".to_owned()),
        &["in_errors", "out_errors"],
        "interface:*(in_errors,out_errors)",
    );
    // Both tables of disks say how much is used; what is available is said by one of them only.
    let disk = watched(What::Disk("/*".to_owned()), &["used_bytes"], "disk:/*(used_bytes)");
    vec![
        rule("silent", Condition::Silent { span: SILENT }),
        rule("frozen", Condition::Frozen { watched: None }),
        rule("disk-nearly-full", level(disk, Side::Above, "90%", "88%", Family::OfDisk)),
        rule("interface-errors", level(errors, Side::Above, "1", "0.5", Family::Plain)),
    ]
}
