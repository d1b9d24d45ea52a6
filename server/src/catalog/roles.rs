//! Which tables of a recording are for what: devices, health, states, events and freshness are
//! found by what their tables are for and not by what they are called.

use std::sync::PoisonError;

use meikyo_recording::schema::Role;
use meikyo_recording::{ReadError, TableSchema};

use super::Opened;
use crate::errors::ApiError;

impl Opened {
    /// The name of the table of a role, the first by name if there are several; `None` while no
    /// writer has declared one. A name that was found is not looked up again.
    pub(crate) fn name_for(&self, role: Role) -> Result<Option<String>, ReadError> {
        if let Some(name) = self.known_for(role) {
            return Ok(Some(name));
        }
        let found = self.recording.tables_for(role)?.into_iter().next().map(|table| table.name);
        if let Some(name) = &found {
            let mut known = self.roles.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(role, name.clone());
        }
        Ok(found)
    }

    /// The name of the table of a role if that was looked up before; nothing is read.
    pub(super) fn known_for(&self, role: Role) -> Option<String> {
        self.roles.lock().unwrap_or_else(PoisonError::into_inner).get(&role).cloned()
    }

    /// The table of a role; `None` while no writer has declared one.
    pub(crate) fn table_for(&self, role: Role) -> Result<Option<TableSchema>, ReadError> {
        let Some(name) = self.name_for(role)? else { return Ok(None) };
        match self.recording.table(&name) {
            Ok(table) => Ok(Some(table)),
            Err(ReadError::UnknownTable { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The table that says how the intervals of devices ended.
    pub(crate) fn answers(&self) -> Result<TableSchema, ApiError> {
        let found = self.table_for(Role::Answers)?;
        found.ok_or_else(|| {
            let text = "the recording has no table that says how devices answered".to_owned();
            ApiError::unknown(text, "table")
        })
    }
}
