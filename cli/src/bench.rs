//! `meikyo bench`: the product's own numbers, each checked against the truth before it is printed.

mod bare;
mod machine;
mod paper;
mod placement;
mod statistics;
