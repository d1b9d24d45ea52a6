//! Systems to simulate on [`meikyo_sim`].
//!
//! - [`phold`]: the synthetic load that simulation kernels are compared by.

pub mod phold;
