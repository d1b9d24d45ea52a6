//! What addresses mean: which file they lie in, and which function of it.
//!
//! An address means something only together with the process and the time: what was mapped there then
//! ([`AddressSpaces`]). From that follow a file, known by its build ID, and an offset in it, whose
//! function is looked up once whatever process it was met in ([`Symbols`]).

mod address_spaces;
mod debug_files;
mod files;
pub mod perf_map;
mod told;
#[cfg(test)]
mod tools;
mod usual_names;

pub use address_spaces::{AddressSpaces, MappedFile, Place, Process};
pub use files::{Function, Symbols, Unnamed, is_file_here};
pub use told::{
    FileFunction, ToldFunctions, functions_of_debug_info, functions_of_file, functions_of_kernel,
    told,
};
