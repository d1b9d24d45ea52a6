//! Vendors of switches that are typed to: what of them is only data.

use std::ops::RangeInclusive;

use crate::dialect::state::SwitchState;
use crate::dialect::vendors::{Language, Vendor};
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan, VlanSet};

/// How long a switch can keep addresses.
#[derive(Debug, Clone)]
pub(in crate::dialect) struct Ageing {
    /// In seconds.
    pub(in crate::dialect) seconds: RangeInclusive<u64>,
    /// Whether it can keep them for ever.
    pub(in crate::dialect) never: bool,
}

/// A vendor whose switches are a [`TypedSwitch`](super::TypedSwitch) behind their commands.
pub(in crate::dialect) struct TypedVendor {
    pub(in crate::dialect) language: &'static Language,
    /// As a switch is called in messages, with its article.
    pub(in crate::dialect) switch: &'static str,
    /// What the commands call a port.
    pub(in crate::dialect) port_name: fn(&SwitchModel, PortNumber) -> String,
    /// Several ports as one argument, if commands take that.
    pub(in crate::dialect) port_list: Option<fn(&SwitchModel, &[PortNumber]) -> String>,
    /// A switch as delivered.
    pub(in crate::dialect) factory: fn(&SwitchModel) -> SwitchState,
    /// Whether a port is in VLAN 1 each time that it enters general mode.
    pub(in crate::dialect) general_begins_in_default: bool,
    pub(in crate::dialect) ageing: Ageing,
}

impl Vendor for TypedVendor {
    fn language(&self) -> &'static Language {
        self.language
    }

    fn port_name(&self, model: &SwitchModel, port: PortNumber) -> String {
        (self.port_name)(model, port)
    }

    fn port_list(&self, model: &SwitchModel, ports: &[PortNumber]) -> Option<String> {
        self.port_list.map(|list| list(model, ports))
    }

    fn bundle_name(&self, number: u16) -> String {
        number.to_string()
    }

    fn factory(&self, model: &SwitchModel) -> SwitchState {
        (self.factory)(model)
    }

    fn initial_members(&self, port: &PortSettings) -> VlanSet {
        let begins = self.general_begins_in_default && port.accept_tagged;
        begins.then_some(Vlan::DEFAULT).into_iter().collect()
    }

    fn check_port(&self, port: &PortSettings) -> Result<(), String> {
        super::check_port(self.switch, port)
    }

    fn check_switch(&self, settings: &SwitchSettings) -> Result<(), String> {
        let Ageing { seconds, never } = &self.ageing;
        match settings.ageing {
            Some(span) => {
                super::check_ageing(span, seconds, if *never { ", or never" } else { "" })?;
            }
            None if *never => {}
            None => return Err(format!("{} forgets addresses always", self.switch)),
        }
        super::check_pause(self.switch, settings)
    }
}
