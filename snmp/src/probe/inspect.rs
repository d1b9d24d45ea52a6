//! Every device of a cluster before a run: credentials, answers, missing objects.

use meikyo_cluster::Cluster;
use meikyo_units::Nanos;

use super::Trouble;
use crate::credentials::Credentials;
use crate::plan::DevicePlan;
use crate::resolve::{self, Problem};
use crate::survey::{Job, SurveyOptions, SurveySocketError, walk_all};

/// Requests in flight: what the default receive buffer holds of full answers.
const IN_FLIGHT_MAX: usize = 64;

/// How often an unanswered request is sent again.
const RETRIES: u32 = 2;

/// One device of the cluster.
#[derive(Debug)]
pub struct Inspected {
    /// Its position among the cluster's devices.
    pub device: usize,
    /// What can be measured on it and what cannot, or why nothing can.
    pub result: Result<(DevicePlan, Vec<Problem>), Trouble>,
}

/// Walks every device once; in the order of the cluster file.
///
/// # Errors
/// Only if the system gives no socket: what is wrong with a device is in its result.
pub fn inspect(cluster: &Cluster) -> Result<Vec<Inspected>, SurveySocketError> {
    let mut inspected = Vec::new();
    let mut jobs = Vec::new();
    for (position, device) in cluster.devices.iter().enumerate() {
        match Credentials::resolve(&device.snmp.access, cluster.base()) {
            Ok(credentials) => jobs.push(Job {
                device: position,
                address: device.address,
                credentials,
                subtrees: resolve::walks_for(device),
            }),
            Err(error) => {
                let result = Err(Trouble::of_credentials(&error));
                inspected.push(Inspected { device: position, result });
            }
        }
    }
    let timeouts = cluster.devices.iter().map(|device| device.snmp.timeout);
    let timeout = timeouts.max().unwrap_or(Nanos::SECOND);
    let options = SurveyOptions { in_flight_max: IN_FLIGHT_MAX, timeout, retries: RETRIES };
    for finished in walk_all(jobs, options)? {
        let device = &cluster.devices[finished.device];
        let result = match finished.result {
            Ok(walked) => Ok(resolve::plan(device, &walked)),
            Err(error) => Err(Trouble::of_survey(device, &error)),
        };
        inspected.push(Inspected { device: finished.device, result });
    }
    inspected.sort_by_key(|inspected| inspected.device);
    Ok(inspected)
}
