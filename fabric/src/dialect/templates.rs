//! The templates that texts are made by: built in, or a site's own.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};
use thiserror::Error;

use super::difference::differences;
use super::page::Page;
use super::reading::ParseError;
use super::state::SwitchState;
use super::{Dialect, fit, read};
use crate::{SwitchId, Wiring};

/// The templates that come with the binary, by file name.
const BUILT_IN: [(&str, &str); 3] = [
    ("powerconnect-6248.j2", include_str!("../../templates/powerconnect-6248.j2")),
    ("linux-bridge.j2", include_str!("../../templates/linux-bridge.j2")),
    ("open-vswitch.j2", include_str!("../../templates/open-vswitch.j2")),
];

/// Why a text cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    /// The dialect cannot say what is to be set.
    #[error("`{switch}`{port}: {problem}")]
    Unsupported {
        /// The switch.
        switch: String,
        /// The port, as `, port 7`, or nothing.
        port: String,
        /// What cannot be said, and why.
        problem: String,
    },
    /// A template is wrong, or asks for a variable that does not exist.
    #[error("template `{template}`{}: {problem}", at(*.line))]
    Template {
        /// Its file name.
        template: String,
        /// The line; `None` if the whole is wrong.
        line: Option<usize>,
        /// What is wrong.
        problem: String,
    },
    /// The text that a template made is not understood when it is read back.
    #[error("template `{template}` makes a text for `{switch}` that is not understood")]
    NotUnderstood {
        /// The template.
        template: String,
        /// The switch.
        switch: String,
        /// Where, and why.
        source: ParseError,
    },
    /// The text that a template made says something else than was meant.
    #[error(
        "template `{template}` makes a text for `{switch}` that says something else: {difference}"
    )]
    SaysOther {
        /// The template.
        template: String,
        /// The switch.
        switch: String,
        /// The first difference: meant against said.
        difference: String,
    },
}

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

    /// The files of the built-in templates: name and text.
    pub const fn files() -> &'static [(&'static str, &'static str)] {
        &BUILT_IN
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
        for (name, text) in BUILT_IN {
            let text = own.get(name).map_or_else(|| text.to_owned(), Clone::clone);
            environment.add_template_owned(name, text).map_err(|error| wrong(name, &error))?;
        }
        let unknown = own.keys().find(|name| BUILT_IN.iter().all(|(known, _)| known != name));
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
        self.text(&Page { dialect, wiring, switch, before: &blank, after, fresh: true })
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
        self.text(&Page { dialect, wiring, switch, before: now, after: before, fresh: false })
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
        self.text(&Page { dialect, wiring, switch, before, after, fresh: false })
    }

    fn text(&self, page: &Page<'_>) -> Result<String, RenderError> {
        let Page { dialect, wiring, switch, before, after, .. } = *page;
        let own = &wiring.switches[switch.place()];
        fit::check(dialect, own, after)?;
        let template = format!("{dialect}.j2");
        let failed = |error| wrong(&template, &error);
        let text = self.0.get_template(&template).map_err(failed)?;
        let text = text.render(page.variables()).map_err(failed)?;
        let said = read(dialect, &own.model, before, &text).map_err(|source| {
            let (template, switch) = (template.clone(), own.name.clone());
            RenderError::NotUnderstood { template, switch, source }
        })?;
        let defines = dialect == Dialect::PowerConnect;
        let meant = after.clone().normal(defines);
        if said.means_the_same(&meant) {
            return Ok(text);
        }
        let difference = differences(&meant, &said);
        let difference = difference.first().map_or_else(String::new, ToString::to_string);
        Err(RenderError::SaysOther { template, switch: own.name.clone(), difference })
    }
}

/// The state after a change that says nothing of the management VLAN: it stays.
fn managed_as_before(before: &SwitchState, after: &SwitchState) -> SwitchState {
    SwitchState { management: after.management.or(before.management), ..after.clone() }
}

fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

fn known_names() -> String {
    let names: Vec<String> = BUILT_IN.iter().map(|(name, _)| format!("`{name}`")).collect();
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
