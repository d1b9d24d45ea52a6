//! Links of the Markdown pages: every file and every heading that is pointed at is there.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::Fault;
use crate::tidy::sources::Source;

/// Relative links that lead nowhere.
pub(crate) fn check(files: &[Source]) -> Vec<Fault> {
    let mut places: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    for file in files {
        let anchors = (file.extension() == "md").then(|| headings(file));
        places.insert(file.path.clone(), anchors);
        let mut directory = file.path.as_str();
        while let Some((parent, _)) = directory.rsplit_once('/') {
            places.entry(parent.into()).or_insert(None);
            directory = parent;
        }
    }
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md") {
        for (number, line) in outside_fences(file) {
            for target in targets(line) {
                faults.extend(fault_of(file, number, target, &places));
            }
        }
    }
    faults
}

fn fault_of(
    file: &Source,
    number: usize,
    target: &str,
    places: &BTreeMap<String, Option<BTreeSet<String>>>,
) -> Option<Fault> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let full = if path.is_empty() { Some(file.path.clone()) } else { resolve(&file.path, path) };
    let found = full.as_ref().and_then(|full| places.get(full));
    match found {
        None => Some(Fault::new(&file.path, number, format!("`{target}` leads nowhere; mend it"))),
        Some(Some(anchors)) if !anchor.is_empty() && !anchors.contains(anchor) => {
            let text = format!("`{target}`: the page has no heading `#{anchor}`; mend it");
            Some(Fault::new(&file.path, number, text))
        }
        Some(_) => None,
    }
}

/// The path of `target` as seen from the page `from`; `None` above the root.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<_> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The targets of `[text](target)` in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let rest = &line[at + 2..];
        let end = rest.find(')')?;
        rest[..end].split(' ').next()
    })
}

/// The lines that are not inside a fenced block, without code in backquotes.
fn outside_fences(file: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    file.lines().filter(move |(_, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return false;
        }
        !fenced
    })
}

/// The anchors that GitHub makes of a page's headings.
fn headings(file: &Source) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in outside_fences(file).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut unique = anchor.clone();
        let mut copy = 1;
        while !anchors.insert(unique.clone()) {
            unique = format!("{anchor}-{copy}");
            copy += 1;
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sources::test_source;

    #[test]
    fn links_that_lead_nowhere_are_faults() {
        let files = [
            test_source(
                "docs/a.md",
                "# One, two\n[x](b.md) [y](../README.md#the-end) [z](#one-two) [d](../docs)\n\
                 [w](https://example.org/none)\n```\n[fenced](none.md)\n```\n\
                 [lost](c.md)\n[above](../../x.md)\n[no heading](b.md#three)\n",
            ),
            test_source("docs/b.md", "# Two\n"),
            test_source("README.md", "## The end\n"),
        ];
        let faults: Vec<_> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(
            faults,
            [
                "docs/a.md:7: `c.md` leads nowhere; mend it",
                "docs/a.md:8: `../../x.md` leads nowhere; mend it",
                "docs/a.md:9: `b.md#three`: the page has no heading `#three`; mend it",
            ]
        );
    }
}
