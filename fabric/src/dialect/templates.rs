//! The templates that texts are made by: built in, or a site's own.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};

use super::difference::differences;
use super::page::{Change, Page};
use super::render_error::RenderError;
use super::state::SwitchState;
use super::{Dialect, fit};
use crate::{SwitchId, Wiring};

/// The templates of all dialects.
#[derive(Debug)]
pub struct Templates(Environment<'static>);

impl Templates {
    /// The built-in ones.
    ///
    /// # Panics
    /// Never: tests make texts by each.
    pub fn built_in() -> Self {
        Self::with(&BTreeMap::new()).expect("the built-in templates are tested")
    }

    /// The files of the built-in templates, one for each dialect that texts are made in: name and
    /// text.
    pub fn files() -> Vec<(String, &'static str)> {
        let vendors = Dialect::all().filter_map(|dialect| dialect.vendor().ok());
        let languages = vendors.map(|vendor| vendor.language());
        languages.map(|language| (file_name(language.name), language.template)).collect()
    }

    /// The built-in templates, those in `own` (file name and text) in place of theirs.
    ///
    /// # Errors
    /// If a template is wrong, or is named as none of the built-in ones.
    ///
    /// # Panics
    /// Never: the delimiters of templates are the usual ones.
    pub fn with(own: &BTreeMap<String, String>) -> Result<Self, RenderError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        environment.set_syntax(syntax.build().expect("the delimiters are the usual ones"));
        let built_in = Self::files();
        for (name, text) in &built_in {
            let text = own.get(name).map_or_else(|| (*text).to_owned(), Clone::clone);
            let added = environment.add_template_owned(name.clone(), text);
            added.map_err(|error| wrong(name, &error))?;
        }
        let unknown = own.keys().find(|name| built_in.iter().all(|(known, _)| known != *name));
        match unknown {
            None => Ok(Self(environment)),
            Some(name) => Err(RenderError::Template {
                template: name.clone(),
                line: None,
                problem: format!("is the name of no template; allowed are {}", known_names()),
            }),
        }
    }

    /// The text that brings a switch from its blank state to `state`; it is read back and compared.
    ///
    /// # Errors
    /// If the dialect cannot say it, a template is wrong, or makes a text that says something else.
    pub fn render(
        &self,
        dialect: Dialect,
        wiring: &Wiring,
        switch: SwitchId,
        state: &SwitchState,
    ) -> Result<String, RenderError> {
        let model = &wiring.switches[switch.place()].model;
        let blank = SwitchState::blank(dialect, model);
        let after = &managed_as_before(&blank, state);
        self.text(dialect, &Change { wiring, switch, before: &blank, after, fresh: true })
    }

    /// The text that takes a change back: as [`Self::render_change`], but the switch is no longer
    /// reached in a VLAN of its ports if it was not before the change.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn render_back(
        &self,
        dialect: Dialect,
        wiring: &Wiring,
        switch: SwitchId,
        now: &SwitchState,
        before: &SwitchState,
    ) -> Result<String, RenderError> {
        self.text(dialect, &Change { wiring, switch, before: now, after: before, fresh: false })
    }

    /// The text that brings a switch from one state to another; it is read back and compared.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn render_change(
        &self,
        dialect: Dialect,
        wiring: &Wiring,
        switch: SwitchId,
        before: &SwitchState,
        after: &SwitchState,
    ) -> Result<String, RenderError> {
        let after = &managed_as_before(before, after);
        self.text(dialect, &Change { wiring, switch, before, after, fresh: false })
    }

    fn text(&self, dialect: Dialect, change: &Change<'_>) -> Result<String, RenderError> {
        let Change { wiring, switch, before, after, .. } = *change;
        let own = &wiring.switches[switch.place()];
        let vendor = fit::check(dialect, own, after)?;
        let template = file_name(vendor.language().name);
        let failed = |error| wrong(&template, &error);
        let text = self.0.get_template(&template).map_err(failed)?;
        let text = text.render(Page { vendor, change }.variables()).map_err(failed)?;
        let said = (vendor.language().read)(&own.model, before, &text).map_err(|source| {
            let (template, switch) = (template.clone(), own.name.clone());
            RenderError::NotUnderstood { template, switch, source }
        })?;
        let meant = after.clone().normal(vendor.language().defines_vlans);
        if said.means_the_same(&meant) {
            return Ok(text);
        }
        let difference = differences(&meant, &said);
        let difference = difference.first().map_or_else(String::new, ToString::to_string);
        Err(RenderError::SaysOther { template, switch: own.name.clone(), difference })
    }
}

/// The file with the template of a dialect.
fn file_name(dialect: &str) -> String {
    format!("{dialect}.j2")
}

/// The state after a change that says nothing of the management VLAN: it stays.
fn managed_as_before(before: &SwitchState, after: &SwitchState) -> SwitchState {
    SwitchState { management: after.management.or(before.management), ..after.clone() }
}

fn known_names() -> String {
    let files = Templates::files();
    let names: Vec<String> = files.iter().map(|(name, _)| format!("`{name}`")).collect();
    names.join(", ")
}

fn wrong(template: &str, error: &minijinja::Error) -> RenderError {
    let kind = error.kind();
    let problem =
        error.detail().map_or_else(|| kind.to_string(), |detail| format!("{kind}: {detail}"));
    RenderError::Template {
        template: error.name().unwrap_or(template).to_owned(),
        line: error.line(),
        problem,
    }
}
