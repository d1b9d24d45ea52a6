//! Names that are hashed in an export, for who may see where time goes and not whose it is.
//!
//! A name becomes what it is a name of, and 64 bits of its HMAC-SHA256 (RFC 2104) in hexadecimal, so that equal
//! names stay equal and nobody without the key finds a name by trying. Functions and the file of the kernel
//! keep their names: every host has them.

use std::rc::Rc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::kernel::KERNEL;
use crate::reading::Name;

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// Hosts, in rows and as the roots of stacks.
    Host,
    /// Processes and threads.
    Process,
    /// Files that code lies in, with their build IDs.
    File,
    /// Functions outside of the kernel.
    Function,
}

impl Named {
    /// Everything that has a name.
    pub const ALL: [Self; 4] = [Self::Host, Self::Process, Self::File, Self::Function];

    /// One word for people and programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Process => "process",
            Self::File => "file",
            Self::Function => "function",
        }
    }
}

/// What stands in place of the name of a file or function.
const NO_NAMES: [&str; 3] = ["[unknown]", "[made at run time]", "[vdso]"];

/// Which names are hashed, and by which key.
#[derive(Clone, Default)]
pub struct Hashing {
    of: Vec<Named>,
    key: Vec<u8>,
}

impl std::fmt::Debug for Hashing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Hashing").field("of", &self.of).finish_non_exhaustive()
    }
}

impl Hashing {
    /// Hashes these names by a key. With the key names can be found by trying: keep it, or forget it.
    pub fn new(of: &[Named], key: &[u8]) -> Self {
        Self { of: of.to_vec(), key: key.to_vec() }
    }

    /// A name as it is written.
    pub(super) fn name(&self, what: Named, name: &Name) -> Name {
        let is_none = matches!(what, Named::File | Named::Function) && NO_NAMES.contains(&&**name);
        if !self.of.contains(&what) || is_none {
            return Rc::clone(name);
        }
        let mac = Hmac::<Sha256>::new_from_slice(&self.key);
        let mut mac = mac.expect("HMAC takes keys of any length");
        mac.update(what.word().as_bytes());
        mac.update(&[0]);
        mac.update(name.as_bytes());
        let octets = mac.finalize().into_bytes();
        let hexadecimal = octets.iter().take(8).map(|octet| format!("{octet:02x}"));
        format!("{}-{}", what.word(), hexadecimal.collect::<String>()).into()
    }

    /// A build ID as it is written: not at all where the file that it tells has no name.
    pub(super) fn build_id(&self, build_id: Option<Name>) -> Option<Name> {
        build_id.filter(|_| !self.of.contains(&Named::File))
    }

    /// A function and its file as they are written.
    pub(super) fn frame(&self, (name, file): (Name, Name)) -> (Name, Name) {
        if &*file == KERNEL {
            return (name, file);
        }
        (self.name(Named::Function, &name), self.name(Named::File, &file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_stay_equal_by_one_key_and_differ_by_another_and_by_what_they_name() {
        let one = Hashing::new(&[Named::Host, Named::File], b"key");
        let name: Name = "node001".into();
        let hashed = one.name(Named::Host, &name);
        assert_eq!(one.name(Named::Host, &name), hashed);
        // printf 'host\0node001' | openssl dgst -sha256 -hmac key
        assert_eq!(&*hashed, "host-b03731049a54d001");
        let other = Hashing::new(&[Named::Host], b"other");
        assert_ne!(other.name(Named::Host, &name), hashed);
        let as_file = one.name(Named::File, &name);
        assert_ne!(as_file.split_once('-').unwrap().1, hashed.split_once('-').unwrap().1);
        assert_eq!(one.name(Named::Process, &name), name);
        assert_eq!(&*one.name(Named::File, &"[unknown]".into()), "[unknown]");
        let kernel: (Name, Name) = ("do_idle".into(), KERNEL.into());
        let all = Hashing::new(&Named::ALL, b"key");
        assert_eq!(all.frame(kernel.clone()), kernel);
    }
}
