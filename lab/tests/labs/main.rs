//! Labs that really run: real bridges, inside user-mode Linux where this kernel has none.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]

mod boundaries;
mod bundles;
mod escapes;
mod fabrics;
mod mpi;
mod namespaces;
mod rates;
mod running;
mod texts;
