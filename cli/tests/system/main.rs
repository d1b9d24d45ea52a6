//! The real binary `meikyo`, as a process.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]

mod alerts;
mod bad_input;
mod cached_rates;
mod checkpoint;
mod checkpoint_as_is;
mod checkpoint_cycles;
mod checkpoint_machines;
mod checkpoint_run;
mod checkpoint_slurm;
mod config;
mod export;
mod fabric;
mod fabric_check;
mod fabric_plan;
mod fabric_snmp;
mod farm;
mod freshen;
mod hangup;
mod host_agent;
mod hostile;
mod lab;
mod lab_priming;
mod limits;
mod measure;
mod measure_snmpd;
mod mpirun;
mod packaging;
mod predict_lab;
mod probe;
mod profile;
mod profile_agent;
mod query;
mod realtime;
mod recording;
mod running;
mod secrets;
mod simulate;
#[path = "../../../snmp/tests/it/snmpd.rs"]
mod snmpd;
mod terminal;
mod top;
mod trace;
mod trace_otf2;
mod troubles;
