//! Licences, sources and duplicates of what others wrote, as `deny.toml` allows them.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::Fault;
use crate::tidy::rules::Deny;
use crate::tidy::workspace::Workspace;

const RULES: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

/// Dependencies that may not be used as they are.
pub(crate) fn check(workspace: &Workspace, deny: &Deny) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in workspace.foreign() {
        let named = format!("`{}` {}", package.name, package.version);
        let license = package.license.as_deref().unwrap_or_default();
        if !is_allowed(license, &deny.licenses.allow) {
            let text = format!("{named} has the licence `{license}`, which {RULES} does not allow");
            faults.push(Fault::new(LOCK, 0, text));
        }
        let source = package.source.as_deref().unwrap_or_default();
        let registry = source.strip_prefix("registry+").unwrap_or_default();
        if !deny.sources.allow_registry.iter().any(|allowed| allowed == registry) {
            let text = format!("{named} comes from `{source}`, which {RULES} does not allow");
            faults.push(Fault::new(LOCK, 0, text));
        }
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    faults.extend(duplicates(&versions, deny));
    faults
}

fn duplicates(versions: &BTreeMap<&str, BTreeSet<&str>>, deny: &Deny) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let is_skipped = |version: &&&str| {
            deny.bans.skip.iter().any(|skip| {
                let (skipped, beginning) = skip.name.split_once('@').unwrap_or((&skip.name, ""));
                skipped == *name && format!("{version}.").starts_with(&format!("{beginning}."))
            })
        };
        let counted: Vec<_> = versions.iter().filter(|version| !is_skipped(version)).collect();
        if counted.len() > 1 {
            let list = counted.iter().map(|version| version.to_string()).collect::<Vec<_>>();
            let text = format!(
                "`{name}` is there as {}; agree on one, or add a `skip` with its reason to {RULES}",
                list.join(" and ")
            );
            faults.push(Fault::new(LOCK, 0, text));
        }
    }
    let unexplained = deny.bans.skip.iter().filter(|skip| skip.reason.trim().is_empty());
    faults.extend(unexplained.map(|skip| {
        Fault::new(RULES, 0, format!("the `skip` of `{}` has no reason; write it", skip.name))
    }));
    faults
}

/// Whether an SPDX expression can be fulfilled with the allowed licences alone.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    // The old form of crates.io, `MIT/Apache-2.0`, means `OR`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let fulfilled = any_of(&mut rest, allowed);
    fulfilled && rest.is_empty()
}

fn any_of(words: &mut &[&str], allowed: &[String]) -> bool {
    let mut fulfilled = all_of(words, allowed);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        fulfilled |= all_of(words, allowed);
    }
    fulfilled
}

fn all_of(words: &mut &[&str], allowed: &[String]) -> bool {
    let mut fulfilled = one(words, allowed);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        fulfilled &= one(words, allowed);
    }
    fulfilled
}

fn one(words: &mut &[&str], allowed: &[String]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let fulfilled = any_of(words, allowed);
            let [")", rest @ ..] = *words else { return false };
            *words = rest;
            fulfilled
        }
        [license, "WITH", exception, rest @ ..] => {
            *words = rest;
            allowed.contains(&format!("{license} WITH {exception}"))
        }
        [license, rest @ ..] => {
            *words = rest;
            allowed.iter().any(|known| known == license)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::{AllowedSources, Bans, Licenses, Skip};
    use crate::tidy::workspace::{Package, test_package, test_workspace};

    fn deny() -> Deny {
        let skip = Skip { name: "twice@1".into(), reason: "why".into() };
        Deny {
            licenses: Licenses {
                allow: vec!["MIT".into(), "Unicode-3.0".into(), "A WITH e".into()],
            },
            bans: Bans { skip: vec![skip] },
            sources: AllowedSources { allow_registry: vec!["https://index".into()] },
        }
    }

    #[test]
    fn licence_expressions_are_evaluated() {
        let allowed = deny().licenses.allow;
        let cases = [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(GPL-3.0 OR MIT) AND Unicode-3.0", true),
            ("MIT OR GPL-3.0 AND Unicode-3.0", true),
            ("(MIT OR GPL-3.0) AND GPL-3.0", false),
            ("A WITH e", true),
            ("A", false),
            ("(MIT", false),
            ("MIT MIT", false),
            ("", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn foreign_licences_sources_and_duplicates_are_faults() {
        let foreign = |name: &str, version: &str, license: &str, source: &str| Package {
            license: Some(license.into()),
            source: Some(source.into()),
            ..test_package(name, version)
        };
        let index = "registry+https://index";
        let packages = vec![
            test_package("ours", "0.1.0"),
            foreign("good", "1.0.0", "MIT", index),
            foreign("bad", "1.0.0", "GPL-3.0", index),
            foreign("far", "1.0.0", "MIT", "git+https://elsewhere"),
            foreign("twice", "1.2.0", "MIT", index),
            foreign("twice", "2.0.0", "MIT", index),
            foreign("thrice", "1.0.0", "MIT", index),
            foreign("thrice", "2.0.0", "MIT", index),
        ];
        let faults: Vec<_> =
            check(&test_workspace(packages, 1), &deny()).iter().map(ToString::to_string).collect();
        assert_eq!(
            faults,
            [
                "Cargo.lock: `bad` 1.0.0 has the licence `GPL-3.0`, which deny.toml does not allow",
                "Cargo.lock: `far` 1.0.0 comes from `git+https://elsewhere`, which deny.toml does not allow",
                "Cargo.lock: `thrice` is there as 1.0.0 and 2.0.0; agree on one, or add a `skip` \
                 with its reason to deny.toml",
            ]
        );
    }
}
