//! What a system to simulate is: the trait of models that a scenario file can name, and their keys.
//!
//! A model is a struct of typed values. [`ScenarioModel::declare`] says once, for each of them, which
//! key it has in a file, what is allowed, what holds unless somebody writes it, and what it is for;
//! what is read from the file comes back as a value of the right type. The parser, `--set`, the
//! defaults, messages about mistakes with their places, and the reference of all keys follow from that.
//!
//! A new model is a file that implements the trait, and a line in the table of
//! [`scenario`](crate::scenario). `chord` is written that way.

mod choice;
mod key;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use meikyo_places::Origin;
use meikyo_sim::{LpId, Observer, Options, RunError};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use crate::report::Report;

pub(crate) use choice::choice;
pub use choice::{Choice, Chosen};
pub use key::{Key, OnlyWith};
pub use value::{Expected, Value};

/// A kind of system that a scenario file can describe.
pub trait ScenarioModel: fmt::Debug + Send + Sync {
    /// What the model is called, and when its runs end.
    fn about() -> About
    where
        Self: Sized;

    /// Declares every key of the model, in the order in which they are told, and builds the system
    /// from their values.
    fn declare(parameters: &mut Parameters<'_>) -> Self
    where
        Self: Sized;

    /// Values that are allowed each by itself and do not go together.
    fn contradictions(&self) -> Vec<Contradiction> {
        Vec::new()
    }

    /// Why the seed has no effect, if it has none: nothing is drawn then.
    fn idle_seed(&self) -> Option<IdleSeed> {
        None
    }

    /// The series that a run records, in the order of [`meikyo_sim::Series::index`].
    fn series_names(&self) -> Vec<&'static str>;

    /// What a value of a series is told of, by the LP that gave it out: the LP, or its group where the
    /// model sums up over groups.
    fn series_source(&self, lp: LpId) -> String {
        self.lp_name(lp)
    }

    /// What an LP is called.
    fn lp_name(&self, lp: LpId) -> String;

    /// Runs the system to the end that `options` sets.
    ///
    /// # Errors
    /// Where the kernel refuses; see [`RunError`].
    fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError>;
}

/// A model in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// What a file calls it: `model = "phold"`.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub doc: &'static str,
    /// When a run ends unless the file says it; none: when nothing is left to happen.
    pub until: Option<Nanos>,
}

/// A value that does not go together with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The key to tell it of.
    pub key: &'static str,
    /// What is wrong, and what is allowed.
    pub text: String,
}

/// Why nothing is drawn in a run, so that a seed means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleSeed {
    /// What would have to be written so that something is drawn.
    pub needs: &'static str,
    /// The keys that decide it.
    pub keys: &'static [&'static str],
}

/// The values that somebody gave, by key, with where they come from.
pub(crate) type Given = BTreeMap<&'static str, (Value, Origin)>;

/// Where a model declares its keys and gets their values.
#[derive(Debug)]
pub struct Parameters<'a> {
    given: &'a Given,
    keys: Vec<Key>,
    /// The condition of the key that is declared next.
    only_with: Option<OnlyWith>,
    seed: u64,
    until: Option<Nanos>,
    all_series: bool,
}

impl<'a> Parameters<'a> {
    /// Begins without keys, for what is not run by the kernel.
    pub(crate) fn bare(given: &'a Given) -> Self {
        Self { given, keys: Vec::new(), only_with: None, seed: 0, until: None, all_series: false }
    }

    /// Begins with the keys that every model has.
    pub(crate) fn new(about: About, given: &'a Given, all_series: bool) -> Self {
        let mut parameters = Self { all_series, ..Self::bare(given) };
        let seeds = 0..=u64::MAX >> 1;
        parameters.seed = parameters.count("seed", seeds, 1, "Seed of the random numbers.");
        let doc = match about.until {
            Some(_) => "Last instant of simulated time, inclusive.",
            None => {
                "Last instant of simulated time, inclusive; by default until no events are left."
            }
        };
        let default = about.until.map(Value::Span);
        let until = parameters.value("until", Expected::PositiveSpan, default, doc);
        parameters.until = until.map(span);
        parameters
    }

    /// The keys that were declared, and the end of a run where there is one.
    pub(crate) fn finish(self) -> (Vec<Key>, Option<Nanos>) {
        (self.keys, self.until)
    }

    /// What random numbers follow from; every model has a key `seed`.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether the model shall give out series that nothing but a recording needs. Those that its
    /// figures are made of come always; the others cost about as much as the events they speak of.
    pub fn all_series(&self) -> bool {
        self.all_series
    }

    /// Declares that the next key has an effect only if `chosen` is one of `values`.
    pub fn only_with<C: Choice>(&mut self, chosen: Chosen<C>, values: &[C]) -> &mut Self {
        let words = values.iter().map(|value| value.word()).collect();
        self.only_with = Some(OnlyWith { key: chosen.key, words });
        self
    }

    /// A whole number in a range.
    pub fn count<T: Copy + Into<u64> + TryFrom<u64>>(
        &mut self,
        name: &'static str,
        allowed: RangeInclusive<T>,
        default: T,
        doc: &'static str,
    ) -> T {
        let (least, greatest): (u64, u64) = ((*allowed.start()).into(), (*allowed.end()).into());
        let expected = Expected::Count { least, greatest };
        count(name, self.given_or(name, expected, Value::Count(default.into()), doc))
    }

    /// A whole number in a range, if it is written.
    pub fn count_if_written<T: Copy + Into<u64> + TryFrom<u64>>(
        &mut self,
        name: &'static str,
        allowed: RangeInclusive<T>,
        doc: &'static str,
    ) -> Option<T> {
        let (least, greatest): (u64, u64) = ((*allowed.start()).into(), (*allowed.end()).into());
        let value = self.value(name, Expected::Count { least, greatest }, None, doc)?;
        Some(count(name, value))
    }

    /// A number from 0 to 1.
    pub fn share(&mut self, name: &'static str, default: f64, doc: &'static str) -> f64 {
        match self.given_or(name, Expected::Share, Value::Share(default), doc) {
            Value::Share(share) => share,
            other => unreachable!("`{name}` is a share, not {other:?}"),
        }
    }

    /// A span of time, which may be nothing.
    pub fn span(&mut self, name: &'static str, default: Nanos, doc: &'static str) -> Nanos {
        span(self.given_or(name, Expected::Span, Value::Span(default), doc))
    }

    /// A span of time that is longer than nothing.
    pub fn positive_span(
        &mut self,
        name: &'static str,
        default: Nanos,
        doc: &'static str,
    ) -> Nanos {
        span(self.given_or(name, Expected::PositiveSpan, Value::Span(default), doc))
    }

    /// A span of time, if it is written.
    pub fn span_if_written(&mut self, name: &'static str, doc: &'static str) -> Option<Nanos> {
        self.value(name, Expected::Span, None, doc).map(span)
    }

    /// An amount of data, more than nothing.
    pub fn size(&mut self, name: &'static str, default: Bytes, doc: &'static str) -> Bytes {
        match self.given_or(name, Expected::Size, Value::Size(default), doc) {
            Value::Size(size) => size,
            other => unreachable!("`{name}` is a size, not {other:?}"),
        }
    }

    /// An amount of data, more than nothing, if it is written.
    pub fn size_if_written(&mut self, name: &'static str, doc: &'static str) -> Option<Bytes> {
        match self.value(name, Expected::Size, None, doc)? {
            Value::Size(size) => Some(size),
            other => unreachable!("`{name}` is a size, not {other:?}"),
        }
    }

    /// A data rate, more than nothing.
    pub fn rate(
        &mut self,
        name: &'static str,
        default: BitsPerSecond,
        doc: &'static str,
    ) -> BitsPerSecond {
        match self.given_or(name, Expected::Rate, Value::Rate(default), doc) {
            Value::Rate(rate) => rate,
            other => unreachable!("`{name}` is a rate, not {other:?}"),
        }
    }

    /// One of a few alternatives, each with its word.
    pub fn choice<C: Choice>(
        &mut self,
        name: &'static str,
        default: C,
        doc: &'static str,
    ) -> Chosen<C> {
        let expected = Expected::Word(C::WORDS);
        let Value::Word(word) = self.given_or(name, expected, Value::Word(default.word()), doc)
        else {
            unreachable!("`{name}` is a word")
        };
        Chosen { key: name, value: variant(word) }
    }

    fn given_or(
        &mut self,
        name: &'static str,
        expected: Expected,
        default: Value,
        doc: &'static str,
    ) -> Value {
        self.value(name, expected, Some(default), doc).expect("it has a default")
    }

    /// Declares a key and gives its value: given values were read as what their key expects.
    fn value(
        &mut self,
        name: &'static str,
        expected: Expected,
        default: Option<Value>,
        doc: &'static str,
    ) -> Option<Value> {
        assert!(self.keys.iter().all(|key| key.name != name), "`{name}` is declared twice");
        let only_with = self.only_with.take();
        self.keys.push(Key { name, expected, default, doc, only_with });
        self.given.get(name).map(|(value, _)| *value).or(default)
    }
}

fn count<T: TryFrom<u64>>(name: &str, value: Value) -> T {
    match value {
        Value::Count(count) => T::try_from(count)
            .unwrap_or_else(|_| unreachable!("`{name}` is in a range of its type")),
        other => unreachable!("`{name}` is a count, not {other:?}"),
    }
}

fn span(value: Value) -> Nanos {
    match value {
        Value::Span(span) => span,
        other => unreachable!("a span was expected, not {other:?}"),
    }
}

/// The variant that a word stands for; words were checked against those of their key.
fn variant<C: Choice>(word: &str) -> C {
    let found = C::ALL.iter().find(|value| value.word() == word);
    *found.expect("every word of a choice has its variant")
}
