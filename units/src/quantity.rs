//! A decimal number followed by a unit, parsed exactly.

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text does not begin with a decimal number.
    #[error("`{text}` does not begin with a number; write for example `{example}`")]
    Number {
        /// What was to be a quantity.
        text: String,
        /// A correct text of the same kind.
        example: &'static str,
    },
    /// The number has no unit, or one that this kind of quantity does not know.
    #[error("`{text}` has no known unit; allowed are {allowed}")]
    Unit {
        /// What was to be a quantity.
        text: String,
        /// The units that are understood.
        allowed: &'static str,
    },
    /// The unit means different things to different people.
    #[error("`{text}` has no known unit; did you mean `{number}{}` or `{number}{}`?", meant[0], meant[1])]
    Ambiguous {
        /// The quantity with the ambiguous unit.
        text: String,
        /// The number that stands before the unit.
        number: String,
        /// The units that can be meant.
        meant: [&'static str; 2],
    },
    /// Of several numbers with units, one is not of a smaller unit than the one before it.
    #[error(
        "`{text}` has its units in another order than from great to small; write for example `{example}`"
    )]
    Order {
        /// The whole quantity, with all its numbers.
        text: String,
        /// A correct text of the same kind.
        example: &'static str,
    },
    /// The value is finer than the smallest unit, or larger than 64 bits hold.
    #[error("`{text}` cannot be kept exactly in 64 bits")]
    Range {
        /// The quantity that does not fit.
        text: String,
    },
}

/// The units of one kind of quantity, for parsing and for printing.
pub(crate) struct Units {
    /// Name and size in the smallest unit.
    pub(crate) table: &'static [(&'static str, u64)],
    /// The names as a list for messages.
    pub(crate) allowed: &'static str,
    /// A correct text.
    pub(crate) example: &'static str,
    /// A word that is no unit because two could be meant, with those two.
    pub(crate) ambiguous: Option<(&'static str, [&'static str; 2])>,
}

/// Parses `text` into a whole number of the smallest unit of `units`.
pub(crate) fn parse(text: &str, units: &Units) -> Result<u64, ParseQuantityError> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let digits = number.replace('_', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(ParseQuantityError::Number { text: text.into(), example: units.example });
    }
    let unit = unit.trim();
    if let Some((_, meant)) = units.ambiguous.filter(|(word, _)| *word == unit) {
        return Err(ParseQuantityError::Ambiguous {
            text: text.into(),
            number: number.into(),
            meant,
        });
    }
    let Some(&(_, size)) = units.table.iter().find(|(name, _)| *name == unit) else {
        return Err(ParseQuantityError::Unit { text: text.into(), allowed: units.allowed });
    };
    let range = || ParseQuantityError::Range { text: text.into() };
    let whole: u128 = whole.parse().map_err(|_| range())?;
    let mut value = whole.checked_mul(u128::from(size)).ok_or_else(range)?;
    let mut scale = u128::from(size);
    for digit in fraction.bytes().map(|b| u128::from(b - b'0')) {
        if digit != 0 && scale % 10 != 0 {
            return Err(range());
        }
        scale /= 10;
        value += digit * scale;
    }
    u64::try_from(value).map_err(|_| range())
}

/// Parses `text` as one number with its unit, or as the sum of several, from the greatest unit to the
/// smallest: `8min30s`. Only the last number may have a fraction.
pub(crate) fn parse_sum(
    text: &str,
    units: &Units,
    example: &'static str,
) -> Result<u64, ParseQuantityError> {
    let parts = parts(text);
    if parts.len() == 1 {
        return parse(text, units);
    }
    let (mut sum, mut unit_before) = (0_u64, u64::MAX);
    for (position, part) in parts.iter().enumerate() {
        let value = parse(part, units)?;
        let unit = units.table.iter().filter(|(name, _)| unit_of(part) == *name);
        let unit = unit.map(|(_, size)| *size).next().unwrap_or(u64::MAX);
        let is_last = position + 1 == parts.len();
        if unit >= unit_before || (part.contains('.') && !is_last) {
            return Err(ParseQuantityError::Order { text: text.into(), example });
        }
        unit_before = unit;
        let range = || ParseQuantityError::Range { text: text.into() };
        sum = sum.checked_add(value).ok_or_else(range)?;
    }
    Ok(sum)
}

/// A text divided before every number that follows a unit.
fn parts(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut starts = vec![0];
    let mut in_unit = false;
    for (at, c) in text.char_indices() {
        if c.is_ascii_digit() && std::mem::take(&mut in_unit) {
            starts.push(at);
        } else if !c.is_ascii_digit() && !matches!(c, '.' | '_') && !c.is_whitespace() {
            in_unit = true;
        }
    }
    starts.push(text.len());
    starts.windows(2).map(|ends| text[ends[0]..ends[1]].trim()).collect()
}

/// What stands behind the number of one part.
fn unit_of(part: &str) -> &str {
    part.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_')).trim()
}

/// Writes `value` with the largest unit that keeps it a whole number.
pub(crate) fn write(
    value: u64,
    units: &[(&str, u64)],
    f: &mut std::fmt::Formatter<'_>,
) -> std::fmt::Result {
    let fitting = units.iter().filter(|(_, size)| value != 0 && value.is_multiple_of(*size));
    let (name, size) = fitting.max_by_key(|(_, size)| *size).copied().unwrap_or_else(|| units[0]);
    f.pad(&format!("{}{name}", value / size))
}
