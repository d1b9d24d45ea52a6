//! Vendors' texts: what is typed into a switch, made from [`SwitchSettings`] and read back.
//!
//! Every text is read back as it is made, and refused unless it says exactly what was meant: a
//! template of the site's own is proven with the rest. What a parser does not understand is an
//! error with its line; what does not matter to a fabric (names, passwords, logging ..) is a list
//! for each dialect, in `docs/fabric-deployment.md`.
//!
//! What is particular to a vendor lies in its directory below `vendors/`; the rest of this module is
//! what they share. This module opens no file: who asks passes templates and texts.

mod difference;
mod fit;
mod host;
mod linux;
mod models;
mod page;
mod reading;
mod render_error;
mod state;
mod templates;
#[cfg(test)]
mod tests;
mod typed;
mod vendors;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use self::vendors::{Delivery, Entry, Refusal, VENDORS, Vendor};
use crate::{Configuration, PortNumber, SwitchId, SwitchModel, SwitchSettings, Wiring};

pub use difference::{Difference, differences};
pub use host::{HostTextError, host_text};
pub use linux::{bundle_interface, port_interface};
pub use reading::ParseError;
pub use render_error::RenderError;
pub use state::SwitchState;
pub use templates::Templates;

/// A language in which switches are told their settings: a line of the table of vendors.
///
/// It is got by its name (`"linux-bridge".parse()`), or by the model that speaks it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dialect(usize);

impl Dialect {
    /// Every dialect that has a name, also those that are refused, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..VENDORS.len()).map(Self)
    }

    /// Shell scripts of iproute2: what the lab's bridges are told.
    ///
    /// # Panics
    /// Never: the table has it.
    pub fn linux_bridge() -> Self {
        Self::all()
            .find(|dialect| dialect.name() == vendors::LINUX_BRIDGE)
            .expect("the table of vendors has Linux bridges")
    }

    /// Its name, as in the cluster file and in names of templates.
    pub fn name(self) -> &'static str {
        self.entry().name()
    }

    /// The dialect of a model, by the model's name; `None` if there is none for it.
    pub fn of_model(model: &SwitchModel) -> Option<Self> {
        let speaks = |dialect: &Self| {
            model.name == dialect.name()
                || dialect.entry().models().iter().any(|facts| facts.name == model.name)
        };
        Self::all().find(speaks)
    }

    /// How a file with a text of the dialect ends.
    pub fn file_ending(self) -> &'static str {
        if self.has_shell() { "sh" } else { "cfg" }
    }

    /// Whether its texts are scripts, which a switch carries out by itself and can take back by itself.
    pub fn has_shell(self) -> bool {
        self.delivery() == Delivery::Script
    }

    /// Whether a line that a switch answers says that it refused what was typed. A shell says so by its
    /// exit code instead.
    pub fn refuses(self, answer: &str) -> bool {
        let Delivery::Typed { refusals } = self.delivery() else { return false };
        let answer = answer.trim().trim_start_matches(['%', ' ']).to_ascii_lowercase();
        refusals.iter().any(|refusal| answer.starts_with(refusal))
    }

    /// The text that takes a step back, made to go on past commands whose effect never came.
    pub(crate) fn tolerant(self, text: String) -> String {
        match self.vendor() {
            Ok(vendor) => vendor.tolerant(text),
            Err(_) => text,
        }
    }

    fn entry(self) -> &'static Entry {
        &VENDORS[self.0]
    }

    /// Who writes and reads its texts; an error says why nobody does.
    fn vendor(self) -> Result<&'static dyn Vendor, &'static Refusal> {
        match self.entry() {
            Entry::Spoken(vendor) => Ok(*vendor),
            Entry::Refused(refusal) => Err(refusal),
        }
    }

    fn delivery(self) -> Delivery {
        self.vendor().map_or(Delivery::Typed { refusals: &[] }, |vendor| vendor.language().delivery)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dialect").field(&self.name()).finish()
    }
}

/// A text is the name of no dialect.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no dialect; allowed are {}", allowed())]
pub struct ParseDialectError {
    text: String,
}

fn allowed() -> String {
    let names: Vec<String> = Dialect::all().map(|dialect| format!("`{dialect}`")).collect();
    names.join(", ")
}

impl FromStr for Dialect {
    type Err = ParseDialectError;

    fn from_str(text: &str) -> Result<Self, ParseDialectError> {
        let found = Self::all().find(|dialect| dialect.name() == text);
        found.ok_or_else(|| ParseDialectError { text: text.into() })
    }
}

/// What the agent of a switch calls a port (`ifName`): as its dialect does, `swp7` where none is known.
pub fn interface_name(model: &SwitchModel, port: PortNumber) -> String {
    match Dialect::of_model(model).map(Dialect::vendor) {
        Some(Ok(vendor)) => vendor.port_name(model, port),
        Some(Err(_)) | None => port_interface(port),
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
    let state = SwitchState::unmanaged(configuration.switches[switch.place()].clone());
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
    match dialect.vendor() {
        Ok(vendor) => (vendor.language().read)(model, before, text),
        Err(refusal) => {
            Err(ParseError::whole(format!("texts of {dialect} are not read: {}", refusal.not_read)))
        }
    }
}
