//! Writers that are really killed, and disks that are really full.
//!
//! The process that writes is this test binary itself, started again with `MEIKYO_CRASH_ROLE`; it
//! prints what was reported kept. What is read afterwards is compared with that: everything
//! reported kept is there, nothing is there twice, and nothing that was never written.

#![expect(clippy::disallowed_methods, reason = "tests start real programs")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash {
    pub(crate) mod disk;
    pub(crate) mod kill;
    pub(crate) mod rows;
}

/// What the started process is to do; an ordinary test run does nothing here.
#[test]
fn started_process() {
    let Ok(role) = std::env::var("MEIKYO_CRASH_ROLE") else { return };
    let dir = std::env::var("MEIKYO_CRASH_DIR").expect("the directory is given with the role");
    let dir = std::path::Path::new(&dir);
    match role.as_str() {
        "write" => crash::kill::write_until_killed(dir),
        "fill" => crash::disk::fill_a_small_disk(dir),
        "read_only" => crash::disk::open_where_nothing_can_be_written(dir),
        other => panic!("unknown role {other}"),
    }
}
