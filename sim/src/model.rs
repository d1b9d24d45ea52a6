//! Models as a modeller declares them: LPs in groups, and the links between them.
//!
//! Nothing here runs; mistakes in the declaration are kept and told when a run begins.

use meikyo_units::Nanos;

use crate::context::Lp;
use crate::fault::RunError;
use crate::key::LpId;
use crate::links::Link;
use crate::options::Options;
use crate::rules::{Declarations, Declared, Rules};
use crate::statistics::{Series, Statistic};

/// A group of LPs with consecutive numbers.
///
/// It belongs to the model that declared it. A model that is handed the group of another one takes it
/// for its own if it has a group like it, and otherwise ends its run with
/// [`RunError::ForeignGroup`].
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

/// A system to simulate: groups of LPs, the links between them, and what they count.
#[derive(Clone, Debug)]
pub struct Model<L> {
    /// The LPs of each group, none before it is filled.
    lps: Vec<Vec<L>>,
    declared: Declarations,
    /// Why no run can begin: the first group whose LPs found no memory, or that belongs elsewhere.
    refused: Option<RunError>,
}

impl<L: Lp> Model<L> {
    /// A model without LPs whose random numbers follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            lps: Vec::new(),
            declared: Declarations {
                seed,
                starts: vec![0],
                names: Vec::new(),
                group_links: Vec::new(),
                lp_links: Vec::new(),
                statistics: Vec::new(),
                series: Vec::new(),
                weights: Vec::new(),
            },
            refused: None,
        }
    }

    /// Declares a group of `count` LPs; [`Model::fill`] makes them.
    ///
    /// # Panics
    /// If the model then has 2^32 LPs or more.
    pub fn group(&mut self, name: &str, count: u32) -> Group {
        let first = self.count();
        let end = first.checked_add(count).expect("a model has fewer than 2^32 LPs");
        let index = self.declared.names.len();
        self.declared.names.push(name.to_owned());
        self.declared.starts.push(end);
        self.declared.weights.push(None);
        self.lps.push(Vec::new());
        Group { index, first, count }
    }

    /// Declares several groups at once, so that the numbers of all LPs are known before one of them is
    /// made:
    ///
    /// ```
    /// # use meikyo_sim::prelude::*;
    /// # #[derive(Clone, Debug, PartialEq, State)]
    /// # struct Host { #[state(fixed)] peer: LpId }
    /// # impl Lp for Host {
    /// #     type Message = ();
    /// #     fn handle(&mut self, _: (), _: &mut impl Context<()>) {}
    /// # }
    /// let mut model: Model<Host> = Model::new(1);
    /// let [clients, servers] = model.groups([("clients", 8), ("servers", 2)]);
    /// model.fill(clients, |me| Host { peer: servers.lp(me.get() % servers.len()) });
    /// model.fill(servers, |_| Host { peer: clients.lp(0) });
    /// ```
    ///
    /// # Panics
    /// If the model then has 2^32 LPs or more.
    pub fn groups<const N: usize>(&mut self, groups: [(&str, u32); N]) -> [Group; N] {
        groups.map(|(name, count)| self.group(name, count))
    }

    /// Declares how much work each LP of `group` is, compared with the others of the model, which are 1
    /// unless declared: parallel schedulers give threads about as much work each. It changes no result.
    pub fn weight(&mut self, group: Group, weight: impl FnMut(LpId) -> u32) {
        if !self.owns(group) {
            return;
        }
        let sums = group.lps().map(weight).scan(0, |sum, weight| {
            *sum += u64::from(weight);
            Some(*sum)
        });
        self.declared.weights[group.index] = Some(std::iter::once(0).chain(sums).collect());
    }

    /// Makes the LPs of `group`, in the order of their numbers. Where there is no memory for them none is
    /// made, and a run ends with [`RunError::TooLarge`].
    pub fn fill(&mut self, group: Group, make: impl FnMut(LpId) -> L) {
        if !self.owns(group) {
            return;
        }
        let mut lps = Vec::new();
        if lps.try_reserve_exact(group.count as usize).is_err() {
            let name = &self.declared.names[group.index];
            self.refused.get_or_insert_with(|| RunError::TooLarge {
                group: name.clone(),
                lps: group.count,
                bytes: size_of::<L>(),
            });
            return;
        }
        lps.extend(group.lps().map(make));
        self.lps[group.index] = lps;
    }

    /// Declares that the LPs of `from` may send to those of `to`, `least` or more ahead. A second
    /// declaration for the same groups permits the smaller of the two delays.
    pub fn link(&mut self, from: Group, to: Group, least: Nanos) {
        if self.owns(from) && self.owns(to) {
            self.declared.group_links.push(Link::groups(from.index, to.index, least));
        }
    }

    /// Declares that the LP `from` may send to the LP `to`, `least` or more ahead: a cable between two
    /// switches of one group, say. A scheduler that knows which LPs reach which can let those that do
    /// not run further alone; links of LPs and of their groups permit what either of them does.
    ///
    /// An LP that the model does not have when it is run ends the run with [`RunError::UnknownLp`].
    pub fn link_lps(&mut self, from: LpId, to: LpId, least: Nanos) {
        self.declared.lp_links.push(Link::lps(from, to, least));
    }

    /// How many LPs are declared.
    fn count(&self) -> u32 {
        *self.declared.starts.last().expect("the first group starts at LP 0")
    }

    /// Whether the model has declared `group`, or one like it; notes that it has not.
    fn owns(&mut self, group: Group) -> bool {
        let starts = &self.declared.starts;
        let bounds = starts.get(group.index).zip(starts.get(group.index + 1));
        let owns = bounds == Some((&group.first, &(group.first + group.count)));
        if !owns {
            let Group { first, count, .. } = group;
            self.refused.get_or_insert(RunError::ForeignGroup { first: LpId(first), count });
        }
        owns
    }

    /// Declares a statistic that every LP of `group` may tally.
    ///
    /// # Panics
    /// If the model then has more than 65,536 statistics.
    pub fn statistic(&mut self, group: Group, name: &str) -> Statistic {
        let index = u16::try_from(self.declared.statistics.len()).expect("few statistics");
        // With the group of another model no run begins, so that this statistic is never looked at.
        let group = if self.owns(group) { group.index } else { 0 };
        self.declared.statistics.push(Declared { name: name.to_owned(), group });
        Statistic(index)
    }

    /// Declares a series over simulated time.
    ///
    /// # Panics
    /// If the model then has more than 65,536 series.
    pub fn series(&mut self, name: &str) -> Series {
        let index = u16::try_from(self.declared.series.len()).expect("few series");
        self.declared.series.push(name.to_owned());
        Series(index)
    }

    /// The rules and the LPs in the order of their numbers.
    pub(crate) fn into_parts(self, options: &Options) -> Result<(Rules, Vec<L>), RunError> {
        let count = self.count();
        let Self { declared, mut lps, refused } = self;
        if let Some(error) = refused {
            return Err(error);
        }
        let known = |lp: &u32| *lp < count;
        let ends = declared.lp_links.iter().flat_map(|link| [link.from, link.to]);
        if let Some(unknown) = ends.filter(|lp| !known(lp)).min() {
            return Err(RunError::UnknownLp { lp: LpId(unknown), count });
        }
        let sizes = declared.starts.windows(2).map(|bounds| (bounds[1] - bounds[0]) as usize);
        let filled = lps.iter().zip(sizes).position(|(made, size)| made.len() != size);
        if let Some(group) = filled {
            return Err(RunError::Unfilled { group: declared.names[group].clone() });
        }
        if count == 0 {
            return Err(RunError::Empty);
        }
        let only = if let [only] = lps.as_mut_slice() { Some(std::mem::take(only)) } else { None };
        let rules = Rules::new(declared, options);
        Ok((rules, only.unwrap_or_else(|| lps.into_iter().flatten().collect())))
    }
}
