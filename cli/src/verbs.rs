//! The verbs: one module each, with its arguments and what it does.

pub(crate) mod agent;
pub(crate) mod alerts;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod export;
pub(crate) mod fabric;
pub(crate) mod farm;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod mark;
pub(crate) mod measure;
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod query;
pub(crate) mod recording;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod trace;
