//! What is wrong with a cluster file beyond its form: what only the engines know.
//!
//! Unknown objects are found while the file is read ([`of_object`]), so that no other mistake hides
//! them; fabrics and passwords are looked at once the form is right.

use std::collections::BTreeSet;

use meikyo_cluster::{
    Access, Cluster, Device, Fabric, Origin, Origins, Problem, Problems, Resolved, TableKeep, What,
};
use meikyo_fabric::{DescribeError, PlanError, describe, plan};
use meikyo_snmp::usm::{KeyError, PASSWORD_OCTETS_MIN};
use meikyo_snmp::{objects, tables};
use meikyo_units::in_one_line;

/// Fabrics of at most so many switches are planned to see whether they can be: milliseconds.
const PLANNED_SWITCHES_MAX: usize = 100;

/// Everything that is wrong, in the order of the lines.
pub(super) fn of_file(resolved: &Resolved) -> Option<Problems> {
    let cluster = &resolved.cluster;
    let mut problems = BTreeSet::new();
    for (device, origins) in cluster.devices.iter().zip(&resolved.origins) {
        problems.extend(short_passwords(cluster, device, origins));
    }
    problems.extend(cluster.fabric.as_ref().and_then(|fabric| of_fabric(cluster, fabric)));
    problems.extend(unknown_tables(cluster));
    listed(cluster, problems)
}

/// Names of objects and tables that nobody knows: the cluster file takes any word for one, since
/// which names are known is the engine's business.
pub(super) fn of_objects(cluster: &Cluster) -> Option<Problems> {
    let mut problems = unknown_objects(cluster);
    problems.extend(unknown_tables(cluster));
    listed(cluster, problems)
}

/// Tables of the recording that no engine fills.
pub(super) fn of_tables(cluster: &Cluster) -> Option<Problems> {
    listed(cluster, unknown_tables(cluster).into_iter().collect())
}

fn unknown_tables(cluster: &Cluster) -> Vec<Problem> {
    let known: Vec<_> = tables::schemas().into_iter().map(|table| table.name).collect();
    let is_known = |name: &str| {
        let name = name.strip_suffix(meikyo_recording::summary::SUFFIX).unwrap_or(name);
        known.iter().any(|known| known == name)
    };
    let unknown = cluster.keep_tables.iter().filter(|of| !is_known(&of.table));
    let problem = |of: &TableKeep| Problem {
        line: Some(of.place.line),
        key: format!("recording.tables.{}", of.table.escape_debug()),
        text: format!(
            "there is no table `{}`; there are {}, and their summaries, as `interfaces.summary`",
            of.table.escape_debug(),
            known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    unknown.map(problem).collect()
}

fn listed(cluster: &Cluster, problems: BTreeSet<Problem>) -> Option<Problems> {
    let problems: Vec<_> = problems.into_iter().collect();
    (!problems.is_empty()).then(|| Problems::new(&cluster.path, problems))
}

/// Why an object cannot be asked for.
pub(super) fn of_object(name: &str) -> Result<(), String> {
    objects::lookup(name).map(drop).map_err(|error| in_one_line(&error))
}

fn unknown_objects(cluster: &Cluster) -> BTreeSet<Problem> {
    let measures = cluster.devices.iter().flat_map(|device| &device.measure);
    let mut problems = BTreeSet::new();
    for measure in measures {
        if let What::Object(name) = &measure.what
            && let Err(problem) = of_object(name)
        {
            let text = format!("`{}`: {problem}", measure.text);
            problems.insert(Problem::new(Origin::Line(measure.place.line), "measure", text));
        }
    }
    problems
}

/// Passwords of SNMPv3 that make no key (RFC 3414, section 11.2). Those that cannot be read here are
/// no problem of the file.
fn short_passwords(cluster: &Cluster, device: &Device, origins: &Origins) -> Vec<Problem> {
    let write = device.snmp.write_access.as_ref().map(|access| (access, origins.write));
    let mut problems = Vec::new();
    for (access, origin) in [(&device.snmp.access, origins.credentials)].into_iter().chain(write) {
        let Access::V3 { auth, privacy, .. } = access else { continue };
        let auth = auth.iter().map(|(_, secret)| ("auth", secret));
        let privacy = privacy.iter().map(|(_, secret)| ("privacy", secret));
        for (key, secret) in auth.chain(privacy) {
            let Ok(password) = secret.read(cluster.base()) else { continue };
            let octets = password.len();
            if octets < PASSWORD_OCTETS_MIN {
                let line = Origin::Line(origin.line().unwrap_or(device.place.line));
                let text = format!("`{secret}`: {}", KeyError::PasswordTooShort { octets });
                problems.push(Problem::new(line, format!("{key}.password"), text));
            }
        }
    }
    problems
}

/// Why the fabric cannot be wired, or not be planned.
fn of_fabric(cluster: &Cluster, fabric: &Fabric) -> Option<Problem> {
    let problem = |line, key: &str, text: String| Some(Problem::new(Origin::Line(line), key, text));
    let described = match describe(cluster) {
        Ok(described) => described,
        Err(DescribeError::Value { place, key, text }) => return problem(place.line, key, text),
        Err(DescribeError::Cabling { place, text }) => {
            return problem(place.line, "fabric.topology", text.to_string());
        }
        Err(error @ DescribeError::Missing) => {
            return problem(fabric.place.line, "fabric", error.to_string());
        }
    };
    if described.wiring.switches.len() > PLANNED_SWITCHES_MAX {
        return None;
    }
    match plan(&described.wiring, &described.options) {
        // Hosts on one switch are cabled and drawn, and need no plan.
        Ok(_) | Err(PlanError::Nothing { switches: 1 }) => None,
        Err(error) => problem(fabric.place.line, "fabric", in_one_line(&error)),
    }
}
