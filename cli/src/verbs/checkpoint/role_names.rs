//! By what the roles are started in which this program serves a job's containers.

use std::path::{Path, PathBuf};

/// The words that this program is started with in a role.
pub(crate) const WORDS: [&str; 2] = ["checkpoint", "role"];

/// The role of the first process of a container.
pub(super) const FIRST: &str = "first";

/// The role of whoever starts a command in a container.
pub(super) const REACH: &str = "reach";

/// The role of the first process of a tree that is captured.
pub(super) const KEEP: &str = "keep";

/// The role of whoever captures a host's part of a program.
pub(super) const CAPTURE: &str = "capture";

/// The role of whoever brings it back.
pub(super) const BRING_BACK: &str = "bring-back";

/// The role of whoever has a container on a host that is reached by `ssh`.
pub(super) const HOST: &str = "host";

/// Where a container reaches its machine.
pub(super) const OUTSIDE: &str = ".outside";

/// The exit code of `ssh` where a host is not reached, or is gone while a command runs there; a container's
/// is the same.
pub(super) const UNREACHED: u8 = 255;

/// Where a container is reached.
pub(super) fn socket(sockets: &Path, host: &str) -> PathBuf {
    sockets.join(host)
}
