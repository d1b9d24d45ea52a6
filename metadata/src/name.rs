//! Names of directory entries.

use std::cmp::Ordering;
use std::fmt;
use std::io::Write;

/// The name of a directory entry: 1 to 255 bytes, as POSIX has them, ordered by their bytes.
///
/// Up to 22 bytes stand in the name itself, longer ones in an allocation, so that copying a common
/// name costs 24 bytes and nothing else.
#[derive(Clone)]
pub struct Name(Text);

#[derive(Clone)]
enum Text {
    Short { len: u8, bytes: [u8; Name::INLINE_BYTES_MAX] },
    Long(Box<[u8]>),
}

/// Why bytes are no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// There are none.
    #[error("a name has at least one byte")]
    Empty,
    /// There are more than [`Name::BYTES_MAX`].
    #[error("a name of {bytes} bytes is longer than {} bytes", Name::BYTES_MAX)]
    TooLong {
        /// How many there are.
        bytes: usize,
    },
    /// One of them is `/` or NUL.
    #[error("a name holds neither `/` nor NUL, byte {at} is one")]
    Forbidden {
        /// Where the first one stands.
        at: usize,
    },
    /// They are `.` or `..`.
    #[error("`.` and `..` are not entries")]
    Reserved,
}

impl Name {
    /// The most bytes of a name (`NAME_MAX`).
    pub const BYTES_MAX: usize = 255;
    /// The most bytes of a name without an allocation.
    pub const INLINE_BYTES_MAX: usize = 22;

    /// Before all names, and none itself: where the scan of a directory begins.
    pub(crate) const LOWEST: Self =
        Self(Text::Short { len: 0, bytes: [0; Self::INLINE_BYTES_MAX] });

    /// The name of these bytes.
    ///
    /// # Errors
    /// If POSIX does not allow them.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidName> {
        let bytes = bytes.as_ref();
        match bytes {
            [] => return Err(InvalidName::Empty),
            b"." | b".." => return Err(InvalidName::Reserved),
            _ => {}
        }
        if bytes.len() > Self::BYTES_MAX {
            return Err(InvalidName::TooLong { bytes: bytes.len() });
        }
        if let Some(at) = bytes.iter().position(|byte| matches!(byte, b'/' | 0)) {
            return Err(InvalidName::Forbidden { at });
        }
        let mut short = [0; Self::INLINE_BYTES_MAX];
        let text = match (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(bytes);
                Text::Short { len, bytes: short }
            }
            _ => Text::Long(bytes.into()),
        };
        Ok(Self(text))
    }

    /// The name that `format_args!` describes, made without an allocation if it is short.
    ///
    /// ```
    /// # use meikyo_metadata::Name;
    /// let (client, count) = (17, 4);
    /// assert_eq!(Name::format(format_args!("file.{client}.{count}"))?, Name::new("file.17.4")?);
    /// # Ok::<(), meikyo_metadata::InvalidName>(())
    /// ```
    ///
    /// # Errors
    /// If POSIX does not allow it as a name; of one that is too long all bytes are counted.
    pub fn format(arguments: fmt::Arguments<'_>) -> Result<Self, InvalidName> {
        let mut buffer = [0; Self::BYTES_MAX];
        let mut rest = &mut buffer[..];
        if rest.write_fmt(arguments).is_err() {
            return Self::new(arguments.to_string());
        }
        let len = Self::BYTES_MAX - rest.len();
        Self::new(&buffer[..len])
    }

    /// The octets as they were given, which need not be UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Short { len, bytes } => &bytes[..usize::from(*len)],
            Text::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Display for Name {
    /// Bytes that are not UTF-8 are shown as `U+FFFD`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

/// A name as bytes, in formats that have bytes.
mod wire {
    use std::fmt;

    use serde::de::{Error, Visitor};

    use super::Name;

    impl serde::Serialize for Name {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(self.as_bytes())
        }
    }

    impl<'de> serde::Deserialize<'de> for Name {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_bytes(Bytes)
        }
    }

    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = Name;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the bytes of a name")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Name, E> {
            Name::new(bytes).map_err(E::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_posix_refuses_are_no_name() {
        assert_eq!(Name::new(""), Err(InvalidName::Empty));
        assert_eq!(Name::new("."), Err(InvalidName::Reserved));
        assert_eq!(Name::new(".."), Err(InvalidName::Reserved));
        assert_eq!(Name::new("a/b"), Err(InvalidName::Forbidden { at: 1 }));
        assert_eq!(Name::new([b'a', b'b', 0]), Err(InvalidName::Forbidden { at: 2 }));
        assert_eq!(Name::new("x".repeat(256)), Err(InvalidName::TooLong { bytes: 256 }));
        assert_eq!(
            Name::format(format_args!("{:0300}", 1)),
            Err(InvalidName::TooLong { bytes: 300 })
        );
        assert!(Name::new("...").is_ok() && Name::new("x".repeat(255)).is_ok());
    }

    #[test]
    fn a_name_takes_24_bytes_also_where_it_may_be_missing() {
        assert_eq!((size_of::<Name>(), size_of::<Option<Name>>()), (24, 24));
        let at = |len| matches!(Name::new("n".repeat(len)), Ok(Name(Text::Short { .. })));
        assert_eq!((at(22), at(23)), (true, false));
    }

    proptest! {
        #[test]
        fn names_are_their_bytes_in_the_order_of_bytes(
            one in proptest::collection::vec(1_u8..=46, 3..40),
            other in proptest::collection::vec(1_u8..=46, 3..40),
        ) {
            let names = (Name::new(&one).unwrap(), Name::new(&other).unwrap());
            prop_assert_eq!(names.0.as_bytes(), &one[..]);
            prop_assert_eq!(names.0.cmp(&names.1), one.cmp(&other));
            prop_assert_eq!(names.0 == names.1, one == other);
            prop_assert!(Name::LOWEST < names.0);
        }
    }
}
