//! Embeds the page that `web/` builds. Without it a notice is served, so that a build of the Rust
//! part needs no Node.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../web/dist");
    println!("cargo::rerun-if-changed=../web/dist");
    let mut files = Vec::new();
    if root.is_dir() {
        collect(&root, &root, &mut files)?;
    }
    files.sort();
    let mut text = String::from("&[\n");
    for (name, path) in &files {
        writeln!(text, "    ({name:?}, include_bytes!({:?})),", path.display().to_string())?;
    }
    text += "]\n";
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("page_files.rs");
    fs::write(out, text)?;
    Ok(())
}

/// The files below `dir` with their names relative to `root`, `/` between the parts.
fn collect(root: &Path, dir: &Path, files: &mut Vec<(String, PathBuf)>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path().canonicalize()?;
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if let Ok(name) = path.strip_prefix(root.canonicalize()?) {
            let name = name.to_string_lossy().replace('\\', "/");
            println!("cargo::rerun-if-changed={}", path.display());
            files.push((name, path));
        }
    }
    Ok(())
}
