//! What a lab runs on: this kernel's namespaces, or a kernel of its own (user-mode Linux).
#![expect(clippy::disallowed_methods, reason = "asks a kernel for its version")]

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use meikyo_spaces::netlink::Netlink;
use meikyo_spaces::process;
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use meikyo_units::in_one_line;

use crate::network;
use crate::system;

/// The program of Debian's package `user-mode-linux`.
const KERNEL: &str = "linux.uml";
/// Where that package has its modules, a directory for each version.
const MODULES: &str = "/usr/lib/uml/modules";
/// Names another kernel than the one in `PATH`.
pub const KERNEL_VARIABLE: &str = "MEIKYO_LAB_KERNEL";
/// How many bytes of a processor's registers Linux 6.1 knows.
const REGISTER_BYTES_KNOWN: u32 = 2_696;

/// What a lab runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Namespaces of the running kernel.
    Namespaces,
    /// A kernel as a process.
    UserModeLinux {
        /// The program that user-mode Linux is.
        kernel: PathBuf,
        /// The directory of its modules.
        modules: PathBuf,
    },
}

/// Which engine is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineChoice {
    /// Namespaces if the running kernel can, else user-mode Linux.
    Any,
    /// Namespaces only.
    Namespaces,
    /// User-mode Linux only.
    UserModeLinux,
}

/// There is nothing to run a lab on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The running kernel cannot, or this user may not.
    #[error("this kernel cannot run a lab in namespaces: {0}")]
    Namespaces(String),
    /// No kernel was found.
    #[error(
        "this kernel cannot run a lab in namespaces ({reason}), and there is no user-mode Linux \
         (Debian package user-mode-linux)"
    )]
    NoKernel {
        /// Why namespaces do not do.
        reason: String,
    },
    /// The kernel does not say what it is.
    #[error("the kernel {path} cannot be run")]
    Kernel {
        /// Path of the kernel's executable.
        path: PathBuf,
        /// Why it could not be run.
        #[source]
        source: io::Error,
    },
    /// Its modules are missing.
    #[error("the kernel {path} is version {version}, and {MODULES}/{version} has no modules.dep")]
    Modules {
        /// Path of the kernel's executable.
        path: PathBuf,
        /// The version that the kernel says it has.
        version: String,
    },
    /// The kernel is too old for the processor, and is not built as expected.
    #[error(
        "this processor has {bytes} bytes of registers, the kernel {path} knows \
         {REGISTER_BYTES_KNOWN}; take one of Linux 6.13 or later"
    )]
    Registers {
        /// Path of the kernel's executable.
        path: PathBuf,
        /// How many the processor has.
        bytes: u32,
    },
}

/// Finds what a lab can run on; `probe` starts this program to try namespaces.
///
/// # Errors
/// [`EngineError`] when nothing of what was asked for is there.
pub(crate) fn choose(choice: EngineChoice, probe: Command) -> Result<Engine, EngineError> {
    let reason = match choice {
        EngineChoice::UserModeLinux => "not asked for".to_owned(),
        EngineChoice::Any | EngineChoice::Namespaces => match try_namespaces(probe) {
            Ok(()) => return Ok(Engine::Namespaces),
            Err(reason) => reason,
        },
    };
    if choice == EngineChoice::Namespaces {
        return Err(EngineError::Namespaces(reason));
    }
    let kernel = find_kernel().ok_or(EngineError::NoKernel { reason })?;
    let wrong = |source| EngineError::Kernel { path: kernel.clone(), source };
    let said = Command::new(&kernel).arg("--version").output().map_err(wrong)?;
    let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    let modules = Path::new(MODULES).join(&version);
    if version.is_empty() || !modules.join("modules.dep").is_file() {
        return Err(EngineError::Modules { path: kernel, version });
    }
    fitting_kernel(&kernel)?;
    Ok(Engine::UserModeLinux { kernel, modules })
}

fn find_kernel() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(KERNEL_VARIABLE) {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(KERNEL))
        .find(|kernel| kernel.is_file())
}

fn try_namespaces(mut probe: Command) -> Result<(), String> {
    match probe.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Tries whether a bridge with VLAN filtering can be made here, in a namespace of its own that ends
/// with this process. For a process of its own with one thread.
///
/// # Errors
/// As a text, why not.
pub(crate) fn probe() -> Result<(), String> {
    process::unshare(UnshareFlags::NEWNET | UnshareFlags::NEWUSER)
        .map_err(|error| format!("no network namespace: {error}"))?;
    let bridge = network::probe_messages();
    Netlink::open()
        .and_then(|mut netlink| netlink.apply(bridge))
        .map_err(|error| in_one_line(&error))
}

/// The kernel as a file that can be executed here: itself, or a copy in memory.
///
/// Up to Linux 6.12, user-mode Linux sets a process's registers with a length that was fixed when it
/// was built, and a host's kernel refuses what is shorter than all of the processor's registers (as
/// those of a processor with AMX). The copy has the processor's length in that one place. The bytes
/// that come after the known ones belong to registers that nothing inside uses, and the mask of used
/// registers, which is among the known ones, says so.
///
/// # Errors
/// [`EngineError`] if it cannot be read, or the place is not found.
pub(crate) fn fitting_kernel(path: &Path) -> Result<OwnedFd, EngineError> {
    let wrong = |source| EngineError::Kernel { path: path.into(), source };
    let bytes = register_bytes();
    let itself = || File::open(path).map(Into::into).map_err(wrong);
    if bytes <= REGISTER_BYTES_KNOWN {
        return itself();
    }
    let mut image = std::fs::read(path).map_err(wrong)?;
    let places = fixed_lengths(&image);
    let [place] = *places.as_slice() else {
        // A later kernel asks the processor itself.
        return if places.is_empty() && !sets_registers(&image) {
            itself()
        } else {
            Err(EngineError::Registers { path: path.into(), bytes })
        };
    };
    image[place..place + 4].copy_from_slice(&bytes.to_le_bytes());
    let copy = system::memory_file(c"linux").map_err(wrong)?;
    let mut file = File::from(copy);
    file.write_all(&image).map_err(wrong)?;
    // A file that is open for writing cannot be executed.
    let readable = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(File::open(readable).map_err(wrong)?.into())
}

/// `mov edi, PTRACE_SETREGSET`, in the only function that sets registers.
const SET_REGISTERS: [u8; 5] = [0xbf, 0x05, 0x42, 0, 0];

fn sets_registers(image: &[u8]) -> bool {
    image.windows(SET_REGISTERS.len()).any(|window| window == SET_REGISTERS)
}

/// Where the fixed length stands: `mov qword [rbp-x], length` just before [`SET_REGISTERS`].
fn fixed_lengths(image: &[u8]) -> Vec<usize> {
    let length = REGISTER_BYTES_KNOWN.to_le_bytes();
    let is_one = |window: &[u8]| {
        window[..3] == [0x48, 0xc7, 0x45] && window[4..8] == length && window[8..] == SET_REGISTERS
    };
    let found = image.windows(8 + SET_REGISTERS.len()).enumerate();
    found.filter(|(_, window)| is_one(window)).map(|(at, _)| at + 4).collect()
}

/// How many bytes the processor's registers take that a program may use (leaf 0xd).
#[cfg(target_arch = "x86_64")]
fn register_bytes() -> u32 {
    std::arch::x86_64::__cpuid_count(0xd, 0).ebx
}

#[cfg(not(target_arch = "x86_64"))]
fn register_bytes() -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_length_of_setting_registers_is_found() {
        let set = [
            0x48, 0xc7, 0x45, 0xf8, 0x88, 0x0a, 0, 0, 0xbf, 0x05, 0x42, 0, 0, // the one
            0x48, 0xc7, 0x45, 0xe8, 0x88, 0x0a, 0, 0, 0xba, 0x02, 0x02, 0, 0, // reading them
        ];
        assert_eq!(fixed_lengths(&set), [4]);
        assert!(sets_registers(&set));
        assert!(fixed_lengths(&set[1..]).is_empty());
    }
}
