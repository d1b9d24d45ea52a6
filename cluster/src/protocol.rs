//! Protocols of SNMPv3 and the words for them, in the cluster file and everywhere else.

use std::fmt;
use std::str::FromStr;

/// Authentication protocols of RFC 3414 and RFC 7860.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuthProtocol {
    /// HMAC-MD5-96.
    Md5,
    /// HMAC-SHA-96.
    Sha1,
    /// HMAC-128-SHA-224.
    Sha224,
    /// HMAC-192-SHA-256.
    Sha256,
    /// HMAC-256-SHA-384.
    Sha384,
    /// HMAC-384-SHA-512.
    Sha512,
}

/// Privacy protocols: RFC 3826, and for 256 bits the key extension of draft-blumenthal-aes-usm-04.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrivProtocol {
    /// CFB128-AES-128.
    Aes128,
    /// CFB128-AES-256.
    Aes256,
}

/// A word that names no protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is no protocol; allowed are {}", .allowed.join(", "))]
pub struct ParseProtocolError {
    word: String,
    allowed: &'static [&'static str],
}

impl AuthProtocol {
    /// The words, in the order of the variants.
    pub const WORDS: &'static [&'static str] =
        &["MD5", "SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"];

    const ALL: [Self; 6] =
        [Self::Md5, Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];
}

impl PrivProtocol {
    /// The words, in the order of the variants.
    pub const WORDS: &'static [&'static str] = &["AES-128", "AES-256"];

    const ALL: [Self; 2] = [Self::Aes128, Self::Aes256];
}

impl fmt::Display for AuthProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS[*self as usize])
    }
}

impl fmt::Display for PrivProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS[*self as usize])
    }
}

impl FromStr for AuthProtocol {
    type Err = ParseProtocolError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        named(word, &Self::ALL, Self::WORDS)
    }
}

impl FromStr for PrivProtocol {
    type Err = ParseProtocolError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        named(word, &Self::ALL, Self::WORDS)
    }
}

fn named<P: Copy>(
    word: &str,
    all: &[P],
    allowed: &'static [&'static str],
) -> Result<P, ParseProtocolError> {
    let position = allowed.iter().position(|known| *known == word);
    let unknown = || ParseProtocolError { word: word.into(), allowed };
    position.map(|position| all[position]).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_its_protocol() {
        for (word, protocol) in [
            ("MD5", AuthProtocol::Md5),
            ("SHA-1", AuthProtocol::Sha1),
            ("SHA-224", AuthProtocol::Sha224),
            ("SHA-256", AuthProtocol::Sha256),
            ("SHA-384", AuthProtocol::Sha384),
            ("SHA-512", AuthProtocol::Sha512),
        ] {
            assert_eq!(word.parse(), Ok(protocol));
            assert_eq!(protocol.to_string(), word);
        }
        for (word, protocol) in
            [("AES-128", PrivProtocol::Aes128), ("AES-256", PrivProtocol::Aes256)]
        {
            assert_eq!(word.parse(), Ok(protocol));
            assert_eq!(protocol.to_string(), word);
        }
        let error = "DES".parse::<PrivProtocol>().unwrap_err().to_string();
        assert_eq!(error, "`DES` is no protocol; allowed are AES-128, AES-256");
    }
}
