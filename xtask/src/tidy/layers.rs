//! The house: every crate has a layer, dependencies go only downward, the map names every crate.

use std::collections::BTreeMap;

use crate::tidy::Fault;
use crate::tidy::sources::Source;
use crate::tidy::workspace::{Package, Workspace};

const MAP: &str = "ARCHITECTURE.md";

/// Crates that stand wrong in the house.
pub(crate) fn check(workspace: &Workspace, files: &[Source]) -> Vec<Fault> {
    let layers: BTreeMap<_, _> = workspace
        .members()
        .filter_map(|package| Some((package.name.as_str(), layer(package)?)))
        .collect();
    let map = files.iter().find(|file| file.path == MAP).and_then(|file| file.text.as_deref());
    let mut faults = Vec::new();
    if map.is_none() {
        faults.push(Fault::new(MAP, 0, "the map is missing; say what every crate is for"));
    }
    for package in workspace.members() {
        let manifest = workspace.manifest(package);
        let text = files.iter().find(|file| file.path == manifest);
        let text = text.and_then(|file| file.text.as_deref()).unwrap_or_default();
        if !text.contains("[lints]\nworkspace = true") {
            let text = "does not take the lints; add `[lints]` and `workspace = true`";
            faults.push(Fault::new(manifest, 0, text));
        }
        faults.extend(layer_faults(package, manifest, text, &layers));
        let directory = manifest.trim_end_matches("/Cargo.toml");
        if map.is_some_and(|map| !map.contains(&format!("`{directory}`"))) {
            let text = format!("does not name the crate `{directory}`; say what it is for");
            faults.push(Fault::new(MAP, 0, text));
        }
    }
    faults
}

fn layer_faults(
    package: &Package,
    manifest: &str,
    text: &str,
    layers: &BTreeMap<&str, u32>,
) -> Vec<Fault> {
    let Some(own) = layer(package) else {
        let text = "has no layer; add `[package.metadata.house]` and `layer = N`";
        return vec![Fault::new(manifest, 0, text)];
    };
    let line_of = |name: &str| {
        let found = text.lines().position(|line| line.starts_with(name));
        found.map_or(0, |at| at + 1)
    };
    let lasting = package.dependencies.iter().filter(|other| other.kind.as_deref() != Some("dev"));
    let upward = lasting.filter_map(|other| {
        let lower = *layers.get(other.name.as_str())?;
        (lower >= own).then(|| {
            let text = format!(
                "layer {own} uses `{}` of layer {lower}; dependencies go only downward",
                other.name
            );
            Fault::new(manifest, line_of(&other.name), text)
        })
    });
    upward.collect()
}

fn layer(package: &Package) -> Option<u32> {
    Some(package.metadata.as_ref()?.house.as_ref()?.layer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sources::test_source;
    use crate::tidy::workspace::{Dependency, House, Metadata, test_package, test_workspace};

    fn package(name: &str, layer: Option<u32>, uses: &[(&str, Option<&str>)]) -> Package {
        let metadata = layer.map(|layer| Metadata { house: Some(House { layer }) });
        let dependencies = uses
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).into(), kind: kind.map(Into::into) });
        let dependencies = dependencies.collect();
        Package { metadata, dependencies, ..test_package(name, "1.0.0") }
    }

    #[test]
    fn a_crate_that_reaches_up_or_sideways_is_a_fault() {
        let packages = vec![
            package("low", Some(1), &[("high", None)]),
            package("high", Some(2), &[("low", None), ("side", None)]),
            package("side", Some(2), &[("high", Some("dev"))]),
            package("lost", None, &[]),
        ];
        let lints = "[lints]\nworkspace = true\n";
        let files = [
            test_source("ARCHITECTURE.md", "`low` `high` `lost`\n"),
            test_source(
                "low/Cargo.toml",
                &format!("{lints}[dependencies]\nhigh.workspace = true\n"),
            ),
            test_source("high/Cargo.toml", lints),
            test_source("side/Cargo.toml", "[dependencies]\n"),
            test_source("lost/Cargo.toml", lints),
        ];
        let mut faults = check(&test_workspace(packages, 4), &files);
        faults.sort();
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            faults,
            [
                "ARCHITECTURE.md: does not name the crate `side`; say what it is for",
                "high/Cargo.toml: layer 2 uses `side` of layer 2; dependencies go only downward",
                "lost/Cargo.toml: has no layer; add `[package.metadata.house]` and `layer = N`",
                "low/Cargo.toml:4: layer 1 uses `high` of layer 2; dependencies go only downward",
                "side/Cargo.toml: does not take the lints; add `[lints]` and `workspace = true`",
            ]
        );
    }
}
