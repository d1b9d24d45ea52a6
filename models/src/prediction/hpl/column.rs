//! One process column as an actor: what it does for panel after panel.

use std::collections::VecDeque;
use std::rc::Rc;

use meikyo_units::{Bytes, Nanos};

use super::Hpl;
use super::distribution::{Dealt, narrow, wide};
use super::swap::{Order, Part, draw_pivots, equilibrate, logarithmic_order, roll, spread, sums};
use crate::completions::count_f64;
use crate::prediction::placement::Placement;
use crate::prediction::program::{Actor, Heard, Message, Step, Stream};

pub(super) const FACTORISE: &str = "factorise panels";
pub(super) const UPDATE: &str = "update the matrix";
pub(super) const SPREAD: &str = "row swap: spread";
pub(super) const ROLL: &str = "row swap: roll";
pub(super) const RECEIVE: &str = "wait for a panel";
pub(super) const SEND: &str = "hand a panel on";

/// The actor of one process column.
#[derive(Debug)]
pub struct Column<'a> {
    hpl: &'a Hpl,
    placement: &'a Placement,
    me: usize,
    rows: Dealt,
    columns: Dealt,
    /// What pivots take to be exchanged over one step, beside their latency.
    pivot_step: Nanos,
    /// The panel that is begun next.
    next_panel: u64,
    /// Whether the panel that is under way has been handed on, as far as it is this column's part.
    handed_on: bool,
    tasks: VecDeque<Task>,
    swaps: Rc<[Swap]>,
}

/// The row swap of one panel, which is the same in all columns but for how wide they are.
#[derive(Debug)]
pub(super) struct Swap {
    order: Order,
    /// What makes the pieces of all processes equal.
    even: Vec<Part>,
}

impl Swap {
    /// Those of all panels; none where no rows are swapped.
    pub(super) fn all(hpl: &Hpl) -> Rc<[Self]> {
        let rows = Dealt { order: hpl.order, block: hpl.block, processes: wide(hpl.rows) };
        let panels = if hpl.rows > 1 { rows.blocks() } else { 0 };
        let swap = |panel: u64| {
            let rows_left: Vec<u64> =
                (0..rows.processes).map(|process| rows.rows_from(panel, process)).collect();
            let pivots = draw_pivots(hpl.seed, panel, rows.size(panel), &rows_left);
            let order = logarithmic_order(narrow(panel % rows.processes), &pivots);
            let even = equilibrate(&mut sums(&order.pivots));
            Self { order, even }
        };
        (0..panels).map(swap).collect()
    }
}

/// What is left of an iteration.
#[derive(Debug)]
enum Task {
    Do(Step),
    /// Takes a panel and hands it on, if it has announced itself.
    Probe {
        panel: u64,
    },
    /// Waits for a panel and hands it on, unless that is done.
    Take {
        panel: u64,
    },
    /// Updates columns by a panel, a block at a time for as long as `awaited` has to be probed for.
    Update {
        by: u64,
        columns: u64,
        awaited: u64,
    },
}

impl<'a> Column<'a> {
    pub(super) fn new(
        hpl: &'a Hpl,
        placement: &'a Placement,
        me: usize,
        bytes_per_s: f64,
        swaps: Rc<[Swap]>,
    ) -> Self {
        let dealt =
            |order, processes| Dealt { order, block: hpl.block, processes: wide(processes) };
        // Two rows of the panel, and four numbers about the pivot.
        let pivot_bytes = count_f64(8 * (2 * hpl.block + 4));
        Self {
            hpl,
            placement,
            me,
            rows: dealt(hpl.order, hpl.rows),
            // The right-hand side is one more column.
            columns: dealt(hpl.order + 1, hpl.columns),
            pivot_step: Nanos::from_secs_f64(pivot_bytes / bytes_per_s),
            next_panel: 0,
            handed_on: true,
            tasks: VecDeque::new(),
            swaps,
        }
    }

    fn owns(&self, panel: u64) -> bool {
        panel % wide(self.hpl.columns) == wide(self.me)
    }

    /// How far behind the owner of a panel this column is.
    fn distance(&self, panel: u64) -> usize {
        let owner = narrow(panel % wide(self.hpl.columns));
        (self.me + self.hpl.columns - owner) % self.hpl.columns
    }

    fn column_behind_owner(&self, panel: u64, distance: usize) -> usize {
        (narrow(panel % wide(self.hpl.columns)) + distance) % self.hpl.columns
    }

    /// Columns of this process column from a block on.
    fn columns_from(&self, block: u64) -> u64 {
        self.columns.rows_from(block, wide(self.me))
    }

    /// Lines up the next iteration; gives whether there is one.
    fn begin_iteration(&mut self) -> bool {
        let panel = self.next_panel;
        if panel >= self.rows.blocks() {
            return false;
        }
        self.next_panel += 1;
        self.handed_on = self.hpl.columns == 1;
        let ahead = self.hpl.look_ahead > 0;
        if !ahead || panel == 0 {
            if self.owns(panel) {
                self.factorise(panel);
            }
            self.tasks.push_back(Task::Take { panel });
            if !ahead {
                let columns = self.columns_from(panel + 1);
                self.swap_and_update(panel, columns, panel);
            }
        } else if self.owns(panel) {
            let own = self.columns.size(panel);
            self.swap_and_update(panel - 1, own, panel - 1);
            self.factorise(panel);
            self.tasks.push_back(Task::Take { panel });
            let rest = self.columns_from(panel + 1);
            self.swap_and_update(panel - 1, rest, panel);
        } else {
            let columns = self.columns_from(panel);
            self.tasks.push_back(Task::Probe { panel });
            self.swap_and_update(panel - 1, columns, panel);
            self.tasks.push_back(Task::Take { panel });
        }
        true
    }

    /// Swaps the rows of so many columns and updates them, probing for `awaited` in between; what was
    /// handed on is not probed for.
    fn swap_and_update(&mut self, by: u64, columns: u64, awaited: u64) {
        if columns == 0 {
            return;
        }
        if self.hpl.rows > 1 {
            let swaps = Rc::clone(&self.swaps);
            let Swap { order, even } = &swaps[narrow(by)];
            let steps = [
                (&spread(&order.pivots), log2_up(self.hpl.rows), SPREAD),
                // Each gives what it has beyond the others to one side, and gets from the other.
                (even, 2, SPREAD),
                (&roll(self.hpl.rows, self.rows.size(by)), wide(self.hpl.rows) - 1, ROLL),
            ];
            for (parts, latencies, what) in
                steps.into_iter().filter(|(parts, ..)| !parts.is_empty())
            {
                let streams =
                    parts.iter().map(|part| self.stream_of(*part, order, columns)).collect();
                // Each step announces its data, is asked for them, and sends them.
                let start_up = Nanos::new(3 * latencies * self.hpl.latency.get());
                self.tasks.push_back(Task::Do(Step::Move { streams, start_up, what }));
                self.tasks.push_back(Task::Probe { panel: awaited });
            }
        }
        self.tasks.push_back(Task::Update { by, columns, awaited });
    }

    /// A part of a swap as a stream between two processes of this column.
    fn stream_of(&self, part: Part, order: &Order, columns: u64) -> Stream {
        let rank = |at: usize| self.hpl.rank(order.row[at], self.me);
        self.stream(rank(part.from), rank(part.to), 8 * part.rows * columns)
    }

    fn stream(&self, from: usize, to: usize, bytes: u64) -> Stream {
        let label = |from: usize, to: usize| wide(from * self.hpl.ranks() + to);
        Stream {
            from: self.placement.host(from),
            to: self.placement.host(to),
            bytes: Bytes::new(bytes),
            label: label(from, to),
            label_back: label(to, from),
        }
    }

    fn factorise(&mut self, panel: u64) {
        let size = self.rows.size(panel);
        let rows = self.rows.most_from(panel);
        let flop = count_f64(size) * count_f64(size) * count_f64(rows);
        let work = flop / (self.hpl.flop_per_s * self.hpl.panel_share);
        let exchanges = size * log2_up(self.hpl.rows);
        let exchange = self.hpl.latency + self.pivot_step;
        let span = Nanos::from_secs_f64(work) + Nanos::new(exchanges * exchange.get());
        self.tasks.push_back(Task::Do(Step::Compute { span, what: FACTORISE }));
    }

    /// Puts before all other tasks that a panel is received and handed on.
    fn hand_on(&mut self, panel: u64) {
        self.handed_on = true;
        let distance = self.distance(panel);
        let mut steps = Vec::new();
        if distance > 0 {
            let from = self.column_behind_owner(panel, self.hpl.predecessor(distance));
            steps.push(Step::Receive { from, tag: panel });
            steps.push(Step::Wait { what: RECEIVE });
        }
        for next in self.hpl.successors(distance) {
            let to = self.column_behind_owner(panel, next);
            steps.push(Step::Send(Message { to, tag: panel, streams: self.panel(panel, to) }));
            steps.push(Step::Wait { what: SEND });
        }
        for step in steps.into_iter().rev() {
            self.tasks.push_front(Task::Do(step));
        }
    }

    /// A panel on its way to another column: for each process row the rows below the diagonal block,
    /// that block, the pivots and a flag.
    fn panel(&self, panel: u64, to: usize) -> Vec<Stream> {
        let size = self.rows.size(panel);
        let stream = |row: usize| {
            let below = self.rows.rows_from(panel + 1, wide(row));
            let bytes = 8 * (below * size + size * size + size + 1);
            self.stream(self.hpl.rank(row, self.me), self.hpl.rank(row, to), bytes)
        };
        (0..self.hpl.rows).map(stream).collect()
    }

    fn update(&mut self, by: u64, columns: u64, awaited: u64) -> Option<Step> {
        if columns == 0 {
            return None;
        }
        let piece = if self.handed_on { columns } else { columns.min(self.hpl.block) };
        self.tasks.push_front(Task::Update { by, columns: columns - piece, awaited });
        self.tasks.push_front(Task::Probe { panel: awaited });
        let span = self.hpl.update_span(self.rows, by, piece);
        Some(Step::Compute { span, what: UPDATE })
    }
}

impl Actor for Column<'_> {
    fn next(&mut self, heard: &Heard<'_>) -> Step {
        loop {
            let Some(task) = self.tasks.pop_front() else {
                if self.begin_iteration() {
                    continue;
                }
                return Step::Done;
            };
            match task {
                Task::Do(step) => return step,
                Task::Take { panel } => {
                    if !self.handed_on {
                        self.hand_on(panel);
                    }
                }
                Task::Probe { panel } => {
                    if !self.handed_on && self.may_take(panel, heard) {
                        self.hand_on(panel);
                    }
                }
                Task::Update { by, columns, awaited } => {
                    if let Some(step) = self.update(by, columns, awaited) {
                        return step;
                    }
                }
            }
        }
    }
}

impl Column<'_> {
    fn may_take(&self, panel: u64, heard: &Heard<'_>) -> bool {
        let distance = self.distance(panel);
        // The owner sends its panel once it has one, not while it still updates.
        distance > 0 && {
            let from = self.column_behind_owner(panel, self.hpl.predecessor(distance));
            heard.announced(from, panel)
        }
    }
}

/// Steps of a binary tree or exchange over so many processes.
fn log2_up(processes: usize) -> u64 {
    u64::from(processes.next_power_of_two().trailing_zeros())
}
