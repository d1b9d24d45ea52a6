//! Whether anything is alerted of: without rules, no alert says nothing about health.

use meikyo_recording::tables::events;
use meikyo_recording::{ReadError, Recording, Selection};

/// The kind of the event that says that nothing is alerted of from then on.
pub const NO_RULES: &str = "no_alert_rules";
/// The kind of the event that says that rules are set again, after there were none.
pub const RULES: &str = "alert_rules";

/// Whether rules of alerts were set when the recording said it last; it says so only where there are
/// none, and when there are some again.
///
/// # Errors
/// When the recording cannot be read.
pub fn are_set(recording: &Recording) -> Result<bool, ReadError> {
    if !recording.tables()?.contains_key(events::NAME) {
        return Ok(true);
    }
    let label = events::EVENT.name().to_owned();
    let kinds = [NO_RULES, RULES].map(str::to_owned).to_vec();
    let columns = ["time", events::EVENT.name()].map(str::to_owned).to_vec();
    let selection = Selection {
        columns: Some(columns),
        labels: vec![(label, kinds)],
        ..Selection::all(events::NAME)
    };
    let (mut newest, mut are_set) = (i64::MIN, true);
    for batch in recording.scan(&selection)? {
        let batch = batch?;
        for (row, &time) in crate::columns::times(&batch).iter().enumerate() {
            let kind = crate::columns::text(&batch, events::EVENT.name(), row);
            if time >= newest {
                (newest, are_set) = (time, kind != Some(NO_RULES));
            }
        }
    }
    Ok(are_set)
}
