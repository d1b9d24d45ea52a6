//! The profiling engine: samples of every processor of a host, kept one by one.
//!
//! What runs on a CPU is looked at up to a thousand times a second (`perf_event_open(2)`), and each
//! sample is a row: time, CPU, thread, process, instruction, and the callers where they are asked
//! for. The rows of a (CPU, second) become one [`block`] of packed rows, which is what a recording
//! keeps and what can be sent elsewhere. Beside the samples are kept what makes their addresses mean
//! something later: mappings with build IDs, names of threads, what compilers at run time made.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`tables`] | the tables of a profile |
//! | [`block`] | samples to packed rows and back |
//! | [`records`] | what the kernel writes into its rings, taken apart |
//! | [`sampler`] | events, rings, the thin layer of system calls |
//! | [`disturbance`] | what a sample takes from the thread that it interrupts |
//! | [`governor`] | how often may be sampled within a budget |
//! | [`analysis`] | seconds summed up on the host, and those that are unlike the ones before |
//! | [`aging`] | samples that have become old, made smaller |
//! | [`flight`] | samples that stay on the host until somebody wants them |
//! | [`recorder`] | the loop that joins them |
//! | [`symbols`] | files and functions of addresses |
//! | [`perf_data`] | `perf.data` files, taken apart |
//! | [`import`] | `perf.data` files as profiles |
//! | [`jobs`] | jobs by their control groups |
//! | [`wanted`] | which samples of a recording are meant |
//! | [`moments`] | when and where samples were taken |
//! | [`report`] | samples by function, for people |
//! | [`export`] | samples for other programs |
//! | [`flame`] | samples as trees of callers |
//!
//! `block`, `records`, `governor`, `analysis`, `flight` and `off_cpu` read no clock and call no system.

pub mod aging;
pub mod analysis;
pub mod block;
mod clock;
pub mod disturbance;
mod elf;
mod existing;
pub mod export;
pub mod flame;
pub mod flight;
pub mod governor;
pub mod import;
pub mod jobs;
mod kernel;
mod mapping;
pub mod moments;
mod off_cpu;
pub mod perf_data;
mod perf_event;
mod program;
mod reading;
pub mod recorder;
pub mod records;
mod regular;
pub mod report;
mod ring;
pub mod sampler;
pub mod symbols;
pub mod tables;
mod unwinding;
pub mod wanted;

pub use block::BLOCK_OCTETS_MAX;
pub use kernel::{KernelFacts, kernel_has_names};
pub use program::{HeldProgram, ProgramError};

/// The stream of a recording that profiles are written to.
pub const STREAM: &str = "profile";
