//! The devices of a recording: those of its `devices.json`, and those of its rows.

use std::collections::BTreeSet;

use meikyo_recording::ReadError;
use meikyo_recording::devices::{self, Agent};
use meikyo_recording::schema::Role;

use super::Opened;

/// A device as far as its recording knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name, as in the label `device`.
    pub name: String,
    /// `host`, `switch` or `unknown`.
    pub role: &'static str,
    /// The group it stands in, for example a rack.
    pub group: Option<String>,
    /// How it is asked; `None` when that is not known.
    pub agent: Option<Agent>,
}

impl Opened {
    /// The devices in the order of the cluster file; those that only rows name come last.
    ///
    /// # Errors
    /// When the series of answers cannot be looked up.
    pub fn devices(&self) -> Result<Vec<Device>, ReadError> {
        let facts = devices::read(self.recording.dir()).unwrap_or_else(|error| {
            tracing::warn!(%error, "the recording's facts about devices cannot be used");
            Vec::new()
        });
        let mut found: Vec<Device> = Vec::new();
        for devices::Device { name, role, group, agent } in facts {
            let role = match role {
                devices::Role::Host => "host",
                devices::Role::Switch => "switch",
            };
            found.push(Device { name, role, group, agent });
        }
        if let Some(answers) = self.table_for(Role::Answers)? {
            let of_rows = self.with_series(&answers, |series| series.labels().to_vec())?;
            let known: BTreeSet<_> = found.iter().map(|device| device.name.clone()).collect();
            for labels in of_rows {
                let name = labels.first().cloned().unwrap_or_default();
                if !known.contains(&name) {
                    found.push(Device { name, role: "unknown", group: None, agent: None });
                }
            }
        }
        Ok(found)
    }
}
