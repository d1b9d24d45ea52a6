//! Checkpoints of parallel programs at the speed of network and disk: what a program's hosts hold is
//! cut into blocks, protected by parity on the disks of the same hosts, and rebuilt byte for byte when
//! a host is lost.
//!
//! # What a checkpoint costs
//!
//! A group of N hosts with `k` data and `m` parity blocks per code word, each with an image of `D`
//! octets, links of `L`, disks of `W`. Everything overlaps, so the slowest stream decides, and
//! [`model`] says which it is:
//!
//! | | ring parity | partner copy | Reed-Solomon k+m | at 1 Gbit/s, 500 MB/s |
//! | --- | --- | --- | --- | --- |
//! | network, sent and received per host | D | D | (k+m-1)/k D | 8.4 ns per octet |
//! | disk, written per host | N/(N-1) D | 2 D | (k+m)/k D | 2 ns per octet |
//! | CPU: XOR or code | (N-2)/(N-1) D at 10 GB/s | none | D at 5 GB/s | 0.1 to 0.2 ns per octet |
//! | CPU: TCP and TLS, both ends | D | D | as network | about 1.5 ns per octet |
//! | memory in flight | 8 blocks of 256 KiB per host | same | same, times k | 2 to 16 MiB |
//!
//! The latency of a hop is paid once per checkpoint, not once per block: [`schedule`] keeps many blocks
//! in flight, and no block is read back that was in memory before.
//!
//! # Modules, in reading order
//!
//! - [`layout`]: which host keeps which block of which code word, and what losses that survives.
//! - [`coding`]: parity and reconstruction as functions over blocks.
//! - [`model`], [`interval`], [`plan`]: what a checkpoint costs, how often it pays, which scheme to take.
//! - [`level`], [`levels`]: in whose keeping generations are: memory or disks, and for how long.
//! - [`charter`], [`register`], [`detection`], [`member`]: what a group agrees on, how, who is dead, and one
//!   host's part in it: a core without IO.
//! - [`journal`]: what a member must not forget, on a disk that tears.
//! - [`recovery`]: what can be had back from hosts that survived.
//! - [`geometry`], [`schedule`]: the blocks of a generation, and the ways that they go.
//! - [`increment`]: what changed in an image, so that nothing else has to go.
//! - [`tls`], [`frame`], [`exchange`]: connections, what goes over them, and a job carried out.
//! - [`pace`]: how much of disk and network the program is left.
//! - [`manifest`], [`shelf`], [`link`]: a generation on a disk, written and rebuilt, and how hosts meet for it.
//! - [`drain`]: a generation on a file system that all hosts share.
//! - [`image`]: what a host's image holds when its program names arrays.
//! - [`capture`]: what a host has of a program that names nothing.
//! - [`program`], [`progress`]: what a host keeps of its program until it is saved, and whether it still saves.
//! - [`daemon`]: all of it on one host, with a control socket.

pub mod capture;
pub mod charter;
pub mod coding;
pub mod daemon;
pub mod detection;
pub mod drain;
pub mod exchange;
pub mod frame;
pub mod geometry;
pub mod image;
pub mod increment;
pub mod interval;
pub mod journal;
pub mod layout;
pub mod level;
pub mod levels;
pub mod link;
pub mod manifest;
pub mod member;
pub mod model;
pub mod pace;
pub mod plan;
pub mod program;
pub mod progress;
pub mod recovery;
pub mod register;
pub mod schedule;
pub mod shelf;
pub mod tls;
