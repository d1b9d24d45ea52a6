//! Vendors of switches that are typed to: what of them is only data.

use std::ops::RangeInclusive;

use crate::dialect::state::SwitchState;
use crate::dialect::vendors::{Language, Vendor};
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan, VlanSet};

/// How long addresses can be kept that are not heard of.
#[derive(Debug, Clone)]
pub(in crate::dialect) struct Ageing {
    /// The spans that it is told, in seconds.
    pub(in crate::dialect) seconds: RangeInclusive<u64>,
    /// Whether it can keep them for ever.
    pub(in crate::dialect) never: bool,
}

/// Where pause frames are turned on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum Pauses {
    /// For the switch as a whole.
    OfAllPorts,
    /// For each port.
    OfEach,
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
    /// Whether a port must be in the VLAN of its PVID, since it drops frames without a tag otherwise.
    pub(in crate::dialect) pvid_is_member: bool,
    /// Whether there is a mode in which a port drops tagged frames.
    pub(in crate::dialect) drops_tagged: bool,
    pub(in crate::dialect) pauses: Pauses,
    /// What the commands call a bundle.
    pub(in crate::dialect) bundle_name: fn(u16) -> String,
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
        (self.bundle_name)(number)
    }

    fn factory(&self, model: &SwitchModel) -> SwitchState {
        (self.factory)(model)
    }

    fn initial_members(&self, port: &PortSettings) -> VlanSet {
        let begins = self.general_begins_in_default && port.accept_tagged;
        begins.then_some(Vlan::DEFAULT).into_iter().collect()
    }

    fn check_port(&self, port: &PortSettings) -> Result<(), String> {
        if !port.accept_tagged && !self.drops_tagged {
            return Err(format!("{} takes tagged frames at every port", self.switch));
        }
        let foreign =
            port.pvid.filter(|vlan| self.pvid_is_member && !port.members().contains(*vlan));
        if let Some(vlan) = foreign {
            return Err(format!(
                "{} drops frames without a tag at a port whose PVID is {vlan} and that is not in VLAN {vlan}",
                self.switch
            ));
        }
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
        match self.pauses {
            Pauses::OfAllPorts => super::check_pause(self.switch, settings),
            Pauses::OfEach => Ok(()),
        }
    }
}
