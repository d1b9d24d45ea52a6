//! The package, laid out and installed by dpkg itself in a root of its own. The program is that of the
//! tests, unpacked and packed without compression.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use crate::install::Place;

/// A root of dpkg's own, with programs in front of the system's that note how they are called.
struct Root {
    directory: tempfile::TempDir,
    workspace: PathBuf,
}

/// What the maintainers' scripts may call, and the answer of each.
const NOTING: [(&str, &str); 4] =
    [("systemctl", "exit 0"), ("adduser", "exit 0"), ("getent", "exit 2"), ("chgrp", "exit 0")];

impl Root {
    fn new() -> Self {
        let root = Self { directory: tempfile::tempdir().unwrap(), workspace: workspace() };
        for directory in ["var/lib/dpkg/updates", "var/lib/dpkg/info", "run/systemd/system"] {
            fs::create_dir_all(root.at(directory)).unwrap();
        }
        write(&root.at("var/lib/dpkg/status"), "").unwrap();
        for (name, ending) in NOTING {
            let calls = root.at("calls");
            let text = format!("#!/bin/sh\necho {name} \"$@\" >>{}\n{ending}\n", calls.display());
            let path = write(&root.at("noting").join(name), &text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        root
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// Has dpkg do something in this root.
    fn dpkg(&self, arguments: &[&str]) -> String {
        let root = format!("--root={}", self.directory.path().display());
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}:/usr/sbin:/sbin", self.at("noting").display());
        let forced = ["--force-depends", "--force-script-chrootless", "--no-triggers"];
        program(&self.workspace, "dpkg", &[&[root.as_str()], &forced[..], arguments].concat())
            .env("PATH", &path)
            .said()
            .unwrap()
    }

    /// The calls of the programs in front since the last question.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.at("calls")).unwrap_or_default();
        write(&self.at("calls"), "").unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The program as the tests have built it, if it is there.
fn program_of_the_tests() -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let meikyo = own.ancestors().nth(2).unwrap().join("meikyo");
    if !meikyo.exists() {
        meikyo_testing::lacking("`meikyo` is not built (cargo build -p meikyo-cli)");
        return None;
    }
    for tool in ["dpkg-deb", "strip"] {
        if program(&workspace(), tool, &["--version"]).output().is_err() {
            meikyo_testing::lacking(&format!("no `{tool}` (Debian packages dpkg and binutils)"));
            return None;
        }
    }
    Some(meikyo)
}

/// The package in a directory of its own.
fn package() -> Option<(tempfile::TempDir, String)> {
    let meikyo = program_of_the_tests()?;
    let directory = tempfile::tempdir().unwrap();
    let package = build(&workspace(), &meikyo, directory.path(), "none").unwrap();
    // Not read again, and large.
    fs::remove_dir_all(directory.path().join("tree")).unwrap();
    Some((directory, package.to_string_lossy().into_owned()))
}

/// Whether dpkg can give files to root here.
fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        meikyo_testing::skipped("dpkg installs as root only");
    }
    is_root
}

#[test]
fn dpkg_installs_removes_and_purges_and_never_touches_a_recording() {
    let Some((_directory, package)) = package() else { return };
    if !is_root() {
        return;
    }
    let root = Root::new();
    root.dpkg(&["--install", &package]);
    for file in [
        "usr/bin/meikyo",
        "usr/share/man/man1/meikyo.1.gz",
        "usr/share/man/man1/meikyo-measure.1.gz",
        "usr/share/bash-completion/completions/meikyo",
        "usr/share/zsh/vendor-completions/_meikyo",
        "usr/share/fish/vendor_completions.d/meikyo.fish",
        "usr/lib/systemd/system/meikyo-measure.service",
        "usr/lib/systemd/system/meikyo-profile-agent.service",
        "usr/share/doc/meikyo/copyright",
        "usr/share/doc/meikyo/examples/cluster.toml",
        "usr/share/doc/meikyo/examples/checkpoint/heat.c",
        "usr/lib/libmeikyo_checkpoint.so",
        "usr/include/meikyo_checkpoint.h",
        "usr/share/meikyo/meikyo_checkpoint.f90",
        "usr/lib/python3/dist-packages/meikyo_checkpoint.py",
    ] {
        assert!(root.at(file).is_file(), "{file} is missing");
    }
    assert_eq!(fs::metadata(root.at("etc/meikyo")).unwrap().mode() & 0o7777, 0o750);
    // Asked for the user, and for nothing to run.
    let calls = root.calls();
    assert!(calls.iter().any(|call| call.starts_with("adduser --system ")), "{calls:?}");
    let of_systemd: Vec<_> = calls.iter().filter(|call| call.starts_with("systemctl")).collect();
    assert_eq!(of_systemd, ["systemctl daemon-reload"]);
    assert!(!root.at("etc/systemd").exists(), "a service is enabled");

    let recordings = ["var/lib/meikyo/recording", "var/lib/meikyo-profile/spool"];
    for recording in recordings {
        write(&root.at(recording).join("recording.toml"), "kind = \"measured\"\n").unwrap();
    }
    write(&root.at("etc/meikyo/cluster.toml"), "name = \"c\"\n").unwrap();
    root.dpkg(&["--remove", "meikyo"]);
    assert!(!root.at("usr/bin/meikyo").exists());
    assert!(root.at("etc/meikyo/cluster.toml").is_file(), "removal took the configuration");
    let stopped = "systemctl disable --now meikyo-measure.service meikyo-profile-agent.service";
    assert!(root.calls().contains(&stopped.to_owned()));

    root.dpkg(&["--install", &package]);
    root.dpkg(&["--purge", "meikyo"]);
    assert!(!root.at("etc/meikyo").exists(), "purging left the configuration");
    for recording in recordings {
        assert!(root.at(recording).join("recording.toml").is_file(), "{recording} is gone");
    }
}

#[test]
fn purging_leaves_a_recording_that_lies_beside_the_configuration() {
    let Some((_directory, package)) = package() else { return };
    if !is_root() {
        return;
    }
    let root = Root::new();
    root.dpkg(&["--install", &package]);
    let recording = root.at("etc/meikyo/recording/recording.toml");
    write(&recording, "kind = \"measured\"\n").unwrap();
    let said = root.dpkg(&["--purge", "meikyo"]);
    assert!(recording.is_file());
    assert!(said.contains("is left in place, since it holds a recording"), "{said}");
}

#[test]
fn an_installation_names_its_own_program_in_its_services() {
    let Some(meikyo) = program_of_the_tests() else { return };
    let directory = tempfile::tempdir().unwrap();
    let laid_out = |prefix: &str| {
        let place = Place { root: directory.path().to_owned(), prefix: prefix.into() };
        lay_out(&workspace(), &meikyo, &place).unwrap()
    };
    let files = laid_out("/usr/local");
    let unit = directory.path().join("usr/local/lib/systemd/system/meikyo-measure.service");
    assert!(files.contains(&unit));
    let unit = fs::read_to_string(unit).unwrap();
    assert!(unit.contains("\nExecStart=/usr/local/bin/meikyo measure "), "{unit}");
    // Where systemd does not look, no unit is put.
    let files = laid_out("/opt/meikyo");
    assert!(files.contains(&directory.path().join("opt/meikyo/bin/meikyo")));
    assert!(files.iter().all(|file| file.extension().is_none_or(|kind| kind != "service")));
}

#[test]
fn programs_in_c_and_python_find_an_installed_library() {
    let Some(meikyo) = program_of_the_tests() else { return };
    let directory = tempfile::tempdir().unwrap();
    let place = Place { root: "/".into(), prefix: directory.path().join("prefix") };
    let files = lay_out(&workspace(), &meikyo, &place).unwrap();
    let at = |below: &str| place.prefix.join(below).to_string_lossy().into_owned();
    assert!(files.contains(&at("share/meikyo/meikyo_checkpoint.f90").into()), "{files:?}");
    let (lib, include) = (at("lib"), at("include"));
    let source = directory.path().join("asks.c");
    let text =
        "#include <meikyo_checkpoint.h>\nint main(void) { meikyo_checkpoint_error(); return 0; }\n";
    write(&source, text).unwrap();
    let asks = directory.path().join("asks").to_string_lossy().into_owned();
    let arguments = ["-I", &include, &source.to_string_lossy(), "-L", &lib, "-o", &asks];
    let link = [&arguments[..], &["-lmeikyo_checkpoint"]].concat();
    program(&workspace(), "cc", &link).output().unwrap();
    let linked = program(&workspace(), &asks, &[]).env("LD_LIBRARY_PATH", &lib).output();
    linked.unwrap();
    // No Python looks below a directory of this test, so the module lies with the other sources.
    let python = program(
        &workspace(),
        "/usr/bin/python3",
        &["-c", "import meikyo_checkpoint, ctypes; ctypes.CDLL('libmeikyo_checkpoint.so')"],
    );
    python.env("LD_LIBRARY_PATH", &lib).env("PYTHONPATH", &at("share/meikyo")).output().unwrap();
}

#[test]
fn the_newest_glibc_is_found_by_number_and_not_by_letter() {
    let text = "Name: GLIBC_2.4  Flags: none\n Name: GLIBC_2.34  Name: GLIBC_2.9\n GLIBC_PRIVATE";
    assert_eq!(newest_glibc(text).as_deref(), Some("2.34"));
    let packed = format!("{text} Name: GLIBC_ABI_DT_RELR  Flags: none");
    assert_eq!(newest_glibc(&packed).as_deref(), Some("2.36"));
    assert_eq!(newest_glibc("nothing"), None);
}
