//! The vendors whose switches are known, and what each has to answer.
//!
//! A vendor is one directory below `vendors/` and one line of [`VENDORS`]. Everything that differs
//! between switches when settings become commands, and commands become settings, is asked through
//! [`Vendor`]; nothing else in the crate knows a vendor by name.

// `#[path]` keeps a vendor whole: its root module lies inside its directory, not beside it.
#[path = "vendors/comware/vendor.rs"]
mod comware;
#[path = "vendors/dell_n/vendor.rs"]
mod dell_n;
#[path = "vendors/dgs/vendor.rs"]
mod dgs;
#[path = "vendors/jetstream/vendor.rs"]
mod jetstream;
#[path = "vendors/linux_bridge/vendor.rs"]
mod linux_bridge;
#[path = "vendors/netgear/vendor.rs"]
mod netgear;
#[path = "vendors/open_vswitch/vendor.rs"]
mod open_vswitch;
#[path = "vendors/powerconnect/vendor.rs"]
mod powerconnect;

#[cfg(test)]
pub(super) mod laws;
mod refused;

use minijinja::Value;

use super::reading::ParseError;
use super::state::SwitchState;
use crate::model::ModelFacts;
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings, VlanSet};

pub(super) use linux_bridge::NAME as LINUX_BRIDGE;
pub(super) use refused::Refusal;

/// Every vendor, in the order in which lists name them.
pub(super) static VENDORS: [Entry; 10] = [
    Entry::Spoken(&powerconnect::POWERCONNECT),
    Entry::Spoken(&linux_bridge::LINUX),
    Entry::Spoken(&open_vswitch::OPEN_VSWITCH),
    Entry::Spoken(&dell_n::DELL_N),
    Entry::Spoken(&comware::COMWARE),
    Entry::Spoken(&dgs::DGS),
    Entry::Spoken(&jetstream::JETSTREAM),
    Entry::Spoken(&netgear::NETGEAR),
    Entry::Refused(&refused::CISCO_IOS),
    Entry::Refused(&refused::ARISTA_EOS),
];

/// A line of the table of vendors.
pub(super) enum Entry {
    /// Settings are written as this vendor's commands, and read back.
    Spoken(&'static dyn Vendor),
    /// The vendor is known by name only, so that whoever asks for it learns why it cannot be used.
    Refused(&'static Refusal),
}

impl Entry {
    /// The name of the dialect.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Spoken(vendor) => vendor.language().name,
            Self::Refused(refusal) => refusal.name,
        }
    }

    /// The models that are built in, whatever can be done with them.
    pub(super) fn models(&self) -> &'static [ModelFacts] {
        match self {
            Self::Spoken(vendor) => vendor.language().models,
            Self::Refused(refusal) => std::slice::from_ref(&refusal.model),
        }
    }
}

/// How a text gets to a switch, and how the switch says that it refused a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The text is typed at a prompt, line by line.
    Typed {
        /// Beginnings of answers, in lower case, that mean that the line before was refused.
        refusals: &'static [&'static str],
    },
    /// The text is a shell script: it ends with an exit code, and can take itself back.
    Script,
}

/// What of a vendor is the same for all its switches.
pub(super) struct Language {
    /// The name of the dialect in the cluster file, at `--dialect`, and of its template: `NAME.j2`.
    pub(super) name: &'static str,
    /// The models that are built in. A switch of one of them speaks this dialect.
    pub(super) models: &'static [ModelFacts],
    /// The built-in template, for the engine `minijinja`. Its variables are those of the page, and
    /// [`Vendor::own_variables`]; `docs/fabric-deployment.md` lists them.
    pub(super) template: &'static str,
    /// How a text gets to the switch.
    pub(super) delivery: Delivery,
    /// Whether a VLAN exists by a command of its own, also without a port; elsewhere a VLAN is there
    /// as long as a port is in it, and sets of VLANs are compared so.
    pub(super) defines_vlans: bool,
    /// The parser: the state of a switch of the model after the text was carried out, if it was in the
    /// one given. It refuses a line that it does not understand, or that the switch would refuse, and
    /// never panics, whatever the text.
    pub(super) read: Read,
}

/// See [`Language::read`].
pub(super) type Read = fn(&SwitchModel, &SwitchState, &str) -> Result<SwitchState, ParseError>;

/// The commands of one vendor's switches: what they can say, how it is written, how it is read.
///
/// **The round-trip law.** For every state that [`check_port`](Self::check_port) and
/// [`check_switch`](Self::check_switch) accept, the text that [`Language::template`] makes of a change
/// from `before` to `after` must be read by [`Language::read`], begun at `before`, as exactly `after`. Every text is read back before anybody sees it, so a text that cannot be read back as the
/// same settings is never written: not a wrong text, but an error names the first difference.
///
/// The law is worth what the parser is worth. A parser carries out each line as the switch would,
/// refuses what the switch would refuse, and refuses what it does not know: it never skips a line that
/// could matter to a frame.
pub(super) trait Vendor: Sync {
    /// What is the same for all its switches.
    fn language(&self) -> &'static Language;

    /// What the commands, and the agent of the switch (`ifName`), call a port.
    fn port_name(&self, model: &SwitchModel, port: PortNumber) -> String;

    /// Several ports, in ascending order, as one argument of a command; `None` if no command takes
    /// several, so that templates get a list of names instead.
    fn port_list(&self, _model: &SwitchModel, _ports: &[PortNumber]) -> Option<String> {
        None
    }

    /// What the commands call the bundle with this number.
    fn bundle_name(&self, number: u16) -> String;

    /// The state of a switch that nobody has configured: what `deploy --from factory` begins with.
    fn factory(&self, model: &SwitchModel) -> SwitchState;

    /// The state for which a whole text is written, and from which a whole text is read.
    fn blank(&self, model: &SwitchModel) -> SwitchState {
        self.factory(model)
    }

    /// The VLANs that a port is an untagged member of once it is set anew, before the text adds its
    /// own: what the text has to remove.
    fn initial_members(&self, _port: &PortSettings) -> VlanSet {
        VlanSet::EMPTY
    }

    /// What of a port cannot be said, with the reason: the end of a sentence that begins with the
    /// name of the switch. What no switch can be (a port that does not exist, a VLAN both tagged and
    /// untagged) has been refused before.
    ///
    /// # Errors
    /// If the port cannot be set like this.
    fn check_port(&self, port: &PortSettings) -> Result<(), String>;

    /// What of the switch as a whole cannot be said, as [`check_port`](Self::check_port) says it.
    ///
    /// # Errors
    /// If the switch cannot be set like this.
    fn check_switch(&self, settings: &SwitchSettings) -> Result<(), String>;

    /// Variables of the template beyond those that every template has.
    fn own_variables(&self, _after: &SwitchState) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The text that takes a step back, made to go on past commands whose effect never came. A switch
    /// that is typed to does so by itself.
    fn tolerant(&self, text: String) -> String {
        text
    }
}
