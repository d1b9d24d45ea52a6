//! The workspace and its dependencies as cargo sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use crate::program::{cargo, program};

/// What `cargo metadata` says, as far as it is needed.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    workspace_root: String,
    resolve: Option<Resolve>,
}

/// The packages that are really used on this platform.
#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
}

/// One package, ours or not.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) license: Option<String>,
    #[serde(default)]
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) manifest_path: String,
    #[serde(default)]
    pub(crate) features: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) metadata: Option<Metadata>,
}

/// One line under `[dependencies]` and its sisters.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev` or `build`; `None` for an ordinary one.
    pub(crate) kind: Option<String>,
}

/// `[package.metadata]`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default)]
    pub(crate) house: Option<House>,
}

/// `[package.metadata.house]`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct House {
    /// 0 is the lowest; dependencies go only to lower ones.
    pub(crate) layer: u32,
}

/// Asks cargo for the platform that this runs on. On a fresh machine cargo fetches the crates first; where
/// they are here already it does not use the network.
pub(crate) fn read(root: &Path) -> anyhow::Result<Workspace> {
    let version = program(root, "rustc", &["-vV"]).output()?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("`rustc -vV` names no host")?;
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    let text = cargo(root, &arguments).output()?;
    serde_json::from_str(&text).context("what `cargo metadata` printed is not understood")
}

impl Workspace {
    /// Our own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// Packages of others that are used on this platform.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = &Package> {
        let nodes = self.resolve.iter().flat_map(|resolve| &resolve.nodes);
        let used: BTreeSet<_> = nodes.map(|node| node.id.as_str()).collect();
        self.packages.iter().filter(move |package| {
            used.contains(package.id.as_str()) && !self.workspace_members.contains(&package.id)
        })
    }

    /// The manifest's path below the root.
    pub(crate) fn manifest<'a>(&self, package: &'a Package) -> &'a str {
        let below = package.manifest_path.strip_prefix(self.workspace_root.as_str());
        below.unwrap_or(&package.manifest_path).trim_start_matches('/')
    }
}

#[cfg(test)]
pub(crate) fn test_workspace(packages: Vec<Package>, ours: usize) -> Workspace {
    let workspace_members = packages.iter().take(ours).map(|package| package.id.clone()).collect();
    let nodes = packages.iter().map(|package| Node { id: package.id.clone() }).collect();
    let resolve = Some(Resolve { nodes });
    Workspace { packages, workspace_members, workspace_root: "/r".into(), resolve }
}

#[cfg(test)]
pub(crate) fn test_package(name: &str, version: &str) -> Package {
    Package {
        id: format!("{name} {version}"),
        name: name.into(),
        version: version.into(),
        manifest_path: format!("/r/{name}/Cargo.toml"),
        ..Package::default()
    }
}
