//! The models from outside.

mod chord;
mod hpl;
mod looks;
mod metadata;
mod metadata_ethernet;
mod metadata_rates;
mod packet;
mod packet_reference;
mod packet_tcp;
mod prediction;
mod prediction_settings;
mod queueing;
mod replications;
mod ring;
mod scenario;
mod tutorial;
