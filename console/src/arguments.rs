//! Values that several commands take.

use meikyo_units::{Nanos, ParseQuantityError};

/// A span between two readings or two changes, within what the cluster file allows.
///
/// # Errors
/// A text for people if it is no span, or out of range.
pub fn interval(text: &str) -> Result<Nanos, String> {
    let span: Nanos = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    if (Nanos::from_millis(1)..=Nanos::from_secs(3_600)).contains(&span) {
        Ok(span)
    } else {
        Err(format!("{span} is out of range; allowed are 1ms to 1h"))
    }
}
