//! Vendors' texts: what is typed into a switch, made from [`SwitchSettings`] and read back.
//!
//! Every text is read back as it is made, and refused unless it says exactly what was meant: a
//! template of the site's own is proven with the rest. What a parser does not understand is an
//! error with its line; what does not matter to a fabric (names, passwords, logging ..) is a list
//! for each dialect, in `docs/fabric.md`.
//!
//! This module opens no file: who asks passes templates and texts.

mod difference;
mod fastpath;
mod fit;
mod flows;
mod host;
mod iproute;
mod names;
mod open_vswitch;
mod page;
mod reading;
mod state;
mod templates;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::{Configuration, SwitchId, SwitchModel, SwitchSettings, Wiring};

pub use difference::{Difference, differences};
pub use host::{HostTextError, host_text};
pub use names::{bundle_interface, interface_name, port_interface};
pub use reading::ParseError;
pub use state::SwitchState;
pub use templates::{RenderError, Templates};

/// A language in which switches are told their settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Dell PowerConnect 6200 series (Broadcom FASTPATH).
    PowerConnect,
    /// A Linux bridge with VLAN filtering: a shell script of iproute2 batches.
    LinuxBridge,
    /// Open vSwitch: a shell script of `ovs-vsctl` and flows.
    OpenVswitch,
    /// Cisco IOS: refused, with the reason.
    CiscoIos,
    /// Arista EOS: refused, with the reason.
    AristaEos,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::PowerConnect, Self::LinuxBridge, Self::OpenVswitch, Self::CiscoIos, Self::AristaEos];

    /// Its name, as in the cluster file and in names of templates.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PowerConnect => "powerconnect-6248",
            Self::LinuxBridge => "linux-bridge",
            Self::OpenVswitch => "open-vswitch",
            Self::CiscoIos => "cisco-ios",
            Self::AristaEos => "arista-eos",
        }
    }

    /// The dialect of a model, by the model's name; `None` if there is none for it.
    pub fn of_model(model: &SwitchModel) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| model.name == dialect.name())
    }

    /// How a file with a text of the dialect ends.
    pub const fn file_ending(self) -> &'static str {
        if self.has_shell() { "sh" } else { "cfg" }
    }

    /// Whether its texts are scripts, which a switch carries out by itself and can take back by itself.
    pub const fn has_shell(self) -> bool {
        matches!(self, Self::LinuxBridge | Self::OpenVswitch)
    }

    /// Whether a line that a switch answers says that it refused what was typed. A shell says so by its
    /// exit code instead.
    pub fn refuses(self, answer: &str) -> bool {
        const OF_FASTPATH: [&str; 5] =
            ["invalid input", "incomplete command", "command not found", "error", "failed"];
        let answer = answer.trim().trim_start_matches(['%', ' ']).to_ascii_lowercase();
        !self.has_shell() && OF_FASTPATH.iter().any(|refusal| answer.starts_with(refusal))
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text is the name of no dialect.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{text}` is no dialect; allowed are `powerconnect-6248`, `linux-bridge`, `open-vswitch`, \
     `cisco-ios`, `arista-eos`"
)]
pub struct ParseDialectError {
    text: String,
}

impl FromStr for Dialect {
    type Err = ParseDialectError;

    fn from_str(text: &str) -> Result<Self, ParseDialectError> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.name() == text);
        found.ok_or_else(|| ParseDialectError { text: text.into() })
    }
}

/// The text that brings a switch from its blank state to its settings, by the built-in templates.
///
/// # Errors
/// If the dialect cannot say it: [`RenderError`].
pub fn render(
    dialect: Dialect,
    wiring: &Wiring,
    configuration: &Configuration,
    switch: SwitchId,
) -> Result<String, RenderError> {
    let state = SwitchState::of(configuration.switches[switch.place()].clone());
    Templates::built_in().render(dialect, wiring, switch, &state)
}

/// The settings that a text brings a blank switch to.
///
/// # Errors
/// If a line is not understood, or would be refused by the switch.
pub fn parse(
    dialect: Dialect,
    wiring: &Wiring,
    switch: SwitchId,
    text: &str,
) -> Result<SwitchSettings, ParseError> {
    let model = &wiring.switches[switch.place()].model;
    Ok(read(dialect, model, &SwitchState::blank(dialect, model), text)?.settings)
}

/// The state that a switch of the model is in after the text was typed, if it was in state `before`.
///
/// # Errors
/// As [`parse`].
pub fn read(
    dialect: Dialect,
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    match dialect {
        Dialect::PowerConnect => fastpath::read(model, before, text),
        Dialect::LinuxBridge => iproute::read(model, before, text),
        Dialect::OpenVswitch => open_vswitch::read(model, before, text),
        Dialect::CiscoIos | Dialect::AristaEos => Err(ParseError::whole(format!(
            "texts of {dialect} are not read: its ports cannot be what a fabric needs"
        ))),
    }
}
