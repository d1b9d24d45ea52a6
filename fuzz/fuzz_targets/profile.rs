//! What the kernel writes about samples, and blocks of samples from anywhere: any octets are read or
//! refused.
//!
//! The first octet says which of both the rest is, and what samples carry.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_profile::block;
use meikyo_profile::jobs::job_of;
use meikyo_profile::records::{self, Carried, Record};
use meikyo_profile::symbols::perf_map;
use meikyo_recording::PackedRows;

fuzz_target!(|bytes: &[u8]| {
    let Some((&form, rest)) = bytes.split_first() else { return };
    match form % 3 {
        0 => {
            let carried = Carried {
                callers: form & 64 != 0,
                user: form & 16 != 0,
                cgroup: form & 128 != 0,
                event: form & 32 != 0,
            };
            if let Some(Record::Sample { chain, .. }) = records::read(rest, carried) {
                assert_eq!(chain.callers().count(), chain.addresses().saturating_sub(1));
            }
        }
        1 => {
            let checksum = crc32fast::hash(rest);
            let Ok(rows) = PackedRows::received(rest.to_vec(), checksum) else { return };
            if let Ok(read) = block::read(&rows) {
                assert_eq!(read.samples.len(), rows.rows());
            }
        }
        _ => {
            let line = String::from_utf8_lossy(rest);
            if let Some(job) = job_of(&line) {
                assert!(job.split_once(':').is_some_and(|(_, name)| !name.is_empty()));
            }
            if let Some(function) = perf_map::parse(&line) {
                assert!(!function.name.is_empty());
            }
        }
    }
});
