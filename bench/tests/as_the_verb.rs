//! The program of the benches beside the one that it measures.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]

use std::process::Command;

/// That of the rest is tested through `meikyo bench`, which a person types.
#[test]
fn it_speaks_as_the_verb_that_starts_it() {
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let own = env!("CARGO_BIN_EXE_meikyo-bench");
    let (code, help) = run(own, &["collect", "--help"]);
    assert_eq!(code, Some(0));
    assert!(help.contains("Usage: meikyo bench collect [OPTIONS]"), "{help}");
    assert_eq!(run(own, &["no-such-bench"]).0, Some(2));
}
