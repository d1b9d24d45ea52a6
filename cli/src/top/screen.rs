//! What a person sees and does: the pure core of `meikyo top`.
//!
//! Keys, clicks and steps of the recording go in; what is left to the shell comes out as
//! [`Wish`]es. It reads no clock: the shell says what time it is.

mod keys;
mod mouse;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use meikyo_live::Step;
use meikyo_units::{Nanos, WallTime};
use ratatui::layout::Rect;

use super::metric::Metric;
use super::model::Model;
use super::order::{Column, Order, ordered};

pub(super) use keys::HELP;

/// Spans between two repaints, from which `+` and `-` choose.
const EVERY: [Nanos; 8] = [
    Nanos::from_millis(50),
    Nanos::from_millis(100),
    Nanos::from_millis(200),
    Nanos::from_millis(500),
    Nanos::from_millis(1_000),
    Nanos::from_millis(2_000),
    Nanos::from_millis(5_000),
    Nanos::from_millis(10_000),
];
/// The slowest and the fastest replay, as powers of 2.
const SPEED_RANGE: std::ops::RangeInclusive<i32> = -4..=6;

/// What the shell is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Quit,
    /// Stop as a job of the terminal's shell does, and go on when it says so.
    Suspend,
    /// Show the other clusters again.
    Back,
    /// Read the past anew around an instant.
    Seek(WallTime),
    /// Show what is new.
    GoLive,
}

/// A view and what feeds it: a recording of this machine, or a server.
pub(super) trait Fed {
    /// What is seen.
    fn screen(&mut self) -> &mut Screen;

    /// The clock that times in the view are by, when it is `here` on this machine.
    fn clock(&self, here: WallTime) -> WallTime {
        here
    }

    /// Takes what came; called before each repaint, with this machine's clock.
    fn tick(&mut self, clock: WallTime);

    /// Does what the view wishes and can be done here.
    fn carry_out(&mut self, wish: Wish);
}

/// Where the view is in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// At what is new; when paused the view stands still, the recording goes on.
    Live { paused_at: Option<WallTime> },
    /// At a past instant that moves while it is played.
    Past { at: WallTime, playing: bool },
}

/// What lies over the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Overlay {
    #[default]
    None,
    Help,
    /// The list of metrics, and which of them is pointed at.
    Menu(usize),
    /// The filter is being typed.
    Filter,
}

/// The parts of the view that can be hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) grid: bool,
    pub(super) table: bool,
    pub(super) charts: bool,
    pub(super) events: bool,
}

/// Where things were drawn, so that a click finds them.
#[derive(Debug, Clone, Default)]
pub(super) struct Targets {
    /// Cells and rows: the devices that they stand for; the first is selected by a click.
    pub(super) devices: Vec<(Rect, usize)>,
    pub(super) columns: Vec<(Rect, Column)>,
    /// Rows of the table that fit.
    pub(super) table_rows: usize,
}

/// The whole state.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) model: Model,
    /// Name of the recording.
    pub(super) name: String,
    pub(super) running: bool,
    /// Whether it is one of several clusters, to which Esc goes back.
    pub(super) is_of_several: bool,
    /// Made under virtual time: the clock says nothing about it.
    pub(super) simulated: bool,
    pub(super) metric: Metric,
    /// The end of the ramp, and of which metric it is.
    pub(super) scale: Option<(Metric, f64)>,
    pub(super) order: Order,
    /// The devices of the table, from top to bottom.
    pub(super) rows: Vec<usize>,
    /// The first row that is drawn.
    pub(super) scroll: usize,
    pub(super) selected: Option<usize>,
    pub(super) detail: bool,
    pub(super) overlay: Overlay,
    pub(super) parts: Parts,
    pub(super) place: Place,
    /// Power of 2: recorded seconds a second.
    pub(super) speed: i32,
    pub(super) every: Nanos,
    /// The first and the last instant of the recording.
    pub(super) times: Option<(WallTime, WallTime)>,
    /// Whether the past is being read.
    pub(super) reading: bool,
    /// Whether anything is alerted of.
    pub(super) rules_set: bool,
    /// How far the view is behind the end of the log, where that can be noticed.
    pub(super) behind: Option<Nanos>,
    /// What could not be done.
    pub(super) trouble: Option<String>,
    /// Metrics whose values have had their age beside them: their columns stay as wide as that needs.
    pub(super) aged: BTreeSet<Metric>,
    pub(super) targets: Targets,
}

/// What a view begins with.
#[derive(Debug, Clone)]
pub(super) struct Begin {
    pub(super) name: String,
    pub(super) running: bool,
    pub(super) simulated: bool,
    pub(super) metric: Metric,
    pub(super) every: Nanos,
    pub(super) times: Option<(WallTime, WallTime)>,
}

impl Screen {
    /// A view of some devices.
    pub(super) fn new(begin: Begin, model: Model) -> Self {
        let Begin { name, running, simulated, metric, every, times } = begin;
        let end = times.map_or_else(WallTime::default, |(_, to)| to);
        let place = if running {
            Place::Live { paused_at: None }
        } else {
            Place::Past { at: end, playing: false }
        };
        let order =
            Order { column: Column::Name, reversed: false, grouped: false, filter: String::new() };
        let parts = Parts { grid: true, table: true, charts: true, events: true };
        let mut screen = Self {
            model,
            name,
            running,
            is_of_several: false,
            simulated,
            metric,
            scale: None,
            order,
            rows: Vec::new(),
            scroll: 0,
            selected: None,
            detail: false,
            overlay: Overlay::None,
            parts,
            place,
            speed: 0,
            every,
            times,
            reading: false,
            rules_set: true,
            behind: None,
            trouble: None,
            aged: BTreeSet::new(),
            targets: Targets::default(),
        };
        screen.arrange(end);
        screen
    }

    /// Whether what is new is to be shown as it comes.
    pub(super) fn follows(&self) -> bool {
        self.place == Place::Live { paused_at: None }
    }

    /// The instant that is shown when it is `clock`.
    pub(super) fn instant(&self, clock: WallTime) -> WallTime {
        match self.place {
            Place::Live { paused_at: Some(at) } => at,
            Place::Live { paused_at: None } if self.simulated || self.behind.is_some() => {
                self.model.now().unwrap_or(clock)
            }
            Place::Live { paused_at: None } => clock,
            Place::Past { at, .. } => at,
        }
    }

    /// Takes steps of the recording.
    pub(super) fn apply<'a>(&mut self, steps: impl IntoIterator<Item = &'a Step>) {
        for step in steps {
            self.model.apply(step);
            if self.running
                && self.follows()
                && let (Some((_, to)), Some(newest)) = (&mut self.times, self.model.newest)
            {
                *to = (*to).max(WallTime::from_nanos(newest));
            }
        }
    }

    /// Moves the past on by what passed on the clock, not beyond `read`, up to where it is read.
    pub(super) fn play(&mut self, passed: Nanos, read: Option<WallTime>) {
        let speed = self.speed;
        let Place::Past { at, playing } = &mut self.place else { return };
        let Some((_, end)) = self.times.filter(|_| *playing) else { return };
        let passed = if speed >= 0 {
            Nanos::new(passed.get() << speed.unsigned_abs())
        } else {
            Nanos::new(passed.get() >> speed.unsigned_abs())
        };
        *at = (*at + passed).min(end).min(read.unwrap_or(*at).max(*at));
        if *at == end {
            *playing = false;
        }
    }

    /// Orders the table anew, and keeps the selection and what is seen around it.
    pub(super) fn arrange(&mut self, now: WallTime) {
        self.rows = ordered(&self.model, &self.order, now.as_nanos());
        if self.selected.is_none_or(|selected| !self.rows.contains(&selected)) {
            self.selected = self.rows.first().copied();
        }
        self.keep_in_sight();
    }

    /// The row of the selected device.
    pub(super) fn selected_row(&self) -> Option<usize> {
        let selected = self.selected?;
        self.rows.iter().position(|device| *device == selected)
    }

    fn select_row(&mut self, row: usize) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = self.rows.get(row.min(last)).copied();
        self.keep_in_sight();
    }

    /// Scrolls as little as shows the selected row.
    pub(super) fn keep_in_sight(&mut self) {
        let (Some(row), fit) = (self.selected_row(), self.targets.table_rows.max(1)) else {
            self.scroll = 0;
            return;
        };
        let most = self.rows.len().saturating_sub(fit);
        self.scroll = self.scroll.clamp(row.saturating_sub(fit - 1), row).min(most);
    }
}
