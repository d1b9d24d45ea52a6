//! What the process that a lab is inside of can do on the host, which is next to nothing.
//!
//! It holds for the kernel of user-mode Linux, so that nobody who takes that kernel over gains anything,
//! and for the first process of a lab in namespaces:
//!
//! - an id without privileges ([`owner`]) in a user namespace, and no way to get more;
//! - a root of its own ([`root`]), with namespaces of its own for processes, network, IPC and names;
//! - no descriptor of the host's but the console and the channel, no keyring;
//! - a filter of system calls ([`filter`]).
//!
//! A kernel that is a process has no capability even in there; in namespaces the lab's root has those
//! of its user namespace, which set its network up.

mod filter;
mod owner;
mod root;

use std::ffi::CString;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use meikyo_spaces::process;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Pid, Resource, Rlimit, getpid, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, UnshareFlags,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
};

use self::owner::Owner;
use self::root::View;
pub(crate) use self::root::clash;
use crate::directory::{Directory, Record, SCRATCH};
use crate::engine::Engine;
use crate::inside::{BLUEPRINT, ORDERS};
use crate::keep_error::{KeepError, failed};
use crate::system;

/// How many capabilities a kernel may know.
const CAPABILITIES_MAX: u32 = 64;
/// With this limit no file of a crash is written, and no program of the host gets to read it (`core(5)`).
const CRASH_BYTES: u64 = 1;

/// Everything about the process that is made before it is started.
#[derive(Debug)]
pub(crate) struct Confinement {
    parent: Pid,
    owner: Owner,
    view: View,
}

impl Confinement {
    /// For the lab of a directory; `program` can be read inside.
    pub(crate) fn new(
        directory: &Directory,
        record: &Record,
        program: &Path,
    ) -> Result<Self, KeepError> {
        let machine = record.engine != Engine::Namespaces;
        let owner = Owner::choose(directory, record)?;
        if matches!(owner, Owner::Other { .. }) {
            readable_by_all(program)?;
        }
        let mut read = record.read.clone();
        read.push(program.into());
        let view = View {
            place: directory.path().join(SCRATCH),
            read,
            copies: [BLUEPRINT, ORDERS].map(|name| directory.path().join(name)).into(),
            files: record.files.clone(),
            memory_mib: machine.then_some(record.memory_mib),
        };
        Ok(Self { parent: getpid(), owner, view })
    }

    /// Confines the calling process, which was just forked off one with a single thread, and continues
    /// in a child of it. What fails is told on standard error.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let machine = self.view.memory_mib.is_some();
        process::end_with_parent(Some(self.parent))?;
        let mut namespaces = UnshareFlags::NEWNS | UnshareFlags::NEWPID;
        if !machine {
            // Only who has a network may mount what shows networks.
            namespaces |= UnshareFlags::NEWNET;
        }
        if let Owner::Starter { user, group } = self.owner {
            doing(&"make namespaces", process::unshare(namespaces | UnshareFlags::NEWUSER))?;
            let own = doing(&"find this process", File::open("/proc/self"))?;
            doing(&"map ids", process::map_own_ids(&own, user, group))?;
        } else {
            doing(&"make namespaces", process::unshare(namespaces))?;
        }
        process::continue_as_first_process()?;
        // Of the host's `/proc`, which is out of sight when it is needed.
        let own = doing(&"find this process", File::open("/proc/self"))?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        doing(&"keep mounts apart", mount_change(c"/", private))?;
        let files = match &self.owner {
            Owner::Other { files, .. } => files.as_ref(),
            Owner::Starter { .. } => None,
        };
        self.view.build(files)?;
        self.view.enter()?;
        doing(&"leave privileges", self.leave_privileges(&own))?;
        drop(own);
        if machine {
            doing(&"drop capabilities", drop_capabilities())?;
        } else if matches!(self.owner, Owner::Other { .. }) {
            // Files with capabilities of their own would have them outside, too.
            let own = CapabilitySet::SETFCAP;
            doing(&"drop a capability", remove_capability_from_bounding_set(own))?;
        }
        doing(&"leave keyrings", system::leave_keyrings())?;
        let crash = Rlimit { current: Some(CRASH_BYTES), maximum: Some(CRASH_BYTES) };
        doing(&"limit files of crashes", setrlimit(Resource::Core, crash))?;
        doing(&"rule privileges out", set_no_new_privs(true))?;
        doing(&"filter system calls", system::filter_calls(&filter::program(machine)))
    }

    /// Becomes root of a user namespace inside of which no mount from before can be changed.
    fn leave_privileges(&self, own: &File) -> io::Result<()> {
        let namespaces = UnshareFlags::NEWNS
            | UnshareFlags::NEWNET
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS
            | UnshareFlags::NEWCGROUP;
        match &self.owner {
            Owner::Starter { .. } => {
                process::unshare(namespaces | UnshareFlags::NEWUSER)?;
                process::map_own_ids(own, 0, 0)?;
            }
            Owner::Other { namespace, .. } => {
                set_thread_groups(&[])?;
                process::enter(namespace, LinkNameSpaceType::User)?;
                system::become_root()?;
                process::unshare(namespaces)?;
            }
        }
        // Whoever changes his id is forgotten by this.
        process::end_with_parent(None)
    }
}

/// A kernel that is a process, as a program with its arguments.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) file: OwnedFd,
    pub(crate) arguments: Vec<CString>,
}

impl Kernel {
    /// Executes it in place of the calling process; returns only if that fails.
    pub(crate) fn execute(&self) -> io::Result<()> {
        let environment = [c"TMPDIR=/scratch"];
        doing(&"execute the kernel", system::execute(&self.file, &self.arguments, &environment))
    }
}

/// Where a kernel that is a process finds memory, inside.
pub(crate) const SCRATCH_INSIDE: &str = root::SCRATCH;

fn readable_by_all(program: &Path) -> Result<(), KeepError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = program.metadata().map_err(failed("look at this program"))?.permissions().mode();
    if mode & 0o005 == 0o005 { Ok(()) } else { Err(KeepError::Program(program.into())) }
}

/// For this process and whatever it executes.
fn drop_capabilities() -> io::Result<()> {
    for number in 0..CAPABILITIES_MAX {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            // The kernel knows no more.
            Err(rustix::io::Errno::INVAL) => break,
            result => result?,
        }
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, sets)?)
}

/// Says on standard error, which is the lab's console, what failed: of the error itself only a number
/// gets to whoever started this process.
#[expect(clippy::print_stderr, reason = "goes to the lab's console")]
fn doing<T, E: Into<io::Error>>(what: &dyn Display, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| {
        let error = error.into();
        eprintln!("meikyo lab: cannot confine the inside ({what}): {error}");
        error
    })
}
