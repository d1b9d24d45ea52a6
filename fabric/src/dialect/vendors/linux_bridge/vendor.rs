//! A Linux bridge with VLAN filtering: shell scripts of iproute2 batches.

mod parser;

use super::{Language, Vendor};
use crate::dialect::linux;
use crate::dialect::state::{self, SwitchState};
use crate::model::{GENERIC, ModelFacts};
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings};

/// The bridge of the Linux kernel.
#[derive(Debug)]
pub(super) struct LinuxBridge;

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

impl Vendor for LinuxBridge {
    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn port_name(&self, _model: &SwitchModel, port: PortNumber) -> String {
        linux::port_interface(port)
    }

    fn bundle_name(&self, number: u16) -> String {
        linux::bundle_interface(number)
    }

    /// The plain bridge of all ports that a site would begin with, on a machine that is reached by
    /// other ways.
    fn factory(&self, model: &SwitchModel) -> SwitchState {
        SwitchState::unmanaged(state::all_in_default_vlan(model, true, false))
    }

    /// A machine without a bridge.
    fn blank(&self, _model: &SwitchModel) -> SwitchState {
        SwitchState::unmanaged(state::without_ports())
    }

    fn check_port(&self, port: &PortSettings) -> Result<(), String> {
        if !port.accept_tagged {
            return Err("a Linux bridge takes tagged frames of every VLAN that a port is in".into());
        }
        linux::check_pvid(port)
    }

    fn check_switch(&self, settings: &SwitchSettings) -> Result<(), String> {
        match settings.ageing {
            None => Err("a Linux bridge forgets addresses always".into()),
            Some(span) if span.get() % 10_000_000 != 0 => {
                Err(format!("an ageing time of {span}: allowed are whole hundredths of a second"))
            }
            Some(_) => Ok(()),
        }
    }

    fn tolerant(&self, text: String) -> String {
        linux::tolerant(&text)
    }
}
