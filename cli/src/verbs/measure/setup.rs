//! From the cluster file to what the collector is given.

use std::path::Path;

use meikyo_cluster::{Cluster, Device};
use meikyo_snmp::poll::DeviceSpec;
use meikyo_snmp::{Credentials, CredentialsError};

/// A device that cannot be measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetupError {
    /// Its credentials cannot be read.
    #[error("the credentials of `{device}` (line {line} of {path}) cannot be used")]
    Credentials {
        /// Its name.
        device: String,
        /// The line of its entry.
        line: usize,
        /// The cluster file.
        path: String,
        /// Which part of them is wrong.
        source: CredentialsError,
    },
    /// The file describes a fabric and does not say what to measure there.
    #[error(
        "line {line} of {path} does not say what to measure on `{device}`: add, for example, \
         measure = [\"interfaces\", \"load\"]"
    )]
    NothingToMeasure {
        /// Its name.
        device: String,
        /// The line of its entry.
        line: usize,
        /// The cluster file.
        path: String,
    },
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
    let (name, line, file) = (device.name.clone(), device.place.line, path.display().to_string());
    let credentials = Credentials::resolve(&device.snmp.access, base).map_err(|source| {
        SetupError::Credentials { device: name.clone(), line, path: file.clone(), source }
    })?;
    if device.measure.is_empty() {
        return Err(SetupError::NothingToMeasure { device: name, line, path: file });
    }
    Ok(Ready { device: device.clone(), credentials })
}
