//! A Linux bridge with VLAN filtering: shell scripts of iproute2 batches.

mod parser;

use super::Language;
use crate::dialect::linux::{self, ScriptedBridge};
use crate::model::{GENERIC, ModelFacts};
use crate::{PortSettings, SwitchSettings};

/// The name of the dialect, and of its only model.
pub(in crate::dialect) const NAME: &str = "linux-bridge";

/// Ports are what a bridge of the Linux kernel has (10 bits). Its table has no limit of its own.
static MODELS: [ModelFacts; 1] = [ModelFacts {
    name: NAME,
    ports: 1_023,
    table_entries: 1_048_576,
    bundles: 1_023,
    // The kernel takes any, and keeps clock ticks in 32 bits; the longest is safe at up to 1,000 a
    // second.
    ageing_s_min: 0,
    ageing_s_max: Some(1_000_000),
    ..GENERIC
}];

static LANGUAGE: Language =
    linux::language(NAME, &MODELS, include_str!("template.j2"), parser::read);

/// The bridge of the Linux kernel.
pub(super) static LINUX: ScriptedBridge = ScriptedBridge {
    language: &LANGUAGE,
    takes_tagged: true,
    check_port,
    check_switch,
    own_variables: |_| Vec::new(),
};

fn check_port(port: &PortSettings) -> Result<(), String> {
    if !port.accept_tagged {
        return Err("a Linux bridge takes tagged frames of every VLAN that a port is in".into());
    }
    Ok(())
}

fn check_switch(settings: &SwitchSettings) -> Result<(), String> {
    match settings.ageing {
        None => Err("a Linux bridge forgets addresses always".into()),
        Some(span) if span.get() % 10_000_000 != 0 => {
            Err(format!("an ageing time of {span}: allowed are whole hundredths of a second"))
        }
        Some(_) => Ok(()),
    }
}
