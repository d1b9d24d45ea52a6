//! Object identifiers and their BER content octets (ITU-T X.690, 8.19; limits of RFC 2578, 3.5).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::ber::DecodeError;

/// Most arcs of an object identifier (RFC 2578, 3.5).
pub const ARCS_MAX: usize = 128;

/// An object identifier; sorts as the tables of an agent do (lexicographic by arc).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(Box<[u32]>);

impl Oid {
    /// The identifier with these arcs.
    ///
    /// The first arc is 0, 1 or 2, and the second at most 39 below 0 and 1: others have no encoding
    /// of their own. Text and packets are checked for that, tables in the source are not.
    pub fn from_slice(arcs: &[u32]) -> Self {
        Self(arcs.into())
    }

    /// The arcs.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// The identifier with further arcs at its end.
    pub fn child(&self, arcs: &[u32]) -> Self {
        Self([&self.0, arcs].concat().into())
    }

    /// Whether this identifier is `prefix` or lies below it.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }

    /// The arcs below `prefix`: the index of a table's cell.
    pub fn below(&self, prefix: &Self) -> Option<&[u32]> {
        self.0.strip_prefix(prefix.as_slice())
    }

    /// The BER content octets, without type and length.
    pub fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() + 4);
        self.encode_into(&mut out);
        out
    }

    /// Appends the BER content octets. Missing first arcs count as 0, as agents write `0.0`.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let first = self.0.first().copied().unwrap_or(0);
        let second = self.0.get(1).copied().unwrap_or(0);
        encode_arc(u64::from(first) * 40 + u64::from(second), out);
        for &arc in self.0.iter().skip(2) {
            if arc < 0x80 {
                out.push((arc & 0x7f) as u8);
            } else {
                encode_arc(u64::from(arc), out);
            }
        }
    }

    /// Reads BER content octets.
    ///
    /// # Errors
    ///
    /// [`DecodeError::ObjectId`] if there are none, the last arc is cut, an arc does not fit 32 bits
    /// or there are more than [`ARCS_MAX`].
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        // One for each last octet of an arc and one more for the first, which holds two: as many as
        // there will be, so that nothing is moved to where it stays.
        let last_octets = content.iter().filter(|&&octet| octet & 0x80 == 0).count();
        let mut arcs = Vec::with_capacity(last_octets + 1);
        let mut arc = 0_u64;
        let mut open = false;
        for &octet in content {
            if !open && octet == 0x80 {
                return Err(DecodeError::ObjectId);
            }
            arc = arc << 7 | u64::from(octet & 0x7f);
            if arc > u64::from(u32::MAX) + 80 {
                return Err(DecodeError::ObjectId);
            }
            open = octet & 0x80 != 0;
            if open {
                continue;
            }
            if arcs.is_empty() {
                let first = (arc / 40).min(2);
                arcs.push((first & 3) as u32);
                arc -= first * 40;
            }
            arcs.push(u32::try_from(arc).map_err(|_| DecodeError::ObjectId)?);
            arc = 0;
        }
        if open || arcs.is_empty() || arcs.len() > ARCS_MAX {
            return Err(DecodeError::ObjectId);
        }
        Ok(Self(arcs.into()))
    }
}

fn encode_arc(arc: u64, out: &mut Vec<u8>) {
    let groups = (64 - arc.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let more = if group == 0 { 0 } else { 0x80 };
        out.push((arc >> (7 * group) & 0x7f) as u8 | more);
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, arc) in self.0.iter().enumerate() {
            if position > 0 {
                formatter.write_str(".")?;
            }
            write!(formatter, "{arc}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Why a text is no object identifier.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseOidError {
    /// An arc is no whole number of 32 bits.
    #[error("`{arc}` in `{text}` is no whole number up to 4294967295")]
    Arc {
        /// The part between two dots that is no number of 32 bits.
        arc: String,
        /// Text in which the arc was read.
        text: String,
    },
    /// Fewer than two arcs, or more than [`ARCS_MAX`].
    #[error("`{text}` has {arcs} arcs, and an object identifier has 2 to {ARCS_MAX}")]
    Length {
        /// Text with too few or too many arcs.
        text: String,
        /// How many arcs it has.
        arcs: usize,
    },
    /// The first two arcs have no encoding.
    #[error(
        "`{text}` starts with `{first}.{second}`, but only 0.0 to 0.39, 1.0 to 1.39 and 2.* exist"
    )]
    Root {
        /// Text that begins with these arcs.
        text: String,
        /// Its first arc.
        first: u32,
        /// Its second arc.
        second: u32,
    },
}

impl FromStr for Oid {
    type Err = ParseOidError;

    /// Reads `1.3.6.1.2.1.1.3.0`; a dot in front is accepted.
    fn from_str(text: &str) -> Result<Self, ParseOidError> {
        let arcs = text
            .strip_prefix('.')
            .unwrap_or(text)
            .split('.')
            .map(|arc| {
                let digits = !arc.is_empty() && arc.bytes().all(|byte| byte.is_ascii_digit());
                let number = if digits { arc.parse().ok() } else { None };
                number.ok_or_else(|| ParseOidError::Arc { arc: arc.into(), text: text.into() })
            })
            .collect::<Result<Vec<u32>, _>>()?;
        match arcs.as_slice() {
            [first, second, ..] if arcs.len() <= ARCS_MAX => {
                if *first > 2 || (*first < 2 && *second > 39) {
                    let (first, second) = (*first, *second);
                    return Err(ParseOidError::Root { text: text.into(), first, second });
                }
                Ok(Self(arcs.into()))
            }
            _ => Err(ParseOidError::Length { text: text.into(), arcs: arcs.len() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_octets_are_those_of_published_examples() {
        // X.690, 8.19.5: {2 999 3}.
        let oid: Oid = "2.999.3".parse().unwrap();
        assert_eq!(oid.encoded(), [0x88, 0x37, 0x03]);
        // sysUpTime.0 and a net-snmp object, whose arc 8072 needs two octets.
        let oid: Oid = ".1.3.6.1.2.1.1.3.0".parse().unwrap();
        assert_eq!(oid.encoded(), [0x2b, 6, 1, 2, 1, 1, 3, 0]);
        let oid: Oid = "1.3.6.1.4.1.8072".parse().unwrap();
        assert_eq!(oid.encoded(), [0x2b, 6, 1, 4, 1, 0xbf, 0x08]);
        let oid: Oid = "1.3.4294967295".parse().unwrap();
        assert_eq!(oid.encoded(), [0x2b, 0x8f, 0xff, 0xff, 0xff, 0x7f]);
    }

    #[test]
    fn decoding_refuses_what_has_no_meaning() {
        for content in [
            &[][..],
            &[0x2b, 0x86],
            &[0x2b, 0x80, 0x01],
            &[0x2b, 0x90, 0x80, 0x80, 0x80, 0x00],
            &[0x2b; 200],
        ] {
            assert_eq!(Oid::decode(content), Err(DecodeError::ObjectId), "{content:x?}");
        }
        assert_eq!(Oid::decode(&[0]).unwrap().to_string(), "0.0");
        assert_eq!(Oid::decode(&[0x88, 0x37, 0x03]).unwrap().to_string(), "2.999.3");
    }

    #[test]
    fn text_is_checked() {
        for text in ["", ".", "1", "1..3", "1.3.x", "1.3.4294967296", "3.1", "1.40", "1.+3"] {
            assert!(text.parse::<Oid>().is_err(), "{text}");
        }
    }

    #[test]
    fn order_is_that_of_an_agents_tables() {
        let mut oids: Vec<Oid> = ["1.3.10", "1.3.9", "1.3", "1.3.9.1"]
            .into_iter()
            .map(|text| text.parse().unwrap())
            .collect();
        oids.sort();
        let sorted: Vec<_> = oids.iter().map(ToString::to_string).collect();
        assert_eq!(sorted, ["1.3", "1.3.9", "1.3.9.1", "1.3.10"]);
    }
}
