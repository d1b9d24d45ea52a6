//! What a model declared, in the form that is asked for every event.

use meikyo_units::Nanos;

use crate::fault::Problem;
use crate::key::LpId;

/// No link.
pub(crate) const NO_LINK: u64 = u64::MAX;

/// A statistic as declared.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) group: usize,
}

/// Groups, links and limits of a model.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) seed: u64,
    /// The first LP of each group, and the number of all LPs.
    pub(crate) starts: Vec<u32>,
    pub(crate) names: Vec<String>,
    /// The least delay from group to group in ns, row by row.
    pub(crate) least: Vec<u64>,
    pub(crate) statistics: Vec<Declared>,
    pub(crate) series: Vec<String>,
    /// The longest chain of events without delay.
    pub(crate) steps_max: u32,
    pub(crate) traced: bool,
}

impl Rules {
    #[inline]
    pub(crate) fn lps(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    pub(crate) fn groups(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn group_name(&self, group: usize) -> &str {
        &self.names[group]
    }

    /// The group of an LP that exists. Models have few groups: the bounds are read one by one.
    #[inline]
    pub(crate) fn group_of(&self, lp: LpId) -> usize {
        if self.names.len() == 1 {
            return 0;
        }
        let inner = &self.starts[1..self.names.len()];
        if inner.len() <= 8 {
            inner.iter().map(|start| usize::from(lp.get() >= *start)).sum()
        } else {
            inner.partition_point(|start| lp.get() >= *start)
        }
    }

    /// The least delay from one group to another in ns; [`NO_LINK`] where none is declared.
    #[inline]
    pub(crate) fn least(&self, from: usize, to: usize) -> u64 {
        self.least[from * self.names.len() + to]
    }

    /// Whether `group` may send to `destination`, another LP, after `delay`.
    #[inline]
    pub(crate) fn permits(
        &self,
        group: usize,
        destination: LpId,
        delay: Nanos,
    ) -> Result<(), Box<Problem>> {
        if destination.get() >= self.lps() {
            return Err(Box::new(Problem::UnknownLp { destination, count: self.lps() }));
        }
        let to = self.group_of(destination);
        let least = self.least(group, to);
        if delay.get() >= least && least != NO_LINK {
            return Ok(());
        }
        let (from, to) = (self.names[group].clone(), self.names[to].clone());
        Err(Box::new(if least == NO_LINK {
            Problem::NoLink { destination, from, to }
        } else {
            Problem::TooSoon { destination, delay, least: Nanos::new(least), from, to }
        }))
    }
}
