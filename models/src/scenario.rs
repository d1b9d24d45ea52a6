//! Scenario files: a system to simulate, in a few lines of TOML.
//!
//! ```
//! use meikyo_models::scenario::Scenario;
//! use meikyo_sim::{Options, Scheduler, Unobserved};
//!
//! let text = r#"
//!     model = "metadata"
//!     servers = 2
//!     clients = 88
//!     operations = 50      # of each client
//!     net_startup = "32us"
//!     client_bandwidth = "125MiB/s"
//! "#;
//! let mut scenario = Scenario::parse(text, "paper.toml")?;
//! scenario.set("clients", "44")?;
//! let report = scenario.run(&Options::new(Scheduler::Sequential, 1), &mut Unobserved)?;
//! assert_eq!(report.figure("operations_total"), Some(44.0 * 50.0));
//!
//! let error = Scenario::parse("model = \"phold\"\nlps = 8\nlookahead = 2\n", "load.toml").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "load.toml:3: lookahead: expected a span of time in quotes such as \"32us\"; found a whole number"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All keys stand at the top of the file, so that `servers=4` on a command line means what it means in
//! the file. A quantity has its unit, a key that is not known or has no effect is an error, and every
//! problem of a file is told at once with its line. What is not written has the default of its key
//! ([`Key::default`]); [`Scenario::settings`] shows what holds, and where it comes from.

mod build;
mod keys;
mod problem;
mod reading;
mod value;

use std::collections::BTreeMap;

use meikyo_sim::{LpId, Observer, Options};
use meikyo_units::SimTime;

use crate::report::Report;
use crate::scenario::build::Built;
use crate::scenario::keys::ModelKind;
use crate::scenario::value::Value;

pub use keys::{Expected, Key, MODELS};
pub use problem::{Problem, RunError, ScenarioError};

/// A system to simulate, with a value for every key of its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    file: String,
    kind: ModelKind,
    /// By key; a key that has no value and no default is absent.
    values: BTreeMap<&'static str, (Value, Origin)>,
    /// What the values describe.
    built: Built,
    /// Whether a run gives out series that nothing but a recording needs.
    series: bool,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave another.
    Default,
    /// This line of the file.
    Line(usize),
    /// [`Scenario::set`].
    Set,
}

/// A key and what it is set to.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key.
    pub key: &'static str,
    /// The value as text, without quotes; none if the key has neither a value nor a default.
    pub value: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
}

impl Scenario {
    /// Reads a scenario; `file` is what its problems are told with.
    ///
    /// # Errors
    /// With everything that is wrong with it, each with its line and key.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let scenario = reading::read(text, file)?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Sets `key` to `value`, written as in the file but without quotes. Whether the values go together
    /// is checked by [`Scenario::check`], since one may need another that is set later.
    ///
    /// # Errors
    /// If the model has no such key, or it takes no such value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        let failed = |text| {
            let (key, value) = (key.to_owned(), value.to_owned());
            ScenarioError::Setting { key, value, text }
        };
        if key == "model" {
            return Err(failed("the file says which model it is".to_owned()));
        }
        let known = self.kind.key(key).ok_or_else(|| failed(self.kind.unknown_key()))?;
        let value = Value::from_text(known.expected, value).map_err(failed)?;
        self.values.insert(known.name, (value, Origin::Set));
        self.built = build::build(self.kind, &self.values);
        Ok(())
    }

    /// Whether the values go together.
    ///
    /// # Errors
    /// With everything that does not.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let mut problems = self.without_effect();
        problems.extend(build::contradictions(self));
        problem::none_of(&self.file, problems)
    }

    /// Keys that somebody gave and that have no effect beside the other values. What the file says is
    /// left alone where a setting took its effect away.
    fn without_effect(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, (_, origin)) in &self.values {
            let needs = self.kind.key(name).and_then(|key| key.only_with);
            let Some((other, words)) = needs else { continue };
            let overruled = *origin != Origin::Set && self.origin(other) == Origin::Set;
            if *origin == Origin::Default || overruled || words.contains(&self.word(other)) {
                continue;
            }
            let allowed: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let text = format!("has an effect only with {other} = {}", allowed.join(" or "));
            problems.push(Problem::new(*origin, name, text));
        }
        problems
    }

    fn origin(&self, key: &str) -> Origin {
        self.values.get(key).map_or(Origin::Default, |(_, origin)| *origin)
    }

    fn word(&self, key: &str) -> &'static str {
        match self.values.get(key) {
            Some((Value::Word(word), _)) => word,
            _ => "",
        }
    }

    /// The last instant whose events are handled, as far as the scenario sets it.
    fn until(&self) -> SimTime {
        match self.values.get("until") {
            Some((Value::Span(span), _)) => SimTime::START + *span,
            _ => SimTime::END,
        }
    }

    /// The kind of model.
    pub fn model(&self) -> &'static str {
        self.kind.name()
    }

    /// Every key of the model with its value.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.kind.keys().iter().map(|key| {
            let value = self.values.get(key.name);
            Setting {
                key: key.name,
                value: value.map(|(value, _)| value.to_string()),
                origin: value.map_or(Origin::Default, |(_, origin)| *origin),
            }
        })
    }

    /// Runs it, to the end that `options` or the scenario sets, whichever is earlier.
    ///
    /// # Errors
    /// If the values do not go together, or where the kernel refuses.
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        self.check()?;
        let until = self.until();
        let options = options.until(until.min(options.until));
        let mut built = self.built.clone();
        if self.series {
            built.give_series();
        }
        Ok(built.run(&options, observer)?)
    }

    /// Makes runs give out all series of the model. Those that its figures are made of come always; the
    /// others cost about as much as the events that they speak of.
    pub fn give_series(&mut self) {
        self.series = true;
    }

    /// The series that a run records, in the order of [`meikyo_sim::Series::index`].
    pub fn series_names(&self) -> Vec<String> {
        self.built.series_names()
    }

    /// What a value of a series is told of, by the LP that gave it out: the LP, or its group where the
    /// model sums up over groups.
    pub fn series_source(&self, lp: LpId) -> String {
        self.built.series_source(lp)
    }

    /// What an LP is called.
    pub fn lp_name(&self, lp: LpId) -> String {
        self.built.lp_name(lp)
    }
}
