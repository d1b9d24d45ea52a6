//! A whole emulated cluster on one machine: namespaces as hosts, real bridges as switches.
//!
//! A lab runs exactly the configuration that a fabric was given: [`Blueprint`] turns a wiring and its
//! settings into namespaces, links and Linux bridges with VLAN filtering. Where the running kernel has
//! no VLAN filtering, all of it is inside one user-mode Linux, a kernel that is a process
//! ([`Engine`]).
//!
//! Three roles of one program make a lab, each a process of its own:
//!
//! - who commands it: [`up`], [`down`], [`run()`], [`attach`], [`status`];
//! - its keeper on the host ([`keep`]): starts the inside, stands between it and commands. Everything
//!   inside ends with it, whatever ends it;
//! - the first process inside ([`be_inside`]): sets the network up over routing sockets, without
//!   starting a program but `tc` on hosts that tag their frames, then starts commands.
//!
//! The inside is confined by the keeper before it runs: it can read the system's directories, write one
//! directory, and has no privileges outside, whoever started the lab.
//!
//! ```
//! use meikyo_fabric::{Bundling, Configuration, Priming, Wiring};
//! use meikyo_lab::{Blueprint, BlueprintOptions};
//! use meikyo_units::BitsPerSecond;
//!
//! let rate = BitsPerSecond::GIGABIT;
//! let wiring = Wiring { switches: Vec::new(), hosts: Vec::new(), trunks: Vec::new(), rate };
//! let settings = Configuration {
//!     switches: Vec::new(),
//!     hosts: Vec::new(),
//!     host_bundling: Bundling::Lacp,
//!     priming: Priming::None,
//! };
//! let options = BlueprintOptions { rate: None, management: true };
//! let blueprint = Blueprint::new(&wiring, &settings, &options)?;
//! assert_eq!(blueprint.spaces[0].name, "manager");
//! # Ok::<(), meikyo_lab::BlueprintError>(())
//! ```

mod blueprint;
mod client;
mod confinement;
mod directory;
mod engine;
mod failover;
mod inside;
mod keep_error;
mod keeper;
mod kernel_modules;
mod lifecycle;
mod network;
mod protocol;
mod roles;
mod system;
mod traffic;
mod verify;

use meikyo_units::in_one_line;
use std::path::Path;

pub use blueprint::{
    BRIDGE, Blueprint, BlueprintError, BlueprintOptions, Bridge, BridgePort, Bundle, Cable,
    CableEnd, HOST_INTERFACE, MANAGEMENT_INTERFACE, MANAGER, Purpose, Role, Space, host_address,
    host_mac,
};
pub use client::{AskError, Invocation, Outcome, RunError, Streams, ask, attach, run, status};
pub use directory::{DIRECTORY_VARIABLE, Directory, DirectoryError, Record, Status};
pub use engine::{Engine, EngineChoice, EngineError, KERNEL_VARIABLE};
pub use failover::{Recovery, RecoveryError, fail_over};
pub use inside::Service;
pub use keep_error::KeepError;
pub use lifecycle::{UpError, UpOptions, down, find_engine, is_writable_inside, running, up, user};
pub use protocol::{Ready, Step};
pub use roles::Roles;
pub use traffic::{Counters, Done, Entry, Frame, Outage, PortMove, Task, TaskError, Trace};
pub use verify::{AsBridgesError, Findings, VerifyOptions, as_bridges, prime, verify};

/// Keeps the lab of a directory until it is told to end; for a process of its own that [`up`] starts.
///
/// # Errors
/// [`KeepError`], which whoever started the process was told as well.
pub fn keep(directory: &Path) -> Result<(), KeepError> {
    keeper::run(directory)
}

/// Is the first process inside the lab of a directory, and returns its exit code.
pub fn be_inside(directory: &Path) -> u8 {
    inside::run(directory)
}

/// Does the task on standard input, as JSON, and prints what came of it; for a process inside that
/// [`ask`] starts.
///
/// # Errors
/// As a text, if the task is none or cannot be done.
pub fn be_task() -> Result<(), String> {
    let task = serde_json::from_reader(std::io::stdin()).map_err(|error| error.to_string())?;
    let done = traffic::perform(&task).map_err(|error| in_one_line(&error))?;
    serde_json::to_writer(std::io::stdout(), &done).map_err(|error| error.to_string())
}

/// Tries whether this kernel can run a lab in namespaces; for a process of its own.
///
/// # Errors
/// Why it cannot, as a text.
pub fn probe_namespaces() -> Result<(), String> {
    engine::probe()
}
