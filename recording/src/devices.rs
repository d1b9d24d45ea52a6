//! `devices.json`: what is known of the devices of a recording beyond their rows.
//!
//! Rows name a device; whether it is a host or a switch, and the group it stands in, is in the
//! cluster file, which may be gone when the recording is looked at. Whoever writes a recording
//! leaves a copy of these facts beside it. A recording without one is whole: readers then know the
//! names only.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::problem::read_regular;
use crate::unfinished::{Durability, replace_file};

/// The file in a recording's directory.
pub const FILE_NAME: &str = "devices.json";

/// What is known of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name, as in the label `device`.
    pub name: String,
    /// Host or switch.
    pub role: Role,
    /// The group it stands in, for example a rack.
    pub group: Option<String>,
    /// Who answers for it; `None` when nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
}

/// The agent of a device, as the collector asks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Address and port.
    pub address: String,
    /// Version of SNMP: `1`, `2c` or `3`.
    pub version: String,
}

/// What a device is in the machine room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It computes.
    Host,
    /// It forwards.
    Switch,
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    devices: Vec<Device>,
}

/// Why the facts could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// The system refused.
    #[error("cannot {doing} `{path}`")]
    System {
        /// What was being done.
        doing: &'static str,
        /// Path of the `devices.json`.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("`{path}` cannot be understood")]
    Syntax {
        /// Path of the `devices.json`.
        path: PathBuf,
        /// What the parser says.
        source: serde_json::Error,
    },
}

/// The facts of the recording in `dir`, in the order of the cluster file; none when it has none.
///
/// # Errors
/// When the file cannot be read or understood.
pub fn read(dir: &Path) -> Result<Vec<Device>, DevicesError> {
    let path = dir.join(FILE_NAME);
    let text = match read_regular(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(DevicesError::System { doing: "read", path, source }),
    };
    let file: File =
        serde_json::from_str(&text).map_err(|source| DevicesError::Syntax { path, source })?;
    Ok(file.devices)
}

/// Writes the facts into the recording in `dir`: by rename, so that a reader sees the old file or
/// the new one.
///
/// # Errors
/// When the file cannot be written.
pub fn write(dir: &Path, devices: &[Device]) -> Result<(), DevicesError> {
    let path = dir.join(FILE_NAME);
    let file = File { devices: devices.to_vec() };
    let text = serde_json::to_vec_pretty(&file)
        .map_err(|source| DevicesError::Syntax { path: path.clone(), source })?;
    replace_file(&path, &text, Durability::Kernel).map_err(|source| DevicesError::System {
        doing: "write",
        path,
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn facts_come_back_as_they_were_written_and_none_are_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), []);
        let agent = Agent { address: "[::1]:161".into(), version: "2c".into() };
        let group = Some("rack1".into());
        let devices = [
            Device { name: "node001".into(), role: Role::Host, group, agent: Some(agent) },
            Device { name: "sw1".into(), role: Role::Switch, group: None, agent: None },
        ];
        write(dir.path(), &devices).unwrap();
        assert_eq!(read(dir.path()).unwrap(), devices);
        fs::write(dir.path().join(FILE_NAME), "{").unwrap();
        assert!(matches!(read(dir.path()), Err(DevicesError::Syntax { .. })));
    }
}
