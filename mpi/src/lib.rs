//! The MPI at hand, whichever it is: its compiler, and its ranks.
//!
//! The types of MPI are not the same in any two of its libraries, so that a program is bound to one when it
//! is compiled. This one is bound to none: `ranks.c` asks MPI for what a simulation needs and shows nothing of
//! its types. A rank has the `mpicc` at hand make a library of it ([`compiler`]), which takes some 0.1 s and is
//! kept, and loads that ([`World::join`]). Where nobody calls `mpirun`, no MPI is needed.

pub mod compiler;
mod failure;
mod kept;
mod loaded;
mod world;

pub use failure::{BuildError, JoinError};
pub use world::{Communicator, World};
