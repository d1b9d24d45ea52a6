//! The kernel modules that a lab needs, loaded with what they depend on.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::system;

/// What a lab is made of, by file name. What is not there may be built into the kernel: whether it
/// works is seen when it is used.
const NEEDED: [&str; 10] = [
    "bridge.ko",
    "veth.ko",
    "8021q.ko",
    "bonding.ko",
    "sch_tbf.ko",
    "sch_netem.ko",
    "sch_ingress.ko",
    "cls_flower.ko",
    "act_vlan.ko",
    "overlay.ko",
];
/// IPv6 would send messages of its own; a bond that nobody asked for would be in every listing.
const OPTIONS: [(&str, &std::ffi::CStr); 2] =
    [("ipv6.ko", c"disable_ipv6=1"), ("bonding.ko", c"max_bonds=0")];

/// A module could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("cannot load the kernel module {path}")]
pub(crate) struct ModuleError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Loads what is needed from a directory with a `modules.dep`.
///
/// # Errors
/// [`ModuleError`] if the list cannot be read, or the kernel refuses a module.
pub(crate) fn load(directory: &Path) -> Result<(), ModuleError> {
    let list = directory.join("modules.dep");
    let text = std::fs::read_to_string(&list)
        .map_err(|source| ModuleError { path: list.clone(), source })?;
    let mut loaded = BTreeSet::new();
    for needed in NEEDED {
        for module in with_dependencies(&text, needed) {
            if loaded.insert(module) {
                load_one(&directory.join(module))?;
            }
        }
    }
    Ok(())
}

fn load_one(path: &Path) -> Result<(), ModuleError> {
    let wrong = |source| ModuleError { path: path.into(), source };
    let options = OPTIONS.iter().find(|(name, _)| path.ends_with(name));
    let file = File::open(path).map_err(wrong)?;
    system::load_module(&file, options.map_or(c"", |(_, options)| options)).map_err(wrong)
}

/// The module and what it depends on, what is needed first before what needs it.
fn with_dependencies<'a>(list: &'a str, name: &str) -> Vec<&'a str> {
    let line = list.lines().find_map(|line| {
        let (module, rest) = line.split_once(':')?;
        (module.rsplit('/').next() == Some(name)).then_some((module, rest))
    });
    let Some((module, rest)) = line else { return Vec::new() };
    // `modules.dep` lists dependencies in the order of a depth-first walk, nearest first.
    rest.split_whitespace().rev().chain([module]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_before_what_needs_it() {
        let list = "a/bridge.ko: a/stp.ko a/llc.ko\na/llc.ko:\nb/my_bridge.ko:\n";
        assert_eq!(with_dependencies(list, "bridge.ko"), ["a/llc.ko", "a/stp.ko", "a/bridge.ko"]);
        assert_eq!(with_dependencies(list, "veth.ko"), Vec::<&str>::new());
    }
}
