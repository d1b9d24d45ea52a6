//! Blocks: what the kernel gave comes back, and takes the octets that are promised.

use std::process::Command;

use meikyo_profile::block::{self, BlockOptions, BlockWriter, Sample};
use meikyo_profile::records::Record;
use meikyo_profile::sampler::{CallChains, Sampler, SamplerOptions, Target};

use crate::programs::{Program, compiled};
use crate::{PLAIN, may_sample};

const EXACT: BlockOptions =
    BlockOptions { stacks: false, cgroups: false, whole_microseconds: false };

/// Samples of some programs while they run, as the kernel gave them, by CPU.
fn sampled(programs: Vec<Command>, options: SamplerOptions) -> Vec<(u32, Vec<Sample>)> {
    let mut children: Vec<_> =
        programs.into_iter().map(|mut program| program.spawn().unwrap()).collect();
    let threads = children.iter().map(std::process::Child::id).collect();
    let mut sampler = Sampler::open(&Target::Processes(threads), options).unwrap();
    sampler.enable().unwrap();
    let mut taken: Vec<(u32, Vec<Sample>)> = Vec::new();
    let mut is_running = true;
    while is_running {
        // The last samples are drained once nobody runs any more.
        is_running = children.iter_mut().any(|child| child.try_wait().unwrap().is_none());
        sampler.drain(|cpu, record| {
            let Record::Sample { time, ids, address, chain, cgroup, .. } = record else { return };
            let (time, callers) = (time.cast_signed(), chain.callers().collect());
            let sample = Sample { time, tid: ids.tid, pid: ids.pid, address, cgroup, callers };
            match taken.iter_mut().find(|of| of.0 == cpu) {
                Some(of) => of.1.push(sample),
                None => taken.push((cpu, vec![sample])),
            }
        });
        std::thread::yield_now();
    }
    taken
}

#[test]
fn what_the_kernel_gave_is_what_a_block_gives_back() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Calls) else { return };
    let options =
        SamplerOptions { stacks: Some(CallChains::FramePointers), cgroups: true, ..PLAIN };
    let mut command = Command::new(program.path());
    command.arg("300");
    let taken = sampled(vec![command], options);
    let all: usize = taken.iter().map(|of| of.1.len()).sum();
    assert!(all > 50, "{all} samples of a program that runs for 300 ms");
    assert!(taken.iter().flat_map(|of| &of.1).any(|sample| sample.callers.len() > 2));
    for (cpu, samples) in taken {
        let keep = BlockOptions { stacks: true, cgroups: true, whole_microseconds: false };
        let mut writer = BlockWriter::new("node001", cpu, keep);
        samples.iter().for_each(|sample| writer.push(sample));
        let packed = writer.finish().unwrap().unwrap();
        let read = block::read(&packed).unwrap();
        assert_eq!((read.host.as_deref(), read.cpu), (Some("node001"), Some(cpu.into())));
        assert_eq!(read.samples, samples);
        assert_eq!(writer.finish(), Ok(None));
        // In whole microseconds the same samples are shorter by more than an octet each.
        let mut writer =
            BlockWriter::new("node001", cpu, BlockOptions { whole_microseconds: true, ..keep });
        samples.iter().for_each(|sample| writer.push(sample));
        let rounded = writer.finish().unwrap().unwrap();
        let saved = packed.payload().len() - rounded.payload().len();
        assert!(saved > samples.len() || samples.len() < 50, "{saved} of {}", samples.len());
        let times = block::read(&rounded).unwrap().samples.into_iter().map(|sample| sample.time);
        assert!(times.eq(samples.iter().map(|sample| sample.time / 1_000 * 1_000)));
    }
}

#[test]
fn a_block_of_a_steady_loop_takes_four_octets_a_sample() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Matrix) else { return };
    let mut command = Command::new(program.path());
    command.arg("1100");
    let taken = sampled(vec![command], PLAIN);
    let mut samples: Vec<Sample> = taken.into_iter().flat_map(|of| of.1).collect();
    samples.sort_by_key(|sample| sample.time);
    samples.truncate(1_000);
    assert!(samples.len() >= 500, "{} samples of a program that runs for 1.1 s", samples.len());
    let mut writer = BlockWriter::new("node001", 0, EXACT);
    samples.iter().for_each(|sample| writer.push(sample));
    let octets = writer.finish().unwrap().unwrap().payload().len();
    // A block of half as many samples shares its tables among fewer.
    let fixed = 250;
    assert!(octets <= 4 * samples.len() + fixed, "{octets} octets, {} samples", samples.len());
}
