//! Encryption: AES in CFB mode with 128-bit feedback (RFC 3826; 256 bits as in
//! draft-blumenthal-aes-usm-04).

use std::fmt;

use aes::cipher::array::Array;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Aes256Enc};
use meikyo_cluster::PrivProtocol;

const BLOCK_OCTETS: usize = 16;

/// Blocks whose key stream is calculated at a time; what AES-NI keeps in flight.
const BLOCKS_AT_ONCE: usize = 8;

/// A localised encryption key with its schedule.
#[derive(Clone)]
pub struct PrivKey(Schedule);

#[derive(Clone)]
enum Schedule {
    Aes128(Box<Aes128Enc>),
    Aes256(Box<Aes256Enc>),
}

impl PrivKey {
    /// AES-128.
    pub fn aes128(key: &[u8; 16]) -> Self {
        Self(Schedule::Aes128(Box::new(Aes128Enc::new(key.into()))))
    }

    /// AES-256.
    pub fn aes256(key: &[u8; 32]) -> Self {
        Self(Schedule::Aes256(Box::new(Aes256Enc::new(key.into()))))
    }

    /// The algorithm by which messages are encrypted.
    pub const fn protocol(&self) -> PrivProtocol {
        match self.0 {
            Schedule::Aes128(_) => PrivProtocol::Aes128,
            Schedule::Aes256(_) => PrivProtocol::Aes256,
        }
    }

    /// Encrypts in place.
    pub(super) fn encrypt(&self, vector: [u8; BLOCK_OCTETS], octets: &mut [u8]) {
        match &self.0 {
            Schedule::Aes128(cipher) => encrypt(&**cipher, vector, octets),
            Schedule::Aes256(cipher) => encrypt(&**cipher, vector, octets),
        }
    }

    /// Decrypts in place.
    pub(super) fn decrypt(&self, vector: [u8; BLOCK_OCTETS], octets: &mut [u8]) {
        match &self.0 {
            Schedule::Aes128(cipher) => decrypt(&**cipher, vector, octets),
            Schedule::Aes256(cipher) => decrypt(&**cipher, vector, octets),
        }
    }
}

/// The initialization vector (RFC 3826, 3.1.2.1): boots, time, salt.
pub(super) fn vector(boots: u32, time: u32, salt: [u8; 8]) -> [u8; BLOCK_OCTETS] {
    let mut vector = [0; BLOCK_OCTETS];
    vector[..4].copy_from_slice(&boots.to_be_bytes());
    vector[4..8].copy_from_slice(&time.to_be_bytes());
    vector[8..].copy_from_slice(&salt);
    vector
}

fn encrypt<C>(cipher: &C, vector: [u8; BLOCK_OCTETS], octets: &mut [u8])
where
    C: BlockCipherEncrypt<BlockSize = aes::cipher::consts::U16>,
{
    let mut previous = Array(vector);
    for block in octets.chunks_mut(BLOCK_OCTETS) {
        cipher.encrypt_block(&mut previous);
        for (octet, stream) in block.iter_mut().zip(&mut previous) {
            *octet ^= *stream;
            *stream = *octet;
        }
    }
}

fn decrypt<C>(cipher: &C, vector: [u8; BLOCK_OCTETS], octets: &mut [u8])
where
    C: BlockCipherEncrypt<BlockSize = aes::cipher::consts::U16>,
{
    let mut previous = Array(vector);
    for blocks in octets.chunks_mut(BLOCK_OCTETS * BLOCKS_AT_ONCE) {
        let mut stream = [Array([0; BLOCK_OCTETS]); BLOCKS_AT_ONCE];
        stream[0] = previous;
        let (whole, _) = blocks.as_chunks::<BLOCK_OCTETS>();
        for (block, input) in whole.iter().zip(&mut stream[1..]) {
            *input = Array(*block);
        }
        if let Some(last) = whole.last() {
            previous = Array(*last);
        }
        cipher.encrypt_blocks(&mut stream[..blocks.len().div_ceil(BLOCK_OCTETS)]);
        for (octet, stream) in blocks.iter_mut().zip(stream.iter().flatten()) {
            *octet ^= stream;
        }
    }
}

impl fmt::Debug for PrivKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PrivKey({:?})", self.protocol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|digit| digit.to_digit(16)?.try_into().ok()).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    const PLAIN: &str = "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
                         30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710";

    /// NIST SP 800-38A, F.3.13 and F.3.17.
    #[test]
    fn ciphertexts_are_those_of_nist() {
        let vector: [u8; 16] = octets("000102030405060708090a0b0c0d0e0f").try_into().unwrap();
        let key128 = octets("2b7e151628aed2a6abf7158809cf4f3c").try_into().unwrap();
        let key256 = octets("603deb1015ca71be2b73aef0857d7781 1f352c073b6108d72d9810a30914dff4")
            .try_into()
            .unwrap();
        for (key, expected) in [
            (
                PrivKey::aes128(&key128),
                "3b3fd92eb72dad20333449f8e83cfb4a c8a64537a0b3a93fcde3cdad9f1ce58b
                 26751f67a3cbb140b1808cf187a4f4df c04b05357c5d1c0eeac4c66f9ff7f2e6",
            ),
            (
                PrivKey::aes256(&key256),
                "dc7e84bfda79164b7ecd8486985d3860 39ffed143b28b1c832113c6331e5407b
                 df10132415e54b92a13ed0a8267ae2f9 75a385741ab9cef82031623d55b1e471",
            ),
        ] {
            let mut text = octets(PLAIN);
            key.encrypt(vector, &mut text);
            assert_eq!(text, octets(expected));
            key.decrypt(vector, &mut text);
            assert_eq!(text, octets(PLAIN));
        }
    }

    #[test]
    fn every_length_comes_back() {
        let key = PrivKey::aes128(&[3; 16]);
        for length in 0..400 {
            let plain: Vec<u8> = (0..length).map(|at: usize| at.to_le_bytes()[0]).collect();
            let mut text = plain.clone();
            key.encrypt([9; 16], &mut text);
            assert!(length < 8 || text != plain);
            key.decrypt([9; 16], &mut text);
            assert_eq!(text, plain, "{length}");
        }
    }
}
