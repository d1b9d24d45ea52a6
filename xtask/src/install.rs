//! `./x install`: the program, its manual pages, completions and services, and `libmeikyo_checkpoint` for
//! programs in C, Fortran and Python, where the system looks for them.
//!
//! [`lay_out`] does the same for the Debian package, below a directory of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::program::{cargo, program};
use crate::web::Page;
use crate::{room, web};

/// The largest program that may be installed, without its debug information.
pub(crate) const BYTES_MAX: u64 = 30_000_000;
/// Where the units of `packaging/` expect the program.
const IN_UNITS: &str = "/usr/bin/meikyo";
/// The library as cargo names it.
const LIBRARY: &str = "libmeikyo_protect.so";
const UNITS: [&str; 2] = ["meikyo-measure.service", "meikyo-profile-agent.service"];

/// What makes the linker's program smaller: functions of the same instructions are one, and relocations are packed (which
/// glibc 2.36, that of Debian 12, reads).
const SMALLER: [&str; 2] = ["-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"];

const USAGE: &str = "usage: ./x install [--prefix DIR] [--program FILE]

  --prefix DIR    where bin/, share/ and lib/ are; /usr/local for root, ~/.local for others
  --program FILE  this program instead of a build with the profile `dist`";

/// Where the files of an installation go.
#[derive(Debug)]
pub(crate) struct Place {
    /// Put before every path, but not into the files: a package's tree, or `/`.
    pub(crate) root: PathBuf,
    pub(crate) prefix: PathBuf,
}

impl Place {
    fn at(&self, below_prefix: &str) -> PathBuf {
        let prefix = self.prefix.strip_prefix("/").unwrap_or(&self.prefix);
        self.root.join(prefix).join(below_prefix)
    }

    /// Whether systemd looks for units below this prefix.
    fn has_services(&self) -> bool {
        ["/usr", "/usr/local"].map(Path::new).contains(&self.prefix.as_path())
    }
}

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) prefix: Option<PathBuf>,
    pub(crate) program: Option<PathBuf>,
}

impl Options {
    /// Reads `--NAME VALUE` for each of `known`.
    pub(crate) fn read(words: &[String], known: &[&str], usage: &str) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            anyhow::ensure!(known.contains(&word.as_str()), "`{word}` is not known\n\n{usage}");
            let value = words.next().with_context(|| format!("{word} needs a value\n\n{usage}"))?;
            let value = std::path::absolute(value)
                .with_context(|| format!("`{value}` is no path that can be used"))?;
            match word.as_str() {
                "--prefix" => options.prefix = Some(value),
                _ => options.program = Some(value),
            }
        }
        Ok(options)
    }
}

/// Installs; whether all went well.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<bool> {
    let options = Options::read(words, &["--prefix", "--program"], USAGE)?;
    let prefix = match options.prefix {
        Some(prefix) => prefix,
        None => usual_prefix(root)?,
    };
    let place = Place { root: "/".into(), prefix };
    let built = built(root, options.program)?;
    let files = lay_out(root, &built, &place)?;
    println!("{} files below {}", files.len(), place.prefix.display());
    for file in files.iter().filter(|file| !file.ends_with(".1")) {
        println!("  {}", file.display());
    }
    let installed = place.at("bin/meikyo");
    let fits = room::told(root, &built, &installed, BYTES_MAX)?;
    if place.has_services() {
        println!("no service was started; packaging/README.md says how to start the collector");
    } else {
        println!("the services are left out: systemd looks for them below /usr and /usr/local");
    }
    for hint in library_hints(root, &files, &place) {
        println!("{hint}");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|directory| directory == place.at("bin")) {
        println!("hint: export PATH=\"{}:$PATH\"", place.at("bin").display());
    }
    Ok(fits)
}

/// `/usr/local` where it can be written to, else `~/.local`.
fn usual_prefix(root: &Path) -> anyhow::Result<PathBuf> {
    if program(root, "id", &["-u"]).output()?.trim() == "0" {
        return Ok("/usr/local".into());
    }
    let home = std::env::var_os("HOME").context("HOME is not set; name a --prefix")?;
    Ok(PathBuf::from(home).join(".local"))
}

/// What to do so that programs find the library and the module for Python.
fn library_hints(root: &Path, files: &[PathBuf], place: &Place) -> Vec<String> {
    let installed = |name: &str| files.iter().find(|file| file.ends_with(name));
    if installed("libmeikyo_checkpoint.so").is_none() {
        return vec![format!("libmeikyo_checkpoint is left out: no {LIBRARY} beside the program")];
    }
    let mut hints = Vec::new();
    if place.prefix == Path::new("/usr/local") {
        hints.push("hint: ldconfig    # so that programs find libmeikyo_checkpoint".to_owned());
    } else if place.prefix != Path::new("/usr") {
        let path = place.at("lib").display().to_string();
        hints.push(format!("hint: export LD_LIBRARY_PATH=\"{path}:$LD_LIBRARY_PATH\""));
    }
    if let Some(module) = installed("meikyo_checkpoint.py")
        && module.parent() != modules_of_python(root, place).as_deref()
    {
        let directory = module.parent().unwrap_or(module).display();
        hints.push(format!("hint: export PYTHONPATH=\"{directory}:$PYTHONPATH\""));
    }
    hints
}

/// The program that was named, or one that is optimised as a whole, with the page in it.
pub(crate) fn built(root: &Path, named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named);
    }
    if let Page::Lacking(what) = web::build(root)? {
        println!("the page is left out, the server will say so: {what}");
    }
    let packages = ["--package", "meikyo-cli", "--package", "meikyo-protect"];
    let build = [&["build", "--profile", "dist", "--locked"][..], &packages].concat();
    let mut build = cargo(root, &build);
    if linker_takes(root, &SMALLER)? {
        let given = std::env::var("RUSTFLAGS").unwrap_or_default();
        let flags = SMALLER.map(|argument| format!(" -C link-arg={argument}")).concat();
        build = build.env("RUSTFLAGS", (given + &flags).trim());
    }
    anyhow::ensure!(build.run()?, "the program cannot be built");
    Ok(root.join("target/dist/meikyo"))
}

/// Whether the linker that `rustc` calls here takes these arguments. The one that comes with Rust does; that of a
/// distribution may not, and makes a larger program.
fn linker_takes(root: &Path, arguments: &[&str]) -> anyhow::Result<bool> {
    let source = write(&root.join("target/link-probe/probe.rs"), "fn main() {}")?;
    let out = source.with_extension("out");
    let (source, out) = (source.to_string_lossy(), out.to_string_lossy());
    let linked: Vec<String> =
        arguments.iter().map(|argument| format!("-Clink-arg={argument}")).collect();
    let linked: Vec<&str> = linked.iter().map(String::as_str).collect();
    let compile = [&["-o", &*out, &*source][..], &linked].concat();
    Ok(program(root, "rustc", &compile).output().is_ok())
}

/// Puts every file into its place; gives them in order.
pub(crate) fn lay_out(root: &Path, built: &Path, place: &Place) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let installed = place.at("bin/meikyo");
    make_parent(&installed)?;
    strip(root, built, &installed)?;
    files.push(installed.clone());

    let of = |arguments: &[&str]| program(root, &installed.to_string_lossy(), arguments).output();
    let manual = place.at("share/man/man1");
    // Pages of verbs that are gone must not stay behind.
    for page in names_in(&manual)?.iter().filter(|name| is_our_page(name)) {
        fs::remove_file(manual.join(page)).with_context(|| format!("cannot remove `{page}`"))?;
    }
    of(&["man", "--out", &manual.to_string_lossy()])?;
    files.extend(
        names_in(&manual)?.iter().filter(|name| is_our_page(name)).map(|name| manual.join(name)),
    );

    let completions = [
        ("bash", "share/bash-completion/completions/meikyo"),
        ("zsh", "share/zsh/site-functions/_meikyo"),
        ("fish", "share/fish/vendor_completions.d/meikyo.fish"),
    ];
    for (shell, path) in completions {
        // Debian's zsh looks elsewhere for what packages bring.
        let path = if place.prefix == Path::new("/usr") {
            path.replace("site-functions", "vendor-completions")
        } else {
            path.to_owned()
        };
        files.push(write(&place.at(&path), &of(&["completions", shell])?)?);
    }
    for directory in ["", "checkpoint"] {
        let from = root.join("examples").join(directory);
        let to = place.at("share/doc/meikyo/examples").join(directory);
        for example in names_in(&from)?.iter().filter(|name| from.join(name).is_file()) {
            files.push(write(&to.join(example), &read(&from.join(example))?)?);
        }
    }
    files.extend(checkpoint_library(root, built, place)?);
    if place.has_services() {
        files.extend(services(root, place)?);
    }
    Ok(files)
}

/// `libmeikyo_checkpoint` with what programs in C, Fortran and Python need of it; nothing where it was not
/// built with the program.
fn checkpoint_library(root: &Path, built: &Path, place: &Place) -> anyhow::Result<Vec<PathBuf>> {
    let beside =
        [LIBRARY.into(), Path::new("deps").join(LIBRARY)].map(|it| built.with_file_name(it));
    let Some(built) = beside.into_iter().find(|path| path.is_file()) else { return Ok(Vec::new()) };
    let library = place.at("lib/libmeikyo_checkpoint.so");
    make_parent(&library)?;
    strip(root, &built, &library)?;
    fs::set_permissions(&library, fs::Permissions::from_mode(0o644))?;
    let source = |path: &str| read(&root.join(path));
    // The compiler's own `.mod` files fit no other compiler, so the source of the module is what is shared.
    let python = modules_of_python(root, place).unwrap_or_else(|| place.at("share/meikyo"));
    let texts = [
        (place.at("include/meikyo_checkpoint.h"), source("protect/include/meikyo_checkpoint.h")?),
        (
            place.at("share/meikyo/meikyo_checkpoint.f90"),
            source("examples/checkpoint/meikyo_checkpoint.f90")?,
        ),
        (python.join("meikyo_checkpoint.py"), source("examples/checkpoint/meikyo_checkpoint.py")?),
    ];
    let mut files = vec![library];
    for (path, text) in texts {
        files.push(write(&path, &text)?);
    }
    Ok(files)
}

/// Where Debian's Python looks for modules below the prefix; `None` where it does not look there.
fn modules_of_python(root: &Path, place: &Place) -> Option<PathBuf> {
    if place.prefix == Path::new("/usr") {
        return Some(place.at("lib/python3/dist-packages"));
    }
    let asked =
        "import site; print(*site.getsitepackages(), site.getusersitepackages(), sep='\\n')";
    let told = program(root, "/usr/bin/python3", &["-c", asked]).output().ok()?;
    let mut looked =
        told.lines().filter_map(|line| Path::new(line).strip_prefix(&place.prefix).ok());
    looked.next().and_then(Path::to_str).map(|below| place.at(below))
}

/// The units, the user that they run as, and the room for answers that they ask the kernel for.
fn services(root: &Path, place: &Place) -> anyhow::Result<Vec<PathBuf>> {
    let source = |name: &str| read(&root.join("packaging").join(name));
    let own = place.prefix.join("bin/meikyo").to_string_lossy().into_owned();
    let mut files = Vec::new();
    for unit in UNITS {
        let text = source(unit)?.replace(IN_UNITS, &own);
        files.push(write(&place.at(&format!("lib/systemd/system/{unit}")), &text)?);
    }
    let user = source("meikyo-sysusers.conf")?;
    files.push(write(&place.at("lib/sysusers.d/meikyo.conf"), &user)?);
    let room = source("meikyo-sysctl.conf")?;
    files.push(write(&place.at("lib/sysctl.d/60-meikyo.conf"), &room)?);
    Ok(files)
}

/// Copies a program without its debug information and symbols.
fn strip(root: &Path, from: &Path, to: &Path) -> anyhow::Result<()> {
    let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
    program(root, "strip", &["-o", &to, &from]).output().context("binutils is needed")?;
    fs::set_permissions(&*to, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make `{to}` executable"))
}

fn is_our_page(name: &str) -> bool {
    name == "meikyo.1" || (name.starts_with("meikyo-") && name.ends_with(".1"))
}

/// The names in a directory, in order; none where it is not there.
fn names_in(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    if directory.is_dir() {
        for entry in fs::read_dir(directory)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Writes a file that everybody may read, and the directories above it.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    make_parent(path)?;
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    Ok(path.to_owned())
}

fn make_parent(path: &Path) -> anyhow::Result<()> {
    let parent = path.parent().context("a file has a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make `{}`", parent.display()))
}
