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
//! ([`Key::default`](crate::parameters::Key::default)); [`Scenario::settings`] shows what holds, and
//! where it comes from. [`reference()`] lists every key of every model.

mod errors;
mod reading;
mod reference;
mod table;

use meikyo_sim::{LpId, Observer, Options};
use meikyo_units::{Nanos, SimTime};

use crate::parameters::{Given, Key, OnlyWith, Value};
use crate::report::Report;
use crate::scenario::table::{Declared, Entry};

pub(crate) use reading::given_values;

pub use errors::{RunError, ScenarioError};
pub use meikyo_places::{Origin, Problem, Problems};
pub use reference::reference;

/// A system to simulate, with a value for every key of its model.
#[derive(Clone, Debug)]
pub struct Scenario {
    file: String,
    entry: Entry,
    /// By key; a key that nobody gave a value is absent.
    given: Given,
    /// Whether a run gives out series that nothing but a recording needs.
    all_series: bool,
    /// The keys, and what the values describe.
    declared: Declared,
}

/// A key and what it is set to.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key as written in the file.
    pub key: &'static str,
    /// The value as text, without quotes; none if the key has neither a value nor a default.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: Origin,
}

/// The names of all models, as a file writes them behind `model =`.
pub fn model_names() -> impl Iterator<Item = &'static str> {
    table::MODELS.iter().map(|entry| entry.about().name)
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

    fn new(file: &str, entry: Entry, given: Given) -> Self {
        let declared = entry.declared(&given, false);
        Self { file: file.to_owned(), entry, given, all_series: false, declared }
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
        let known = self
            .key(key)
            .ok_or_else(|| failed(reading::unknown_key(self.entry, &self.declared.keys)))?;
        let (name, expected) = (known.name, known.expected);
        let value = Value::from_text(expected, value).map_err(failed)?;
        self.given.insert(name, (value, Origin::Set));
        self.declare();
        Ok(())
    }

    /// Builds the system anew from the values that were given.
    fn declare(&mut self) {
        self.declared = self.entry.declared(&self.given, self.all_series);
    }

    /// Whether the values go together.
    ///
    /// # Errors
    /// With everything that does not.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let mut problems = self.without_effect();
        let contradictions = self.declared.system.contradictions();
        problems.extend(contradictions.into_iter().map(|contradiction| {
            let key = contradiction.key;
            Problem::new(self.origin(key), key, contradiction.text)
        }));
        problems.extend(self.idle_seed());
        if problems.is_empty() {
            return Ok(());
        }
        Err(ScenarioError::Invalid(Problems::new(&self.file, problems)))
    }

    /// Keys that somebody gave and that have no effect beside the other values. What the file says is
    /// left alone where a setting took its effect away.
    fn without_effect(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for key in self.declared.keys.iter() {
            let Some(needs) = &key.only_with else { continue };
            let origin = self.origin(key.name);
            let overruled = origin != Origin::Set && self.origin(needs.key) == Origin::Set;
            let unmet = self.unmet(needs);
            let (false, false, Some(unmet)) = (origin == Origin::Default, overruled, unmet) else {
                continue;
            };
            let text = format!("has an effect only with {unmet}");
            problems.push(Problem::new(origin, key.name, text));
        }
        problems
    }

    /// What does not hold of a condition, or of those of the key that it is about.
    fn unmet<'a>(&'a self, needs: &'a OnlyWith) -> Option<&'a OnlyWith> {
        if !needs.words.contains(&self.word(needs.key)) {
            return Some(needs);
        }
        self.key(needs.key).and_then(|key| self.unmet(key.only_with.as_ref()?))
    }

    /// A seed that somebody gave although nothing is drawn. What the file says is left alone where a
    /// setting took its effect away.
    fn idle_seed(&self) -> Option<Problem> {
        let idle = self.declared.system.idle_seed()?;
        let origin = self.origin("seed");
        let overruled = idle.keys.iter().any(|key| self.origin(key) == Origin::Set);
        let told = origin == Origin::Set || (origin != Origin::Default && !overruled);
        let text = format!("has no effect, since nothing is drawn; it needs {}", idle.needs);
        told.then(|| Problem::new(origin, "seed", text))
    }

    fn key(&self, name: &str) -> Option<&Key> {
        self.declared.keys.iter().find(|key| key.name == name)
    }

    /// Where the value of a key comes from; the key is one of the model's.
    fn origin(&self, name: &str) -> Origin {
        debug_assert!(self.key(name).is_some(), "the model has no key `{name}`");
        self.given.get(name).map_or(Origin::Default, |(_, origin)| *origin)
    }

    /// The word that a key has, which takes one.
    fn word(&self, name: &str) -> &'static str {
        let key = self.key(name).expect("a model has the keys that its keys depend on");
        match self.value(key) {
            Some(Value::Word(word)) => word,
            value => unreachable!("`{name}` takes a word, not {value:?}"),
        }
    }

    fn value(&self, key: &Key) -> Option<Value> {
        self.given.get(key.name).map(|(value, _)| *value).or(key.default)
    }

    /// The last instant whose events are handled, as far as the scenario sets it.
    fn until(&self) -> SimTime {
        self.declared.until.map_or(SimTime::END, |until| SimTime::START + until)
    }

    /// The name of the model, as the file says it.
    pub fn model(&self) -> &'static str {
        self.entry.about().name
    }

    /// Every key of the model with its value.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.declared.keys.iter().map(|key| Setting {
            key: key.name,
            value: self.value(key).map(|value| value.to_string()),
            origin: self.origin(key.name),
        })
    }

    /// What random numbers follow from.
    pub(crate) fn seed(&self) -> u64 {
        match self.key("seed").and_then(|key| self.value(key)) {
            Some(Value::Count(seed)) => seed,
            value => unreachable!("every model has a seed, not {value:?}"),
        }
    }

    /// What would have to be written so that the seed has an effect, if it has none.
    pub(crate) fn idle_seed_needs(&self) -> Option<&'static str> {
        self.declared.system.idle_seed().map(|idle| idle.needs)
    }

    /// Leaves the first `span` of runs out of what the model itself counts, where it has a key for that
    /// and nobody has set it; what statistics leave out is [`Options::statistics_from`].
    ///
    /// # Errors
    /// If the key takes no such value.
    pub fn leave_out(&mut self, span: Nanos) -> Result<(), ScenarioError> {
        if self.key("warmup").is_some() && self.origin("warmup") == Origin::Default {
            self.set("warmup", &Value::Span(span).to_string())?;
        }
        Ok(())
    }

    /// Runs it, to the end that `options` or the scenario sets, whichever is earlier.
    ///
    /// # Errors
    /// If the values do not go together, or where the kernel refuses.
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        self.check()?;
        let options = options.until(self.until().min(options.until));
        Ok(self.declared.system.run(&options, observer)?)
    }

    /// Makes runs give out all series of the model. Those that its figures are made of come always; the
    /// others cost about as much as the events that they speak of.
    pub fn give_series(&mut self) {
        self.all_series = true;
        self.declare();
    }

    /// The series that a run records, in the order of [`meikyo_sim::Series::index`].
    pub fn series_names(&self) -> Vec<String> {
        self.declared.system.series_names().into_iter().map(str::to_owned).collect()
    }

    /// What a value of a series is told of, by the LP that gave it out: the LP, or its group where the
    /// model sums up over groups.
    pub fn series_source(&self, lp: LpId) -> String {
        self.declared.system.series_source(lp)
    }

    /// What an LP is called.
    pub fn lp_name(&self, lp: LpId) -> String {
        self.declared.system.lp_name(lp)
    }
}
