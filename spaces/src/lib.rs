//! Namespaces of the running kernel: what `lab`, benches and `meikyo checkpoint run --local` make hosts of.
//!
//! - [`process`]: processes in namespaces, from the first one to the last.
//! - [`netlink`], [`links`]: what the kernel is told about networks.
//! - [`lan`]: hosts that all reach each other, one bridge per link.
//! - [`attached`]: a host on a network of this machine.
//! - [`switched`]: hosts behind switches, with the way of every pair as it is said.
//! - [`mod@line`]: two namespaces with a line between them that is slow, long, lossy or cut.
//! - [`container`]: a host with namespaces of its own, in which commands are started from outside.
//!
//! It knows no fabric, and confines nobody: who runs in a container has the rights of whoever made it. The crate `lab`
//! does both.

pub mod attached;
pub mod container;
pub mod lan;
pub mod line;
pub mod links;
pub mod netlink;
pub mod process;
mod steering;
pub mod switched;

pub use attached::{AttachError, Attached};
pub use container::{Container, ContainerError, ContainerOptions, Outside};
pub use lan::{Lan, LanError};
pub use line::{Line, LineError};
pub use links::SpaceError;
pub use switched::{Switched, SwitchedError, SwitchedPlan};
