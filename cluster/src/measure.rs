//! What to measure, in a person's words: `KIND[:NAME][(column,column)] [every DURATION]`.

use meikyo_places::nearest;
use meikyo_units::Nanos;

use crate::{Measure, PartKind, Place, What};

/// The kinds of measurement and how each is written.
const KINDS: &[(&str, &str)] = &[
    ("interface", "interface:NAME"),
    ("interfaces", "interfaces"),
    ("disk", "disk:PATH"),
    ("load", "load"),
    ("cpu", "cpu"),
    ("memory", "memory"),
    ("uptime", "uptime"),
];

impl PartKind {
    /// Every kind of parts beside interfaces and disks, which have rules of their own.
    pub const ALL: &'static [Self] = &[Self {
        all: "sensors",
        one: "sensor",
        form: "sensor:NAME",
        table: "sensors",
        columns: &["celsius", "rpm", "watts", "volts", "amperes", "oper_status"],
        subtrees: &[
            ("1.3.6.1.2.1.47.1.1.1", "entPhysicalTable (RFC 6933)"),
            ("1.3.6.1.2.1.99.1.1", "entPhySensorTable (RFC 3433)"),
            ("1.3.6.1.4.1.2021.13.16", "lmSensors (LM-SENSORS-MIB)"),
        ],
    }];

    /// The kind that a word names, for all of them or for one.
    fn named(word: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|kind| kind.all == word || kind.one == word)
    }
}

/// Every kind of measurement and how it is written.
fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = PartKind::ALL.iter().flat_map(|kind| [(kind.all, kind.all), (kind.one, kind.form)]);
    KINDS.iter().copied().chain(parts)
}

const INTERFACE_COLUMNS: &[&str] = &[
    "in_octets",
    "out_octets",
    "in_packets",
    "out_packets",
    "in_errors",
    "out_errors",
    "in_discards",
    "out_discards",
    "speed_mbps",
    "oper_status",
];
const DISK_COLUMNS: &[&str] = &["total_bytes", "used_bytes", "available_bytes"];
const LOAD_COLUMNS: &[&str] = &["load_1min", "load_5min", "load_15min"];
const CPU_COLUMNS: &[&str] = &[
    "user_ticks",
    "nice_ticks",
    "system_ticks",
    "idle_ticks",
    "wait_ticks",
    "interrupt_ticks",
    "softirq_ticks",
    "steal_ticks",
];
const MEMORY_COLUMNS: &[&str] = &[
    "total_bytes",
    "available_bytes",
    "buffer_bytes",
    "cached_bytes",
    "swap_total_bytes",
    "swap_available_bytes",
];

/// Why a text is not a measurement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseMeasureError {
    /// Nothing of the kind is known.
    #[error(
        "`{text}` is not known{}; allowed are {}, an OID such as `1.3.6.1.2.1.1.3.0`, or an object \
         with its instance such as `ifHCInOctets.3`",
        meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default(),
        kinds().map(|(_, form)| format!("`{form}`")).collect::<Vec<_>>().join(", ")
    )]
    Kind {
        /// The text as it was given.
        text: String,
        /// The kind that was probably meant.
        meant: Option<&'static str>,
    },
    /// The kind needs a name.
    #[error("`{kind}` needs a name: write `{form}`")]
    NameMissing {
        /// The kind that needs one.
        kind: &'static str,
        /// How the kind is written with its name.
        form: &'static str,
    },
    /// The kind has no name.
    #[error("`{kind}` takes no name; write `{kind}` alone")]
    NameRefused {
        /// The kind that stands alone.
        kind: &'static str,
    },
    /// The table has no such column.
    #[error("`{kind}` has no column `{column}`; allowed are {allowed}")]
    Column {
        /// The kind whose table it is.
        kind: &'static str,
        /// The column as it was given.
        column: String,
        /// The columns of the table.
        allowed: String,
    },
    /// The span after `every` is not one.
    #[error("after `every` stands a span of time such as `10s`: {source}")]
    Every {
        /// What is wrong with the span.
        source: meikyo_units::ParseQuantityError,
    },
    /// Something is left over, or a parenthesis is not closed.
    #[error("`{text}` cannot be read; the form is `KIND[:NAME][(column,column)] [every DURATION]`")]
    Form {
        /// The text as it was given.
        text: String,
    },
}

impl What {
    /// The word for its kind; an object is its own word.
    pub fn kind(&self) -> &str {
        match self {
            Self::Interface(_) => "interface",
            Self::Interfaces => "interfaces",
            Self::Disk(_) => "disk",
            Self::Load => "load",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Uptime => "uptime",
            Self::Parts { kind, name: None } => kind.all,
            Self::Parts { kind, name: Some(_) } => kind.one,
            Self::Object(name) => name,
        }
    }

    /// The columns that can be chosen in parentheses, by the names of the recording's tables.
    pub fn columns(&self) -> &'static [&'static str] {
        match self {
            Self::Interface(_) | Self::Interfaces => INTERFACE_COLUMNS,
            Self::Disk(_) => DISK_COLUMNS,
            Self::Load => LOAD_COLUMNS,
            Self::Cpu => CPU_COLUMNS,
            Self::Memory => MEMORY_COLUMNS,
            Self::Parts { kind, .. } => kind.columns,
            Self::Uptime | Self::Object(_) => &[],
        }
    }
}

impl Measure {
    /// Reads `text`, which stands at `place`.
    ///
    /// # Errors
    /// If it is not of the form `KIND[:NAME][(column,column)] [every DURATION]`.
    pub fn parse(text: &str, place: Place) -> Result<Self, ParseMeasureError> {
        let form = || ParseMeasureError::Form { text: text.escape_debug().to_string() };
        // Names reach the agent's configuration and tables of text: one line, no quotes.
        if text.contains(|c: char| c.is_control() || c == '"') {
            return Err(form());
        }
        let (body, every) = split_every(text)?;
        let (body, columns) = match body.strip_suffix(')') {
            None => (body, None),
            Some(open) => {
                let (body, columns) = open.rsplit_once('(').ok_or_else(form)?;
                (body.trim_end(), Some(columns))
            }
        };
        let what = parse_what(body, text)?;
        let columns = match columns {
            None => Vec::new(),
            Some(columns) => parse_columns(&what, columns).map_err(|e| e.unwrap_or_else(form))?,
        };
        Ok(Self { what, columns, every, text: text.into(), place })
    }
}

/// Cuts ` every DURATION` off; a disk path may hold the word too, so the last one counts.
fn split_every(text: &str) -> Result<(&str, Option<Nanos>), ParseMeasureError> {
    let text = text.trim();
    match text.rsplit_once(" every ") {
        None => Ok((text, None)),
        Some((body, span)) => {
            let every = span.parse().map_err(|source| ParseMeasureError::Every { source })?;
            Ok((body.trim_end(), Some(every)))
        }
    }
}

fn parse_what(body: &str, text: &str) -> Result<What, ParseMeasureError> {
    let (word, name) = match body.split_once(':') {
        None => (body, None),
        Some((word, name)) => (word, Some(name)),
    };
    if let Some(kind) = PartKind::named(word) {
        return match name {
            None if word == kind.all => Ok(What::Parts { kind, name: None }),
            Some(name) if word == kind.one && !name.is_empty() => {
                Ok(What::Parts { kind, name: Some(name.into()) })
            }
            Some(_) if word == kind.all => Err(ParseMeasureError::NameRefused { kind: kind.all }),
            _ => Err(ParseMeasureError::NameMissing { kind: kind.one, form: kind.form }),
        };
    }
    let Some(&(kind, form)) = KINDS.iter().find(|(kind, _)| *kind == word) else {
        if name.is_none() && is_object(word) {
            return Ok(What::Object(word.trim_start_matches('.').into()));
        }
        let meant = nearest(word, kinds().map(|(kind, _)| kind));
        let meant = kinds().find(|(kind, _)| Some(*kind) == meant).map(|(_, form)| form);
        return Err(ParseMeasureError::Kind { text: text.into(), meant });
    };
    let needs_name = matches!(kind, "interface" | "disk");
    match (kind, name) {
        (_, None | Some("")) if needs_name => Err(ParseMeasureError::NameMissing { kind, form }),
        (_, Some(_)) if !needs_name => Err(ParseMeasureError::NameRefused { kind }),
        ("interface", Some(name)) => Ok(What::Interface(name.into())),
        (_, Some(path)) if path.starts_with('/') => Ok(What::Disk(path.into())),
        (_, Some(_)) => Err(ParseMeasureError::NameMissing { kind, form: "disk:/PATH" }),
        ("interfaces", None) => Ok(What::Interfaces),
        ("load", None) => Ok(What::Load),
        ("cpu", None) => Ok(What::Cpu),
        ("memory", None) => Ok(What::Memory),
        (_, None) => Ok(What::Uptime),
    }
}

/// An OID in digits, or a name of an object followed by its instance. A bare word is refused, so
/// that a misspelt kind is told at once.
fn is_object(word: &str) -> bool {
    let word = word.trim_start_matches('.');
    let mut arcs = word.split('.');
    let first = arcs.next().unwrap_or_default();
    let named = first.starts_with(|c: char| c.is_ascii_alphabetic())
        && first.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_arc = |arc: &str| arc.bytes().all(|b| b.is_ascii_digit()) && arc.parse::<u32>().is_ok();
    let rest: Vec<&str> = arcs.collect();
    !rest.is_empty() && (named || is_arc(first)) && rest.iter().all(|arc| is_arc(arc))
}

/// `Err(None)` where the list itself cannot be read.
fn parse_columns(what: &What, list: &str) -> Result<Vec<String>, Option<ParseMeasureError>> {
    let allowed = what.columns();
    if allowed.is_empty() {
        return Err(None);
    }
    let kind = kinds().find(|(kind, _)| *kind == what.kind()).map_or("", |(kind, _)| kind);
    let mut columns = Vec::new();
    for column in list.split(',').map(str::trim) {
        if !allowed.contains(&column) {
            let allowed: Vec<_> = allowed.iter().map(|column| format!("`{column}`")).collect();
            let (column, allowed) = (column.to_owned(), allowed.join(", "));
            return Err(Some(ParseMeasureError::Column { kind, column, allowed }));
        }
        if !columns.iter().any(|known| known == column) {
            columns.push(column.to_owned());
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(What, Vec<String>, Option<Nanos>), String> {
        Measure::parse(text, Place { line: 1 })
            .map(|measure| (measure.what, measure.columns, measure.every))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_form_is_understood() {
        let bare = |what| Ok((what, vec![], None));
        assert_eq!(parse("interfaces"), bare(What::Interfaces));
        assert_eq!(parse("interface:eth0.100"), bare(What::Interface("eth0.100".into())));
        assert_eq!(parse("interface:Gi1/0/1"), bare(What::Interface("Gi1/0/1".into())));
        assert_eq!(parse("disk:/"), bare(What::Disk("/".into())));
        assert_eq!(parse("load"), bare(What::Load));
        assert_eq!(parse("cpu"), bare(What::Cpu));
        assert_eq!(parse("memory"), bare(What::Memory));
        assert_eq!(parse("uptime"), bare(What::Uptime));
        assert_eq!(parse("ifHCInOctets.3"), bare(What::Object("ifHCInOctets.3".into())));
        assert_eq!(parse(".1.3.6.1.2.1.1.3.0"), bare(What::Object("1.3.6.1.2.1.1.3.0".into())));
        assert_eq!(
            parse("interface:eth0(in_octets, out_octets) every 10ms"),
            Ok((
                What::Interface("eth0".into()),
                vec!["in_octets".into(), "out_octets".into()],
                Some(Nanos::from_millis(10))
            ))
        );
        assert_eq!(
            parse("disk:/mnt/as every 1s every 10s"),
            Ok((What::Disk("/mnt/as every 1s".into()), vec![], Some(Nanos::from_secs(10))))
        );
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let message = |text: &str| parse(text).unwrap_err();
        insta::assert_snapshot!(message("disk:/\nrwuser x"), @r#"`disk:/\nrwuser x` cannot be read; the form is `KIND[:NAME][(column,column)] [every DURATION]`"#);
        insta::assert_snapshot!(message("interfce:eth0"), @"`interfce:eth0` is not known (did you mean `interface:NAME`?); allowed are `interface:NAME`, `interfaces`, `disk:PATH`, `load`, `cpu`, `memory`, `uptime`, `sensors`, `sensor:NAME`, an OID such as `1.3.6.1.2.1.1.3.0`, or an object with its instance such as `ifHCInOctets.3`");
        insta::assert_snapshot!(message("interface"), @"`interface` needs a name: write `interface:NAME`");
        insta::assert_snapshot!(message("disk:sda1"), @"`disk` needs a name: write `disk:/PATH`");
        insta::assert_snapshot!(message("load:1"), @"`load` takes no name; write `load` alone");
        insta::assert_snapshot!(message("load(load_2min)"), @"`load` has no column `load_2min`; allowed are `load_1min`, `load_5min`, `load_15min`");
        insta::assert_snapshot!(message("load every 10"), @"after `every` stands a span of time such as `10s`: `10` has no known unit; allowed are `ns`, `us`, `ms`, `s`, `min`, `h`, `d`");
        insta::assert_snapshot!(message("uptime(x)"), @"`uptime(x)` cannot be read; the form is `KIND[:NAME][(column,column)] [every DURATION]`");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_grammar_panic(text in "[a-z0-9:/(), .é]{0,40}") {
            let said = parse(&text);
            proptest::prop_assert!(said.is_ok() || !said.unwrap_err().is_empty());
        }
    }
}
