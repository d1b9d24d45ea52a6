//! The compiler and binutils, which tests ask what is in a file.

#[expect(clippy::disallowed_methods, reason = "compiler and binutils are asked")]
pub(super) fn run(command: &[&str]) -> String {
    let output = std::process::Command::new(command[0]).args(&command[1..]).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
