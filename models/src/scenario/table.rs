//! The models that a file can name: the one list of them.

use std::sync::Arc;

use meikyo_units::Nanos;

use crate::chord::Chord;
use crate::metadata_service::Metadata;
use crate::parameters::{About, Given, Key, Parameters, ScenarioModel};
use crate::phold::Phold;
use crate::queueing::{Closed, Open};
use crate::ring::Ring;

/// Every model; a new one is a line here.
pub(crate) const MODELS: &[Entry] = &[
    Entry::of::<Metadata>(),
    Entry::of::<Phold>(),
    Entry::of::<Open>(),
    Entry::of::<Closed>(),
    Entry::of::<Ring>(),
    Entry::of::<Chord>(),
];

/// A model, as long as nobody has said what its values are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    about: fn() -> About,
    declare: fn(&mut Parameters<'_>) -> Arc<dyn ScenarioModel>,
}

/// What the values of a model describe.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// Every key, in the order in which they are told.
    pub(crate) keys: Arc<[Key]>,
    /// When runs end, if the values say it.
    pub(crate) until: Option<Nanos>,
    /// The system that can be run.
    pub(crate) system: Arc<dyn ScenarioModel>,
}

impl Entry {
    const fn of<M: ScenarioModel + 'static>() -> Self {
        Self { about: M::about, declare: |parameters| Arc::new(M::declare(parameters)) }
    }

    /// The model of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        MODELS.iter().copied().find(|entry| entry.about().name == name)
    }

    pub(crate) fn about(self) -> About {
        (self.about)()
    }

    /// The keys of the model and the system that the given values describe; what is not given has its
    /// default.
    pub(crate) fn declared(self, given: &Given, all_series: bool) -> Declared {
        let mut parameters = Parameters::new(self.about(), given, all_series);
        let system = (self.declare)(&mut parameters);
        let (keys, until) = parameters.finish();
        Declared { keys: keys.into(), until, system }
    }
}
