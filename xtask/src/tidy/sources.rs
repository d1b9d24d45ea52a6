//! Every file of the repository, read once.

use std::path::Path;

use anyhow::Context as _;

use crate::program::program;

/// One file that git knows, or would know at the next `git add`.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the root, with slashes.
    pub(crate) path: String,
    /// Size in bytes.
    pub(crate) bytes: usize,
    /// The text; `None` where the file is not UTF-8.
    pub(crate) text: Option<String>,
}

/// Reads them all.
pub(crate) fn read(root: &Path) -> anyhow::Result<Vec<Source>> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let listed = program(root, "git", &list).output()?;
    let mut files = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        let full = root.join(path);
        // A file that is removed and not yet committed is still listed.
        if !full.is_file() {
            continue;
        }
        let octets =
            std::fs::read(&full).with_context(|| format!("cannot read `{}`", full.display()))?;
        let bytes = octets.len();
        files.push(Source { path: path.into(), bytes, text: String::from_utf8(octets).ok() });
    }
    Ok(files)
}

impl Source {
    /// The numbered lines; none where the file is not text.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.iter().flat_map(|text| text.lines()).enumerate().map(|(at, line)| (at + 1, line))
    }

    /// The numbered lines before the file's tests, which end it.
    pub(crate) fn programs_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines: Vec<_> = self.lines().map(|(_, line)| line).collect();
        let begin = lines.windows(2).position(|pair| pair == ["#[cfg(test)]", "mod tests {"]);
        let end = begin.unwrap_or(lines.len());
        self.lines().take(end)
    }

    /// The part of the name after the last dot.
    pub(crate) fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Whether it is a program text: Rust, Python, shell.
    pub(crate) fn is_code(&self) -> bool {
        matches!(self.extension(), "rs" | "py" | "sh")
            || self.text.as_ref().is_some_and(|text| text.starts_with("#!"))
    }
}

#[cfg(test)]
pub(crate) fn test_source(path: &str, text: &str) -> Source {
    Source { path: path.into(), bytes: text.len(), text: Some(text.into()) }
}
