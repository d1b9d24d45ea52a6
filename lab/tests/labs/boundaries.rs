//! What gets in and out of a lab, and what is left of it.

use std::process::Command;

use meikyo_lab::{Invocation, RunError, run};

use crate::running::{fabric, lab};

#[test]
fn commands_have_streams_and_codes_and_the_host_stays_as_it_is() {
    let ring = fabric("ring 4", 2, |_| {});
    let Some(lab) = lab(&ring, None) else { return };
    let first = ring.wiring.hosts[0].name.as_str();
    // Streams, exit code, host name.
    let said = lab.exec(Some(first), &["sh", "-c", "cat; hostname >&2; exit 7"], b"through");
    assert_eq!((said.code, said.output.as_slice()), (7, b"through".as_slice()));
    assert_eq!(said.errors, format!("{first}\n").into_bytes());
    let said = lab.exec(Some(first), &["sh", "-c", "kill -9 $$"], b"");
    assert_eq!(said.code, 128 + 9);
    // More than every buffer on the way holds, both ways at once.
    let much: Vec<u8> =
        (0..1_000_000_u32).map(|n| n.to_le_bytes()[usize::from(n % 3 == 0)]).collect();
    assert_eq!(lab.exec(Some(first), &["cat"], &much).output, much);
    // What cannot be started is said.
    let stuck = Invocation { space: None, command: &["no-such-program"], environment: &[] };
    assert!(matches!(run(&lab.directory, &stuck, b""), Err(RunError::Refused(_))));
    let nowhere = Invocation { space: Some("h99"), command: &["true"], environment: &[] };
    let refused = run(&lab.directory, &nowhere, b"").expect_err("there is no such host");
    assert_eq!(refused.to_string(), "there is no host or switch `h99`");
    // The host's files, even for who mounts them anew.
    let victim = lab.outside().join("victim");
    std::fs::write(&victim, "as it was").unwrap();
    let script = format!(
        "echo changed > {0}; mkdir -p /tmp/m; mount -t hostfs none /tmp/m -o / && \
         echo changed > /tmp/m{0}; rm -f /tmp/m{0}; echo kept > kept",
        victim.display()
    );
    lab.exec(None, &["sh", "-c", &script], b"");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "as it was");
    // Even for who takes away what hides them, and asks for them to be writable.
    let script = format!(
        "cd /; umount -l /tmp; for place in / /tmp; do mount -o remount,bind,rw $place; done; \
         echo changed > {0}; rm -f {0}",
        victim.display()
    );
    lab.exec(None, &["sh", "-c", &script], b"");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "as it was");
    let kept = lab.directory.own_files().join("kept");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "kept\n");
}

#[test]
fn nothing_is_left_of_a_lab_whose_keeper_was_killed() {
    let ring = fabric("ring 4", 1, |_| {});
    let Some(lab) = lab(&ring, None) else { return };
    let record = std::fs::read_to_string(lab.directory.path().join("keeper.json")).unwrap();
    let keeper: serde_json::Value = serde_json::from_str(&record).unwrap();
    let killed = Command::new("kill").args(["-9", &keeper["process"].to_string()]).status();
    assert!(killed.unwrap().success());
    assert!(meikyo_lab::down(&lab.directory).unwrap());
    assert!(!lab.directory.path().exists());
    let path = lab.directory.path().to_string_lossy().into_owned();
    let left = || {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let lines =
            processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&path)).count()
    };
    // The kernel ends what was inside; that may take a moment.
    let deadline = meikyo_units::WallTime::now() + meikyo_units::Nanos::from_secs(20);
    while left() > 0 {
        assert!(meikyo_units::WallTime::now() < deadline, "{} processes are left", left());
    }
}
