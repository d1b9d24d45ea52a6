//! Models: LPs in groups, and the links between the groups.

use meikyo_units::Nanos;

use crate::context::Lp;
use crate::fault::RunError;
use crate::key::LpId;
use crate::rules::{Declared, NO_LINK, Rules};
use crate::statistics::{Series, Statistic};

/// A group of LPs with consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    index: usize,
    first: u32,
    count: u32,
}

impl Group {
    /// How many LPs the group has.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether the group has no LPs.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The LP at `place` in the group, counted from 0.
    ///
    /// # Panics
    /// If the group has no such place.
    pub fn lp(&self, place: u32) -> LpId {
        assert!(place < self.count, "the group has {} LPs, and not one at {place}", self.count);
        LpId(self.first + place)
    }

    /// The numbers of the group's LPs.
    pub fn lps(&self) -> impl Iterator<Item = LpId> + use<> {
        (self.first..self.first + self.count).map(LpId)
    }
}

/// A system to simulate.
#[derive(Clone, Debug)]
pub struct Model<L> {
    /// The LPs of each group, none before it is filled.
    lps: Vec<Vec<L>>,
    rules: Rules,
    /// The first group whose LPs found no memory.
    too_large: Option<usize>,
}

/// The longest chain of events without delay, unless the run's options say otherwise.
pub(crate) const STEPS_MAX: u32 = 1_000_000;

impl<L: Lp> Model<L> {
    /// A model without LPs whose random numbers follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            lps: Vec::new(),
            rules: Rules {
                seed,
                starts: vec![0],
                names: Vec::new(),
                least: Vec::new(),
                statistics: Vec::new(),
                series: Vec::new(),
                steps_max: STEPS_MAX,
                traced: false,
            },
            too_large: None,
        }
    }

    /// Declares a group of `count` LPs; [`Model::fill`] makes them.
    ///
    /// # Panics
    /// If the model then has 2^32 LPs or more.
    pub fn group(&mut self, name: &str, count: u32) -> Group {
        let first = self.rules.lps();
        let end = first.checked_add(count).expect("a model has fewer than 2^32 LPs");
        let index = self.rules.groups();
        let mut least = vec![NO_LINK; (index + 1) * (index + 1)];
        for (from, row) in self.rules.least.chunks(index.max(1)).enumerate() {
            least[from * (index + 1)..][..row.len()].copy_from_slice(row);
        }
        self.rules.least = least;
        self.rules.names.push(name.to_owned());
        self.rules.starts.push(end);
        self.lps.push(Vec::new());
        Group { index, first, count }
    }

    /// Makes the LPs of `group`, in the order of their numbers. Where there is no memory for them none is
    /// made, and a run ends with [`RunError::TooLarge`].
    pub fn fill(&mut self, group: Group, make: impl FnMut(LpId) -> L) {
        let mut lps = Vec::new();
        if lps.try_reserve_exact(group.count as usize).is_err() {
            self.too_large.get_or_insert(group.index);
            return;
        }
        lps.extend(group.lps().map(make));
        self.lps[group.index] = lps;
    }

    /// Declares that the LPs of `from` may send to those of `to`, `least` or more ahead. A second
    /// declaration for the same groups permits the smaller of the two delays.
    pub fn link(&mut self, from: Group, to: Group, least: Nanos) {
        let at = from.index * self.rules.groups() + to.index;
        self.rules.least[at] = self.rules.least[at].min(least.get());
    }

    /// Declares a statistic that every LP of `group` may tally.
    ///
    /// # Panics
    /// If the model then has more than 65,536 statistics.
    pub fn statistic(&mut self, group: Group, name: &str) -> Statistic {
        let index = u16::try_from(self.rules.statistics.len()).expect("few statistics");
        self.rules.statistics.push(Declared { name: name.to_owned(), group: group.index });
        Statistic(index)
    }

    /// Declares a series over simulated time.
    ///
    /// # Panics
    /// If the model then has more than 65,536 series.
    pub fn series(&mut self, name: &str) -> Series {
        let index = u16::try_from(self.rules.series.len()).expect("few series");
        self.rules.series.push(name.to_owned());
        Series(index)
    }

    /// The rules and the LPs in the order of their numbers.
    pub(crate) fn into_parts(self) -> Result<(Rules, Vec<L>), RunError> {
        let Self { rules, mut lps, too_large } = self;
        if let Some(group) = too_large {
            return Err(RunError::TooLarge {
                group: rules.group_name(group).to_owned(),
                lps: rules.starts[group + 1] - rules.starts[group],
                bytes: size_of::<L>(),
            });
        }
        for (group, made) in lps.iter().enumerate() {
            if made.len() != (rules.starts[group + 1] - rules.starts[group]) as usize {
                return Err(RunError::Unfilled { group: rules.group_name(group).to_owned() });
            }
        }
        if rules.lps() == 0 {
            return Err(RunError::Empty);
        }
        let only = if let [only] = lps.as_mut_slice() { Some(std::mem::take(only)) } else { None };
        Ok((rules, only.unwrap_or_else(|| lps.into_iter().flatten().collect())))
    }
}
