//! The synchronisation primitives that the threads of a run share memory with.
//!
//! `exchange::crew` and `exchange::shared_memory` take all of theirs from here. That is what lets
//! the model check (`sim/tests/interleavings`) compile the same files against the primitives of
//! `loom` instead, and try every order in which the threads can see each other's stores.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};
pub(crate) use std::thread::yield_now;
