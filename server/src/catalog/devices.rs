//! The devices of a recording: those of its `devices.json`, and those of its rows.

use meikyo_recording::TableSchema;
use meikyo_recording::devices::{self, Role};

use super::Opened;
use crate::errors::ApiError;
use crate::wire::{AgentBody, DeviceBody};

impl Opened {
    /// The devices in the order of the cluster file; those that only rows name come last.
    pub(super) fn devices(
        &self,
        answers: Option<&TableSchema>,
    ) -> Result<Vec<DeviceBody>, ApiError> {
        let facts = devices::read(self.recording.dir()).unwrap_or_else(|error| {
            tracing::warn!(%error, "the recording's facts about devices cannot be used");
            Vec::new()
        });
        let mut found: Vec<DeviceBody> = Vec::new();
        for device in facts {
            let role = match device.role {
                Role::Host => "host",
                Role::Switch => "switch",
            };
            let agent = device
                .agent
                .map(|agent| AgentBody { address: agent.address, version: agent.version });
            let (name, group) = (device.name, device.group);
            found.push(DeviceBody { ordinal: 0, name, role, group, agent });
        }
        if let Some(answers) = answers {
            let of_rows = self.with_series(answers, |series| series.labels().to_vec())?;
            let known: std::collections::BTreeSet<_> =
                found.iter().map(|device| device.name.clone()).collect();
            for labels in of_rows {
                let name = labels.first().cloned().unwrap_or_default();
                if !known.contains(&name) {
                    let role = "unknown";
                    found.push(DeviceBody { ordinal: 0, name, role, group: None, agent: None });
                }
            }
        }
        for (ordinal, device) in (0..).zip(&mut found) {
            device.ordinal = ordinal;
        }
        Ok(found)
    }
}
