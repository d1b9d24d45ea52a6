//! What a checkpoint daemon reads that it did not write itself a moment ago: manifests, votes, greetings, heads
//! of frames, of drained images and of captured programs, messages, and what CRIU says. The first octet of the input says which.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_checkpoint::capture::bundle::Table as Bundle;
use meikyo_checkpoint::capture::message::fields;
use meikyo_checkpoint::drain;
use meikyo_checkpoint::frame::{Head, Kind};
use meikyo_checkpoint::image::{HEAD_BYTES, Table, runs};
use meikyo_checkpoint::increment::{mask_bytes, pack, unpack};
use meikyo_checkpoint::journal::newest_vote;
use meikyo_checkpoint::link::{Greeting, Wanted};
use meikyo_checkpoint::manifest::Manifest;
use meikyo_checkpoint::member::Message;

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    match kind % 11 {
        0 => {
            // A checksum is not guessed: it is put behind what the fuzzer made.
            let mut octets = b"meikyoC1".to_vec();
            octets.extend_from_slice(rest);
            octets.extend_from_slice(&crc32fast::hash(&octets).to_le_bytes());
            if let Ok((manifest, geometry)) = Manifest::read(&octets) {
                assert_eq!(geometry.lens(), manifest.lens);
                assert_eq!(Manifest::read(&manifest.octets()).expect("it was read before").0, manifest);
            }
        }
        1 => drop(newest_vote(rest)),
        2 => {
            if let Some(octets) = rest.first_chunk()
                && let Ok(greeting) = Greeting::read(octets)
            {
                assert_eq!(Greeting::read(&greeting.octets()), Ok(greeting));
            }
        }
        3 => {
            if let Some(octets) = rest.first_chunk()
                && let Ok(head) = Head::read(octets, 1 << 20)
            {
                assert!(head.len <= 1 << 20 || head.kind == Kind::Same);
                assert_eq!(&head.octets(), octets);
            }
        }
        9 => {
            // A checksum is not guessed: it is put before what the fuzzer made.
            let mut octets = b"meikyoB1".to_vec();
            octets.extend_from_slice(&(rest.len() as u64).to_le_bytes());
            octets.extend_from_slice(&crc32fast::hash(rest).to_le_bytes());
            octets.extend_from_slice(&[0; 4]);
            octets.extend_from_slice(rest);
            if let Ok(table) = Bundle::read(&octets) {
                let written = table.octets().expect("it was read");
                assert_eq!(Bundle::read(&written).expect("it was written"), table);
            }
        }
        10 => assert!(fields(rest).count() <= rest.len()),
        5 => {
            // A checksum is not guessed: it is put before what the fuzzer made.
            let mut octets = b"meikyoI1".to_vec();
            octets.extend_from_slice(&(rest.len() as u64).to_le_bytes());
            octets.extend_from_slice(&crc32fast::hash(rest).to_le_bytes());
            octets.extend_from_slice(&[0; 4]);
            let head = octets.first_chunk::<HEAD_BYTES>().expect("it was made so long");
            if let Ok(table) = Table::read(head, rest) {
                let arrays: Vec<_> = table.arrays().map(|(_, array, _)| array).collect();
                if let [first, second, ..] = &arrays[..]
                    && first.bytes() < Some(1 << 12)
                    && let Some(runs) = runs(first, second)
                {
                    let most = first.bytes().min(second.bytes());
                    assert!(Some(runs.iter().map(|run| run.bytes).sum()) <= most);
                }
            }
        }
        6 => {
            let len = 64 + (usize::from(kind) << 8);
            if let Some(difference) = unpack(rest, len) {
                let mut packed = Vec::new();
                pack(&difference, len, &mut packed);
                // A grain of zeros may come, and is not packed.
                assert!(packed.len() <= rest.len() && packed.len() >= mask_bytes(len));
                assert_eq!(unpack(&packed, len), Some(difference));
            }
        }
        7 => {
            // A checksum is not guessed: it is put behind what the fuzzer made.
            let mut octets = b"meikyoD1".to_vec();
            octets.extend_from_slice(&(rest.len() as u64).to_le_bytes());
            octets.extend_from_slice(rest);
            octets.extend_from_slice(&crc32fast::hash(&octets).to_le_bytes());
            if let Ok(Ok(head)) = drain::Head::read(&mut &octets[..]) {
                assert!(head.place < head.hosts);
                assert!(head.checksums.len() as u64 * u64::from(head.block) >= head.bytes);
            }
        }
        4 => {
            if let Some(wanted) = Wanted::read(rest) {
                assert_eq!(&wanted.octets()[..], rest);
                assert!(wanted.places(64).len() <= 64);
            }
        }
        _ => {
            if let Ok(message) = Message::read(rest) {
                let octets = message.octets();
                assert_eq!(Message::read(&octets).expect("it was read before"), message);
            }
        }
    }
});
