//! `fuzz/Cargo.lock` holds what our packages depend on today. Cargo itself says so only where all crates of the
//! fuzz targets can be fetched, which continuous integration cannot.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde::Deserialize;

use crate::tidy::Fault;
use crate::tidy::workspace::{Package, Workspace};

pub(crate) const LOCK: &str = "fuzz/Cargo.lock";

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// Our packages whose dependencies the lock of the fuzz targets does not know, given its text.
pub(crate) fn check(workspace: &Workspace, lock: &str) -> anyhow::Result<Vec<Fault>> {
    let lock: Lock = toml::from_str(lock).with_context(|| format!("`{LOCK}` is no lock file"))?;
    let fault = |package: &Package| {
        let locked = lock.package.iter().find(|locked| locked.name == package.name)?;
        // Where there are several versions, the one that is meant follows.
        let bare = |named: &String| named.split(' ').next().unwrap_or_default().to_owned();
        let known: BTreeSet<_> = locked.dependencies.iter().map(bare).collect();
        let ordinary = package.dependencies.iter().filter(|own| own.kind.is_none());
        let wanted: BTreeSet<_> = ordinary.map(|own| own.name.clone()).collect();
        let changed: Vec<_> = wanted.symmetric_difference(&known).cloned().collect();
        let text = || {
            format!(
                "`{}` differs in {}; run `cargo update --workspace --manifest-path fuzz/Cargo.toml`",
                package.name,
                changed.join(", ")
            )
        };
        (!changed.is_empty()).then(|| Fault::new(LOCK, 0, text()))
    };
    Ok(workspace.members().filter_map(fault).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::workspace::{Dependency, test_package, test_workspace};

    #[test]
    fn a_lock_that_does_not_know_a_dependency_is_found() {
        let mut own = test_package("meikyo-sim", "0.2.0");
        let dependency = |name: &str, kind: Option<&str>| Dependency {
            name: name.into(),
            kind: kind.map(str::to_owned),
        };
        own.dependencies = vec![
            dependency("serde", None),
            dependency("meikyo-units", None),
            dependency("proptest", Some("dev")),
        ];
        let unused = test_package("meikyo-server", "0.2.0");
        let workspace = test_workspace(vec![own, unused], 2);
        let lock = |dependencies: &str| {
            format!("[[package]]\nname = \"meikyo-sim\"\ndependencies = [{dependencies}]\n")
        };
        let faults = |text: &str| {
            let faults = check(&workspace, &lock(text)).unwrap();
            faults.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(faults(r#""meikyo-units", "serde 1.0.2""#), Vec::<String>::new());
        let found = faults(r#""meikyo-units", "libc""#);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("`meikyo-sim` differs in libc, serde"), "{found:?}");
        assert!(check(&workspace, "no = [lock").is_err());
    }
}
