//! What a person types and reads in a terminal, as far as `meikyo` and `meikyo-bench` share it.
//!
//! [`failure`] is how a command ends, [`output`] the one place where something is printed,
//! [`printable`] keeps text of others from steering the terminal. [`scheduling`] and [`ranks`] say how
//! simulations are run, [`benches`] what the benches are told.

pub mod arguments;
pub mod benches;
pub mod failure;
pub mod output;
pub mod printable;
pub mod ranks;
pub mod scheduling;
pub mod side_by_side;
