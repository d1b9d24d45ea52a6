//! From the cluster file to what the collector is given.

use std::path::Path;

use meikyo_cluster::{Cluster, Device};
use meikyo_snmp::poll::DeviceSpec;
use meikyo_snmp::{Credentials, CredentialsError};

/// A device whose credentials could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the credentials of `{device}` (line {line} of {path}) cannot be used")]
pub(super) struct SetupError {
    device: String,
    line: usize,
    path: String,
    source: CredentialsError,
}

/// A device with its secrets in hand.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    pub(super) device: Device,
    pub(super) credentials: Credentials,
}

impl Ready {
    /// What the poll core is told of the device.
    pub(super) fn spec(&self) -> DeviceSpec {
        DeviceSpec::new(&self.device, self.credentials.clone())
    }
}

/// Reads the secrets of every device.
pub(super) fn ready(cluster: &Cluster) -> Result<Vec<Ready>, SetupError> {
    cluster
        .devices
        .iter()
        .map(|device| ready_device(device, cluster.base(), &cluster.path))
        .collect()
}

/// Reads the secrets of one device.
pub(super) fn ready_device(device: &Device, base: &Path, path: &Path) -> Result<Ready, SetupError> {
    let credentials =
        Credentials::resolve(&device.snmp.access, base).map_err(|source| SetupError {
            device: device.name.clone(),
            line: device.place.line,
            path: path.display().to_string(),
            source,
        })?;
    Ok(Ready { device: device.clone(), credentials })
}
