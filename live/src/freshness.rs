//! How often the values of a recording are updated, as its findings say.

use meikyo_recording::rate::Freshness;
use meikyo_recording::schema::Role;
use meikyo_recording::{ReadError, Selection};

use crate::opened::Opened;

/// What the whole recording says about how often values are updated; nothing if it has no table of
/// findings.
pub(crate) fn freshness(opened: &Opened) -> Result<Freshness, ReadError> {
    let mut freshness = Freshness::default();
    if let Some(table) = opened.table_for(Role::Findings)? {
        for batch in opened.recording.scan(&Selection::all(&table.name))? {
            freshness.add(&batch?);
        }
    }
    Ok(freshness)
}
