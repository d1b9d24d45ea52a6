//! Octets in Snappy's block format, which Prometheus wants its remote writes in.
//!
//! The format is described in Snappy's `format_description.txt`: the length as a varint, then literals and
//! copies of what came before. Only the forms are written that are needed: literals with a length of up to
//! three octets, and copies of up to 64 octets with an offset of two.

/// What is copied at least, since that is what is looked up.
const MATCH_MIN: usize = 4;

/// Octets of a copy at most.
const COPY_MAX: usize = 64;

/// How far back a copy reaches at most.
const OFFSET_MAX: usize = 0xffff;

/// Places that are remembered, by four octets.
const TABLE_BITS: u32 = 14;

/// A block that whoever knows the format makes the same octets of.
pub(super) fn compressed(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(octets.len() / 2 + 16);
    put_varint(&mut out, octets.len() as u64);
    let mut places = vec![usize::MAX; 1 << TABLE_BITS];
    let (mut at, mut literal) = (0, 0);
    while let Some(four) = octets.get(at..at + MATCH_MIN) {
        let found = std::mem::replace(&mut places[place_of(four)], at);
        let is_match = found != usize::MAX
            && at - found <= OFFSET_MAX
            && octets.get(found..found + MATCH_MIN) == Some(four);
        if !is_match {
            at += 1;
            continue;
        }
        put_literal(&mut out, &octets[literal..at]);
        let same = octets[at..].iter().zip(&octets[found..]).take_while(|(a, b)| a == b).count();
        put_copies(&mut out, at - found, same);
        at += same;
        literal = at;
    }
    put_literal(&mut out, &octets[literal..]);
    out
}

/// Where four octets are remembered: the upper bits of a product with a large odd number.
fn place_of(four: &[u8]) -> usize {
    let bits = four.iter().fold(0_u32, |bits, octet| bits << 8 | u32::from(*octet));
    let place = bits.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS);
    usize::try_from(place).expect("fourteen bits")
}

/// Appends a varint of protocol buffers, which is Snappy's, too.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low(value) | 0x80);
        value >>= 7;
    }
    out.push(low(value));
}

/// The lowest octet.
fn low(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

fn put_literal(out: &mut Vec<u8>, octets: &[u8]) {
    for octets in octets.chunks(1 << 24) {
        let length = octets.len() as u64 - 1;
        match length {
            0..60 => out.push(low(length << 2)),
            60..0x100 => out.extend([60 << 2, low(length)]),
            0x100..0x1_0000 => out.extend([61 << 2, low(length), low(length >> 8)]),
            _ => out.extend([62 << 2, low(length), low(length >> 8), low(length >> 16)]),
        }
        out.extend_from_slice(octets);
    }
}

fn put_copies(out: &mut Vec<u8>, offset: usize, mut length: usize) {
    let offset = offset as u64;
    while length > 0 {
        let now = length.min(COPY_MAX);
        out.extend([low((now as u64 - 1) << 2 | 2), low(offset), low(offset >> 8)]);
        length -= now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift64*: what is compressed follows from the seed.
    fn below(random: &mut u64, most: u64) -> u64 {
        *random ^= *random >> 12;
        *random ^= *random << 25;
        *random ^= *random >> 27;
        (random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % most
    }

    /// Reads the format as its description says, all forms of it.
    fn plain(octets: &[u8]) -> Vec<u8> {
        let (mut length, mut shift, mut at) = (0_usize, 0, 0);
        loop {
            let octet = octets[at];
            at += 1;
            length |= usize::from(octet & 0x7f) << shift;
            shift += 7;
            if octet < 0x80 {
                break;
            }
        }
        let mut out = Vec::new();
        while at < octets.len() {
            let tag = usize::from(octets[at]);
            at += 1;
            let mut number = |count: usize| {
                let value = (0..count).map(|index| usize::from(octets[at + index]) << (8 * index));
                let value: usize = value.sum();
                at += count;
                value
            };
            if tag & 3 == 0 {
                let length = match tag >> 2 {
                    short @ 0..60 => short + 1,
                    long => number(long - 59) + 1,
                };
                out.extend_from_slice(&octets[at..at + length]);
                at += length;
                continue;
            }
            let (length, offset) = match tag & 3 {
                1 => ((tag >> 2 & 7) + 4, (tag >> 5) << 8 | number(1)),
                2 => ((tag >> 2) + 1, number(2)),
                _ => ((tag >> 2) + 1, number(4)),
            };
            for _ in 0..length {
                out.push(out[out.len() - offset]);
            }
        }
        assert_eq!(out.len(), length);
        out
    }

    #[test]
    fn what_is_compressed_is_read_back() {
        for octets in [&b""[..], b"a", b"abcd", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(plain(&compressed(octets)), octets);
        }
        for seed in 1..300 {
            let mut random = seed;
            let letters = 1 + below(&mut random, 200);
            let length = below(&mut random, if seed % 10 == 0 { 300_000 } else { 400 });
            let octets: Vec<u8> = (0..length).map(|_| low(below(&mut random, letters))).collect();
            assert_eq!(plain(&compressed(&octets)), octets, "seed {seed}");
        }
    }

    #[test]
    fn labels_that_come_again_take_few_octets() {
        let text = "device=node001,interface=eth0;".repeat(1_000);
        assert!(compressed(text.as_bytes()).len() < text.len() / 10);
    }
}
