//! The lines of `meikyo config snmpd` in a real `snmpd`, asked with net-snmp's own tools.

use std::fs;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{meikyo, stdout};

/// `ifHCInOctets` and the others as numbers: the tools need no MIB files then.
const IF_NAME: &str = "1.3.6.1.2.1.31.1.1.1.1";
const IF_HC_IN_OCTETS: &str = "1.3.6.1.2.1.31.1.1.1.6";
const IF_ADMIN_STATUS: &str = "1.3.6.1.2.1.2.2.1.7";
const DISK_PATH: &str = "1.3.6.1.4.1.2021.9.1.2";
const LOAD: &str = "1.3.6.1.4.1.2021.10.1.5.1";
const CPU_USER: &str = "1.3.6.1.4.1.2021.11.50.0";
const MEMORY_TOTAL: &str = "1.3.6.1.4.1.2021.4.5.0";
const UPTIME: &str = "1.3.6.1.2.1.1.3.0";
const SYS_DESCR: &str = "1.3.6.1.2.1.1.1.0";
const IF_TABLE_CACHE: &str = "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2";

const PASSWORD: &str = "correct-horse-battery";

/// A `snmpd` that ends with the test.
struct Agent {
    child: Child,
    directory: tempfile::TempDir,
    port: u16,
    credentials: Vec<String>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().expect("our own child can be killed");
        self.child.wait().expect("our own child can be waited for");
    }
}

impl Agent {
    /// Starts one with the lines that are printed for `snmp`; `None` where there is no `snmpd`.
    fn start(snmp: &str, credentials: &[&str]) -> Option<Self> {
        if !["snmpd", "snmpget"].into_iter().all(is_installed) {
            meikyo_testing::lacking(
                "snmpd and snmpget are not installed (Debian packages snmpd, snmp)",
            );
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = format!(
            "name = \"one\"\nmeasure = [\"interface:lo\", \"disk:/\", \"load\", \"cpu\", \
             \"memory\"]\nsnmp = {{ {snmp} }}\n[[hosts]]\nname = \"here\"\n\
             address = \"127.0.0.1:{port}\"\n"
        );
        fs::write(directory.path().join("cluster.toml"), text).unwrap();
        let printed = meikyo(directory.path(), &["config", "snmpd"]);
        assert_eq!(printed.status.code(), Some(0), "{printed:?}");
        fs::write(directory.path().join("secret"), format!("{PASSWORD}\n")).unwrap();
        let lines = filled(&printed.stdout, directory.path());
        assert!(!lines.contains("<file:"), "{lines}");
        fs::write(directory.path().join("snmpd.conf"), lines).unwrap();
        let log = fs::File::create(directory.path().join("snmpd.log")).unwrap();
        let child = Command::new(path_of("snmpd").unwrap())
            .args(["-f", "-Lo", "-C", "-c"])
            .arg(directory.path().join("snmpd.conf"))
            .env("SNMP_PERSISTENT_DIR", directory.path().join("persistent"))
            .env("SNMPCONFPATH", directory.path())
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let credentials = credentials.iter().map(ToString::to_string).collect();
        let agent = Self { child, directory, port, credentials };
        agent.wait_until_it_answers();
        Some(agent)
    }

    #[expect(clippy::disallowed_methods, reason = "a deadline for a real process")]
    fn wait_until_it_answers(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        // Every attempt waits 0.2 s for an answer itself.
        while !self.get(&[UPTIME]).status.success() {
            assert!(Instant::now() < deadline, "snmpd is silent:\n{}", self.log());
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("snmpd.log")).unwrap()
    }

    fn ask(&self, tool: &str, credentials: &[String], args: &[&str]) -> Output {
        Command::new(path_of(tool).unwrap())
            .args(["-t", "0.2", "-r", "1", "-On", "-Oq", "-Oe"])
            .args(credentials)
            .arg(format!("127.0.0.1:{}", self.port))
            .args(args)
            .env("MIBS", "")
            .env("SNMPCONFPATH", self.directory.path().join("none"))
            .env("SNMP_PERSISTENT_DIR", self.directory.path().join("tools"))
            .output()
            .unwrap()
    }

    fn get(&self, oids: &[&str]) -> Output {
        self.ask("snmpget", &self.credentials, oids)
    }

    /// The one value as text.
    fn value(&self, oid: &str) -> String {
        let text = stdout(&self.get(&[oid]));
        let (_, value) = text.trim().split_once(' ').unwrap_or_else(|| panic!("{oid}: {text}"));
        value.to_owned()
    }

    fn number(&self, oid: &str) -> u64 {
        let value = self.value(oid);
        value.parse().unwrap_or_else(|_| panic!("{oid}: {value}"))
    }

    fn walk(&self, oid: &str) -> Vec<(String, String)> {
        let text = stdout(&self.ask("snmpwalk", &self.credentials, &[oid]));
        let pair = |line: &str| line.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()));
        text.lines().filter_map(pair).collect()
    }

    /// Everything that is measured is there and true; everything else is hidden, nothing can be set.
    fn shows_exactly_what_is_measured(&self) {
        let names = self.walk(IF_NAME);
        let (oid, _) = names.iter().find(|(_, name)| name.trim_matches('"') == "lo").unwrap();
        let index = oid.rsplit_once('.').unwrap().1.to_owned();
        // The agent loaded its table between its start and now; the counter only goes up.
        let octets = self.number(&format!("{IF_HC_IN_OCTETS}.{index}"));
        let now = received_octets("lo");
        assert!(octets <= now && octets > 0, "agent says {octets}, /proc/net/dev {now}");
        let disks = self.walk(DISK_PATH);
        assert_eq!(disks.len(), 1, "{disks:?}");
        assert_eq!(disks[0].1.trim_matches('"'), "/");
        self.number(LOAD);
        self.number(CPU_USER);
        assert_eq!(self.number(MEMORY_TOTAL), memory_total_kilobytes());
        assert!(self.value(SYS_DESCR).contains("No Such"), "sysDescr is not measured");
        let down = format!("{IF_ADMIN_STATUS}.{index}");
        let set = self.ask("snmpset", &self.credentials, &[&down, "i", "2"]);
        assert!(!set.status.success(), "nobody may switch an interface off");
    }
}

/// The lines with their secrets, as the guide says to put them in.
fn filled(lines: &[u8], base: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fill-secrets.sh");
    let mut child = Command::new(script)
        .arg(base)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The lines fit a pipe, so nothing waits for the other end.
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

fn path_of(tool: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned()]);
    directories.map(|directory| directory.join(tool)).find(|path| path.exists())
}

fn is_installed(tool: &str) -> bool {
    path_of(tool).is_some()
}

pub(crate) fn received_octets(interface: &str) -> u64 {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{interface}:")));
    line.unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

pub(crate) fn memory_total_kilobytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn v3<'a>(auth: &'a str, privacy: &'a str, password: &'a str) -> Vec<&'a str> {
    let level = ["-v3", "-u", "meikyo", "-l", "authPriv"];
    [&level[..], &["-a", auth, "-A", password, "-x", privacy, "-X", password]].concat()
}

#[test]
fn a_version_3_user_sees_what_is_measured_and_needs_both_passwords() {
    let snmp = "user = \"meikyo\", auth = { protocol = \"SHA-256\", password = \"file:secret\" }, \
                privacy = { protocol = \"AES-128\", password = \"file:secret\" }";
    let Some(agent) = Agent::start(snmp, &v3("SHA-256", "AES", PASSWORD)) else { return };
    agent.shows_exactly_what_is_measured();
    let strings = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    for refused in [
        strings(&v3("SHA-256", "AES", "some-other-password")),
        strings(&["-v3", "-u", "meikyo", "-l", "authNoPriv", "-a", "SHA-256", "-A", PASSWORD]),
        strings(&["-v2c", "-c", "public"]),
    ] {
        let output = agent.ask("snmpget", &refused, &[UPTIME]);
        assert!(!output.status.success(), "{refused:?}: {output:?}");
    }
}

#[test]
fn the_strongest_protocols_are_written_as_the_agent_knows_them() {
    let snmp = "user = \"meikyo\", auth = { protocol = \"SHA-512\", password = \"file:secret\" }, \
                privacy = { protocol = \"AES-256\", password = \"file:secret\" }";
    let Some(agent) = Agent::start(snmp, &v3("SHA-512", "AES-256", PASSWORD)) else { return };
    agent.shows_exactly_what_is_measured();
}

#[test]
fn a_community_sees_what_is_measured() {
    let snmp = "version = \"2c\", community = \"file:secret\"";
    let Some(agent) = Agent::start(snmp, &["-v2c", "-c", PASSWORD]) else { return };
    agent.shows_exactly_what_is_measured();
    let set = agent.ask("snmpset", &agent.credentials, &[IF_TABLE_CACHE, "i", "1"]);
    assert!(!set.status.success(), "read-only");
}

#[test]
fn one_user_for_both_may_set_the_cache_time_and_nothing_else() {
    let auth = "auth = { protocol = \"SHA-256\", password = \"file:secret\" }, \
                privacy = { protocol = \"AES-128\", password = \"file:secret\" }";
    let snmp = format!("user = \"meikyo\", {auth}, write = {{ user = \"meikyo\", {auth} }}");
    let Some(agent) = Agent::start(&snmp, &v3("SHA-256", "AES", PASSWORD)) else { return };
    agent.shows_exactly_what_is_measured();
    let set = agent.ask("snmpset", &agent.credentials, &[IF_TABLE_CACHE, "i", "1"]);
    assert!(set.status.success(), "{set:?}");
    assert_eq!(agent.number(IF_TABLE_CACHE), 1);
}

#[test]
fn one_community_for_both_may_set_the_cache_time_and_nothing_else() {
    let snmp = "version = \"2c\", community = \"file:secret\", write = { community = \
                \"file:secret\" }";
    let Some(agent) = Agent::start(snmp, &["-v2c", "-c", PASSWORD]) else { return };
    agent.shows_exactly_what_is_measured();
    let set = agent.ask("snmpset", &agent.credentials, &[IF_TABLE_CACHE, "i", "1"]);
    assert!(set.status.success(), "{set:?}");
    assert_eq!(agent.number(IF_TABLE_CACHE), 1);
}

#[test]
fn a_user_for_writing_has_a_view_of_its_own() {
    let auth = "auth = { protocol = \"SHA-256\", password = \"file:secret\" }, \
                privacy = { protocol = \"AES-128\", password = \"file:secret\" }";
    let snmp = format!("user = \"meikyo\", {auth}, write = {{ user = \"writer\", {auth} }}");
    let Some(agent) = Agent::start(&snmp, &v3("SHA-256", "AES", PASSWORD)) else { return };
    agent.shows_exactly_what_is_measured();
    let set = agent.ask("snmpset", &agent.credentials, &[IF_TABLE_CACHE, "i", "1"]);
    assert!(!set.status.success(), "`meikyo` only reads");
    let mut writer = agent.credentials.clone();
    writer[2] = "writer".into();
    let set = agent.ask("snmpset", &writer, &[IF_TABLE_CACHE, "i", "1"]);
    assert!(set.status.success(), "{set:?}");
    let read = agent.ask("snmpget", &writer, &[UPTIME]);
    assert!(stdout(&read).contains("No Such"), "`writer` only writes: {read:?}");
}

#[test]
fn a_missing_secret_is_told_and_not_left_empty() {
    let directory = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fill-secrets.sh");
    let mut child = Command::new(script)
        .arg(directory.path())
        .env("WORD", "a&b\\1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = b"rocommunity \"<env:WORD>\"\nrocommunity \"<file:nowhere>\"\n";
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("rocommunity \"a&b\\1\"\n"), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("there is no secret in file:nowhere"), "{said}");
}
