//! Which tables of a recording are for what: devices, health, states, events and freshness are
//! found by what their tables are for and not by what they are called.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use meikyo_recording::schema::Role;
use meikyo_recording::{ReadError, TableSchema};

use super::Opened;

impl Opened {
    /// The name of the table of a role, the first by name if there are several; `None` while no
    /// writer has declared one. A name that was found is not looked up again.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn name_for(&self, role: Role) -> Result<Option<String>, ReadError> {
        if let Some(name) = self.known_for(role) {
            return Ok(Some(name));
        }
        let found = self.recording.tables_for(role)?.into_iter().next().map(|table| table.name);
        if let Some(name) = &found {
            self.known_roles().insert(role, name.clone());
        }
        Ok(found)
    }

    /// The name of the table of a role if that was looked up before; nothing is read.
    pub(super) fn known_for(&self, role: Role) -> Option<String> {
        self.known_roles().get(&role).cloned()
    }

    /// The table of a role; `None` while no writer has declared one.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn table_for(&self, role: Role) -> Result<Option<TableSchema>, ReadError> {
        let Some(name) = self.name_for(role)? else { return Ok(None) };
        match self.recording.table(&name) {
            Ok(table) => Ok(Some(table)),
            Err(ReadError::UnknownTable { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn known_roles(&self) -> MutexGuard<'_, BTreeMap<Role, String>> {
        self.roles.lock().expect("nothing that holds the names of tables can panic")
    }
}
