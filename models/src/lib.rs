//! Systems to simulate on [`meikyo_sim`].
//!
//! Parts, to be put into the states of LPs:
//! - [`simplenet`]: interfaces, links and switches;
//! - [`storage`] and [`resource`]: what takes its time, and what there is so many of;
//! - [`rpc`]: request and reply.
//!
//! Systems:
//! - [`metadata_service`]: the metadata service PPMDS with its clients on a network;
//! - [`ring`]: a ring of switches;
//! - [`queueing`]: queues whose behaviour is known exactly;
//! - [`chord`]: look-ups in a peer-to-peer ring;
//! - [`phold`]: the synthetic load that simulation kernels are compared by;
//! - [`prediction`]: MPI programs on a fabric, by the plan's paths.
//!
//! Several runs of one: [`replications`], and their pictures: [`plot`]. What they are held against: [`analysis`]. What a run of one says: [`Report`]. What describes one in
//! a file: [`scenario`], by the keys that the models declare ([`parameters`]).

pub mod analysis;
pub mod chord;
mod completions;
mod digest;
pub mod ethernet;
pub mod metadata_service;
pub mod parameters;
pub mod phold;
pub mod plot;
pub mod prediction;
pub mod queueing;
pub mod replications;
mod report;
pub mod resource;
pub mod ring;
pub mod rpc;
pub mod scenario;
pub mod simplenet;
pub mod storage;

pub use report::{Figure, Report};
