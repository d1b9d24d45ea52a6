//! Programs as they are: what a host has of a program that knows nothing of checkpoints, captured by CRIU and brought
//! back on the same host or another.
//!
//! A host's part of a program is trees of processes below processes of ours ([`processes`]). [`criu`] has each written into
//! a directory of images, as a program of its own that is spoken to by its RPC; [`bundle`] makes one image of these
//! directories and of the host's shared memory files, in which a page of memory keeps its place from one capture to the
//! next, so that [`crate::increment`] finds what changed. Files that all hosts share are part of it where they are chosen
//! ([`files`]).
//!
//! Which hosts are captured when, and that nothing is on the wire meanwhile, is decided by whoever starts the program;
//! [`under_way`] tells when something is that would be in no image.
//!
//! # What a capture costs
//!
//! With `D` octets of memory on a host: CRIU copies them out of the processes into page cache while the program stands still
//! (0.8 to 1 s per GB, beside 0.1 s to begin with), and files in `/dev/shm` are copied in that time, too. Then the program
//! goes on, and the bundle copies them once more (0.3 s per GB) before the daemon reads them. An entry of the table of
//! places takes some 60 octets of memory per page of 4 KiB, which is 1.5 % of `D`.

pub mod bundle;
pub mod criu;
pub mod files;
pub mod message;
pub mod processes;
pub mod under_way;
