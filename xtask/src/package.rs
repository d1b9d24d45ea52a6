//! `./x package`: a Debian package of what `./x install` installs. It enables and starts nothing; `packaging/debian`
//! says what becomes of configuration and recordings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::install::{BYTES_MAX, Options, Place, built, lay_out, write};
use crate::program::program;
use crate::room;

const USAGE: &str = "usage: ./x package [--program FILE]

  --program FILE  this program instead of a build with the profile `dist`";
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Read by the service's group, made so by `postinst`.
const CONFIGURATION: &str = "etc/meikyo";

/// Builds the package; whether its program is small enough.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<bool> {
    let options = Options::read(words, &["--program"], USAGE)?;
    let built = built(root, options.program)?;
    let directory = root.join("target/package");
    let package = build(root, &built, &directory, "xz")?;
    let fits = room::told(root, &built, &directory.join("tree/usr/bin/meikyo"), BYTES_MAX)?;
    let bytes = fs::metadata(&package)?.len();
    println!("target/package/meikyo.deb: {}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    println!("hint: apt-get install ./target/package/meikyo.deb");
    Ok(fits)
}

/// Lays the files out in `directory` and packs them there; the package's path.
fn build(
    root: &Path,
    built: &Path,
    directory: &Path,
    compression: &str,
) -> anyhow::Result<PathBuf> {
    let tree = directory.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("cannot clear `{}`", tree.display()))?;
    }
    let place = Place { root: tree.clone(), prefix: "/usr".into() };
    let files = lay_out(root, built, &place)?;
    for page in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "1")) {
        program(root, "gzip", &["--best", "--no-name", &page.to_string_lossy()]).output()?;
    }
    let documents = tree.join("usr/share/doc/meikyo");
    write(&documents.join("copyright"), &copyright(root)?)?;
    fs::create_dir_all(tree.join(CONFIGURATION))?;
    fs::set_permissions(tree.join(CONFIGURATION), fs::Permissions::from_mode(0o750))?;

    let packaging = root.join("packaging/debian");
    let text = fs::read_to_string(packaging.join("control"))?
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace(
            "@ARCHITECTURE@",
            program(root, "dpkg", &["--print-architecture"]).output()?.trim(),
        )
        .replace("@INSTALLED_SIZE@", &kibibytes(root, &tree)?)
        .replace("@GLIBC@", &glibc_needed(root, &tree)?);
    write(&tree.join("DEBIAN/control"), &text)?;
    for script in SCRIPTS {
        let path =
            write(&tree.join("DEBIAN").join(script), &fs::read_to_string(packaging.join(script))?)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    let package = directory.join("meikyo.deb");
    let (from, to) = (tree.to_string_lossy(), package.to_string_lossy());
    let compressed = format!("-Z{compression}");
    program(root, "dpkg-deb", &["--root-owner-group", &compressed, "--build", &from, &to])
        .output()
        .context("packages are built on Debian")?;
    Ok(package)
}

fn copyright(root: &Path) -> anyhow::Result<String> {
    let licence = fs::read_to_string(root.join("LICENSE")).context("cannot read the licence")?;
    Ok(format!("Meikyo is under the Apache License 2.0:\n\n{licence}"))
}

/// What the files take on a disk, as Debian counts it.
fn kibibytes(root: &Path, tree: &Path) -> anyhow::Result<String> {
    let counted =
        program(root, "du", &["-sk", "--apparent-size", &tree.to_string_lossy()]).output()?;
    Ok(counted.split_whitespace().next().context("`du` prints a number")?.to_owned())
}

/// The newest version of glibc that the program and the library need, from the versions of the symbols
/// that they import.
fn glibc_needed(root: &Path, tree: &Path) -> anyhow::Result<String> {
    let mut versions = String::new();
    for file in ["usr/bin/meikyo", "usr/lib/libmeikyo_checkpoint.so"].map(|file| tree.join(file)) {
        if file.exists() {
            let arguments = ["--version-info", "--wide", &file.to_string_lossy()];
            versions += &program(root, "readelf", &arguments).output()?;
        }
    }
    newest_glibc(&versions).context("the program imports nothing from glibc")
}

/// The greatest `GLIBC_X.Y` in what `readelf` prints. Packed relocations have a name of their own in place of the version
/// that knew them first.
fn newest_glibc(text: &str) -> Option<String> {
    let text = text.replace("GLIBC_ABI_DT_RELR", "GLIBC_2.36");
    let numbers = text.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| letter != '.' && !letter.is_ascii_digit());
        let number = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        let parts: Option<Vec<u32>> = number.split('.').map(|part| part.parse().ok()).collect();
        Some((parts?, number))
    });
    Some(numbers.max()?.1.to_owned())
}

#[cfg(test)]
mod tests;
