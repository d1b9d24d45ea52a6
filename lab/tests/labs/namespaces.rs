//! Labs in plain namespaces: the machine that they run on is a user-mode Linux, whose kernel has all
//! that this takes, so that it can be seen from outside what they leave there.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use meikyo_lab::EngineChoice;

use crate::running::{Lab, fabric, lab_reading, roles};

/// The namespaces of the machine itself: two switches with a host each.
const OWN_NAMESPACES: u32 = 4;

/// What is run again in there, as it is and as which user: each asks for whatever can run a lab.
const TESTS: [(&str, &str); 2] = [
    ("0", "fabrics::a_ring_of_4_holds_and_survives_every_trunk"),
    ("65534", "fabrics::a_torus_4x2_holds"),
];
/// The same as each of them.
const BOUNDARIES: [&str; 3] = [
    "escapes::nobody_inside_reaches_the_host",
    "boundaries::commands_have_streams_and_codes_and_the_host_stays_as_it_is",
    "boundaries::nothing_is_left_of_a_lab_whose_keeper_was_killed",
];

/// Says which namespaces, devices, mounts, processes and files are there.
const SURVEY: &str = "ls /run/netns /sys/class/net; cat /proc/mounts; ls -A /tmp /dev/shm; \
    for process in /proc/[0-9]*; do tr '\\0' ' ' < $process/cmdline; echo; done";

/// Whether another network namespace can be made where only so many are allowed; the kernel takes
/// those that are gone away in its own time.
const ONE_MORE: &str = "echo $0 > /proc/sys/user/max_net_namespaces; \
    timeout $1 sh -c 'until unshare --net true 2> /dev/null; do :; done'; code=$?; \
    echo 100000 > /proc/sys/user/max_net_namespaces; exit $code";

#[test]
fn what_holds_in_user_mode_linux_holds_in_plain_namespaces_and_leaves_nothing() {
    let two = fabric("mesh 2", 1, |_| {});
    let choice = EngineChoice::UserModeLinux;
    let program = roles().program;
    let target = program.ancestors().nth(2).unwrap().to_owned();
    let machine = lab_reading(choice, &two.wiring, &two.configuration, None, vec![target]);
    let Some(machine) = machine else { return };
    let program = program.to_string_lossy().into_owned();
    if program.starts_with("/tmp/") {
        meikyo_testing::skipped("the tests lie below /tmp, which is memory in a lab");
        return;
    }
    let probe = machine.exec(None, &[&program, "probe"], b"");
    assert_eq!((probe.code, probe.errors), (0, Vec::new()), "namespaces are what is chosen there");
    let before = survey(&machine);
    let tests = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    for (user, test) in TESTS {
        #[rustfmt::skip]
        let again = [
            "setpriv", "--reuid", user, "--regid", user, "--clear-groups",
            &tests, "--exact", "--test-threads=1", "--nocapture", test,
        ];
        let again: Vec<&str> = again.into_iter().chain(BOUNDARIES).collect();
        let said = machine.exec(None, &again, b"");
        let text = String::from_utf8_lossy(&said.output);
        let whole = format!("as user {user}: {text}{}", String::from_utf8_lossy(&said.errors));
        assert_eq!(said.code, 0, "{whole}");
        assert!(text.contains("4 passed"), "{whole}");
        assert!(!text.contains("SKIPPED: ") && !text.contains("LACKING: "), "{whole}");
    }
    assert_eq!(survey(&machine), before);
    let one_more = |of: u32, patience: &str| {
        machine.exec(None, &["sh", "-c", ONE_MORE, &of.to_string(), patience], b"").code
    };
    assert_eq!(one_more(OWN_NAMESPACES + 1, "20"), 0, "a network namespace is left");
    assert_ne!(one_more(OWN_NAMESPACES, "1"), 0, "namespaces are counted");
}

fn survey(machine: &Lab) -> Vec<String> {
    let said = machine.exec(None, &["sh", "-c", SURVEY], b"");
    let text = String::from_utf8(said.output).unwrap();
    // Threads of the kernel come and go, and have no command line.
    let lines = text.lines().filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}
