//! Every way out of a lab that is known is tried: in place of the kernel that is a process, and inside.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use meikyo_lab::{
    Blueprint, BlueprintOptions, Directory, EngineChoice, KERNEL_VARIABLE, UpOptions, up,
};

use crate::running::{fabric, lab, roles};

/// What may be done in place of the kernel; all else must be refused.
const ALLOWED: [&str; 3] = ["read a program", "write a file", "set a mode"];

/// The program that is started in place of the kernel.
fn probe() -> PathBuf {
    roles().program.with_file_name("escapes")
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs a test of this program again, with the probe as the kernel, as this user.
fn again(test: &str, user: Option<&str>) {
    let mut command = Command::new("setpriv");
    if let Some(user) = user {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    let command = command.arg(std::env::current_exe().unwrap());
    let said =
        command.args(["--exact", test, "--nocapture"]).env(KERNEL_VARIABLE, probe()).output();
    let said = said.unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(
        said.status.success() && text.contains("1 passed"),
        "as user {user:?}: {text}{}",
        String::from_utf8_lossy(&said.stderr)
    );
}

#[test]
fn whoever_takes_the_kernel_over_gains_nothing() {
    let is_probe = std::env::var_os(KERNEL_VARIABLE).is_some_and(|kernel| *kernel == *probe());
    if is_probe {
        return confined_as_the_kernel();
    }
    if !Path::new("/usr/lib/uml/modules").is_dir() {
        meikyo_testing::lacking("there is no user-mode Linux; `apt-get install user-mode-linux`");
        return;
    }
    let test = "escapes::whoever_takes_the_kernel_over_gains_nothing";
    again(test, None);
    if is_root() {
        again(test, Some("65534"));
    }
}

fn confined_as_the_kernel() {
    let place = tempfile::tempdir().unwrap();
    let victim = place.path().join("victim");
    std::fs::write(&victim, "as it was").unwrap();
    let files = place.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("meikyo-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    // Left open for whatever is started, as shells and service managers do.
    let root = std::fs::File::open("/").unwrap();
    rustix::io::fcntl_setfd(&root, rustix::io::FdFlags::empty()).unwrap();
    let told = serde_json::json!({
        "victim": victim,
        "process": std::process::id().to_string(),
        "listener": listener.local_addr().unwrap().to_string(),
        "abstract": name,
    });
    std::fs::write(files.join("told"), told.to_string()).unwrap();
    let two = fabric("mesh 2", 1, |_| {});
    let options = BlueprintOptions { rate: None, management: false };
    let blueprint = Blueprint::new(&two.wiring, &two.configuration, &options).unwrap();
    let options = UpOptions {
        directory: Directory::at(&place.path().join("lab")).unwrap(),
        files: Some(files.clone()),
        read: Vec::new(),
        engine: EngineChoice::UserModeLinux,
        memory_mib: None,
        name: "test".into(),
        cluster_text: String::new(),
        services: Vec::new(),
        contents: Vec::new(),
    };
    // What is no kernel brings no lab up.
    let said = up(&blueprint, &roles(), &options).unwrap_err();
    let report = std::fs::read_to_string(files.join("report"));
    let report = report.unwrap_or_else(|error| panic!("{error}: {said}"));
    let done = report.lines().filter_map(|line| line.strip_suffix(": DONE"));
    assert_eq!(done.collect::<Vec<_>>(), ALLOWED, "{report}");
    assert!(report.lines().count() > 40, "all ways were tried: {report}");
    assert!(report.contains("open: [0, 1, 2, 3]"), "{report}");
    // What was written belongs to whom the directory belongs to.
    let written = std::fs::metadata(files.join("written")).unwrap();
    assert_eq!((written.uid(), written.mode() & 0o7777), (files.metadata().unwrap().uid(), 0o755));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "as it was");
}

/// Tries to read and write a file of the host's by every way that root knows inside; says which worked.
const WAYS: &str = r#"
victim=$1; process=$2; port=$3; abstract=$4; own=$5
reached() { grep -qs "as it was" "$1$victim" && echo "read $1$victim"
    (echo changed > "$1$victim") 2>/dev/null; }
mkdir -p /tmp/m
for way in / /root /proc/1/root /proc/self/root "/proc/$process/root" /proc/1/cwd /proc/self/fd/0; do
    if mount -t hostfs none /tmp/m -o "$way" 2>/dev/null; then
        reached /tmp/m; ls -d /tmp/m/[0-9]* 2>/dev/null
        [ -d /tmp/m/proc/self ] && echo "host processes by $way"
        umount /tmp/m
    fi
done
if mount -t hostfs none /tmp/m -o /proc 2>/dev/null; then
    ls -d /tmp/m/[0-9]* 2>/dev/null; umount /tmp/m
fi
for process in /proc/[0-9]*; do
    tr '\0' ' ' < $process/cmdline 2>/dev/null | grep -F -f $own/program
    reached $process/root
done
reached ""
mount -o remount,bind,rw / 2>/dev/null; mount -o remount,rw / 2>/dev/null
for place in / /usr /etc /opt; do
    mount -o remount,bind,rw $place 2>/dev/null
    (: > $place/meikyo-escape) 2>/dev/null && rm -f $place/meikyo-escape && echo "wrote to $place"
done
mknod $own/disk b 254 0 2>/dev/null && head -c 1 $own/disk > /dev/null 2>&1 && echo "a disk in files"
mknod /tmp/disk b 254 0 2>/dev/null && head -c 1 /tmp/disk > /dev/null 2>&1 && echo "a disk in memory"
for kind in ext4 xfs btrfs; do
    mount -t $kind /tmp/disk /tmp/m 2>/dev/null && echo "mounted a disk"
done
for kind in 9p devtmpfs debugfs securityfs; do
    mount -t $kind none /tmp/m 2>/dev/null && reached /tmp/m && umount /tmp/m
done
timeout 5 bash -c ": < /dev/tcp/127.0.0.1/$port" 2>/dev/null && echo "a listener of the host"
cp /bin/sh $own/shell 2>/dev/null && chmod 4755 $own/shell 2>/dev/null
cp -p $own/shell $own/other 2>/dev/null; rm -f $own/other
grep -F "@$abstract" /proc/net/unix && echo "an abstract socket of the host"
for name in /etc/fstab /etc/hostname /etc/dpkg; do [ -e $name ] && echo "sees $name"; done
for place in /root /home; do find $place -maxdepth 0 ! -empty -printf 'sees what is in %p\n'; done
umount -l /tmp/m /tmp /run /dev 2>/dev/null; cd /
reached ""
ln -s / $own/link 2>/dev/null; reached $own/link
exit 0
"#;

#[test]
fn nobody_inside_reaches_the_host() {
    let ring = fabric("ring 4", 1, |_| {});
    let Some(lab) = lab(&ring, None) else { return };
    let victim = lab.outside().join("victim");
    std::fs::write(&victim, "as it was").unwrap();
    std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o666)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let name = format!("meikyo-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let (victim_path, process) = (victim.display().to_string(), std::process::id().to_string());
    let own = lab.directory.own_files();
    let own_path = own.display().to_string();
    // Its own command line would be found as well.
    let program = std::env::current_exe().unwrap().file_name().unwrap().to_owned();
    std::fs::write(own.join("program"), program.as_encoded_bytes()).unwrap();
    let arguments = [victim_path.as_str(), &process, &port, &name, &own_path];
    let first = ring.wiring.hosts[0].name.as_str();
    // Last where all else is: it takes the memory away in which a lab has its names.
    for space in [Some(first), None] {
        let script = ["bash", "-c", WAYS, "ways"];
        let said = lab.exec(space, &[&script[..], &arguments[..]].concat(), b"");
        let text = String::from_utf8_lossy(&said.output);
        assert_eq!((said.code, &*text), (0, ""), "{}", String::from_utf8_lossy(&said.errors));
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "as it was");
    // A program that gives its owner's rights to whoever runs it would give them to others outside.
    let shell = std::fs::metadata(own.join("shell")).unwrap();
    assert_eq!(shell.mode() & 0o6000, 0);
    let disk = std::fs::symlink_metadata(own.join("disk"));
    assert!(disk.is_err(), "{disk:?}");
}
