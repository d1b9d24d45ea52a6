//! What keys do. They are those of btop where it has the same thing.

use meikyo_units::{Nanos, WallTime};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{EVERY, Overlay, Place, SPEED_RANGE, Screen, Wish};
use crate::top::metric::Metric;

/// The keys, as the help shows them.
pub(in crate::top) const HELP: [(&str, &str); 19] = [
    ("↑ ↓, k j", "select a device; Page Up and Down, Home and End"),
    ("← →, h l", "choose the column that the table is sorted by"),
    ("r", "reverse the order"),
    ("e", "group by group, or not"),
    ("Enter", "everything about the device; again or Esc: back"),
    ("f, /", "filter by name or group; * and ? are patterns; Esc clears"),
    ("m", "choose the metric of the grid"),
    ("1 2 3 4", "hide or show grid, table, charts, events"),
    ("+ -", "longer or shorter span between two repaints"),
    ("Space", "pause, go on; in the past: play, stop"),
    ("[ ]", "10 s back, forward"),
    ("{ }", "10 min back, forward"),
    ("< >", "replay slower, faster"),
    ("b", "the begin of the recording"),
    ("n", "now: the newest there is"),
    ("mouse", "click a cell, a row or a heading; wheel: select"),
    ("Ctrl+Z", "suspend"),
    ("?, F1", "this help"),
    ("q, Ctrl+C", "quit; Esc closes what is open, goes back, quits"),
];

impl Screen {
    /// Does what a key says at an instant of the clock.
    pub(in crate::top) fn key(&mut self, key: KeyEvent, clock: WallTime) -> Option<Wish> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.trouble = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Wish::Quit),
                KeyCode::Char('z') => Some(Wish::Suspend),
                _ => None,
            };
        }
        match self.overlay {
            Overlay::Filter => self.filter_key(key.code, clock),
            Overlay::Menu(at) => self.menu_key(key.code, at, clock),
            Overlay::Help => {
                self.overlay = Overlay::None;
                (key.code == KeyCode::Char('q')).then_some(Wish::Quit)
            }
            Overlay::None => self.view_key(key.code, clock),
        }
    }

    fn filter_key(&mut self, code: KeyCode, clock: WallTime) -> Option<Wish> {
        match code {
            KeyCode::Enter | KeyCode::Up | KeyCode::Down => self.overlay = Overlay::None,
            KeyCode::Esc => {
                self.order.filter.clear();
                self.overlay = Overlay::None;
            }
            KeyCode::Backspace => drop(self.order.filter.pop()),
            KeyCode::Char(c) => self.order.filter.push(c),
            _ => {}
        }
        self.arrange(self.instant(clock));
        None
    }

    fn menu_key(&mut self, code: KeyCode, at: usize, clock: WallTime) -> Option<Wish> {
        let all = Metric::ALL.len();
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.overlay = Overlay::Menu((at + all - 1) % all),
            KeyCode::Down | KeyCode::Char('j' | 'm') => {
                self.overlay = Overlay::Menu((at + 1) % all);
            }
            KeyCode::Enter | KeyCode::Char(' ') => {
                self.metric = Metric::ALL[at];
                self.overlay = Overlay::None;
                self.arrange(self.instant(clock));
            }
            KeyCode::Char('q') => return Some(Wish::Quit),
            _ => self.overlay = Overlay::None,
        }
        None
    }

    fn view_key(&mut self, code: KeyCode, clock: WallTime) -> Option<Wish> {
        let page = self.targets.table_rows.max(1);
        let row = self.selected_row().unwrap_or(0);
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.select_row(row.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select_row(row + 1),
            KeyCode::PageUp => self.select_row(row.saturating_sub(page)),
            KeyCode::PageDown => self.select_row(row + page),
            KeyCode::Home | KeyCode::Char('g') => self.select_row(0),
            KeyCode::End | KeyCode::Char('G') => self.select_row(usize::MAX),
            KeyCode::Left | KeyCode::Char('h') => self.sort_by_neighbour(false, clock),
            KeyCode::Right | KeyCode::Char('l') => self.sort_by_neighbour(true, clock),
            KeyCode::Char('r') => {
                self.order.reversed = !self.order.reversed;
                self.arrange(self.instant(clock));
            }
            KeyCode::Char('e') => {
                self.order.grouped = !self.order.grouped;
                self.arrange(self.instant(clock));
            }
            KeyCode::Enter => self.detail = !self.detail && self.selected.is_some(),
            KeyCode::Char('f' | '/') => self.overlay = Overlay::Filter,
            KeyCode::Char('m') => {
                let at = Metric::ALL.iter().position(|metric| *metric == self.metric);
                self.overlay = Overlay::Menu(at.unwrap_or(0));
            }
            KeyCode::Char('?') | KeyCode::F(1) => self.overlay = Overlay::Help,
            KeyCode::Char('1') => self.parts.grid = !self.parts.grid,
            KeyCode::Char('2') => self.parts.table = !self.parts.table,
            KeyCode::Char('3') => self.parts.charts = !self.parts.charts,
            KeyCode::Char('4') => self.parts.events = !self.parts.events,
            KeyCode::Char('+' | '=') => {
                self.every =
                    EVERY.into_iter().find(|every| *every > self.every).unwrap_or(self.every);
            }
            KeyCode::Char('-') => {
                let shorter = EVERY.into_iter().rev().find(|every| *every < self.every);
                self.every = shorter.unwrap_or(self.every);
            }
            KeyCode::Esc if self.detail => self.detail = false,
            KeyCode::Esc if !self.order.filter.is_empty() => {
                self.order.filter.clear();
                self.arrange(self.instant(clock));
            }
            KeyCode::Esc if self.is_of_several => return Some(Wish::Back),
            KeyCode::Esc | KeyCode::Char('q') => return Some(Wish::Quit),
            code => return self.time_key(code, clock),
        }
        None
    }

    fn sort_by_neighbour(&mut self, right: bool, clock: WallTime) {
        self.order.column = self.order.column.neighbour(right);
        self.arrange(self.instant(clock));
    }

    /// Keys that move in time.
    fn time_key(&mut self, code: KeyCode, clock: WallTime) -> Option<Wish> {
        let (short, long) = (Nanos::from_secs(10), Nanos::from_secs(600));
        let at = self.instant(clock);
        match code {
            KeyCode::Char(' ') => self.pause(clock),
            KeyCode::Char('[') => self.seek(at.before(short)),
            KeyCode::Char(']') => self.seek(at + short),
            KeyCode::Char('{') => self.seek(at.before(long)),
            KeyCode::Char('}') => self.seek(at + long),
            KeyCode::Char('b') => self.times.and_then(|(from, _)| self.seek(from)),
            KeyCode::Char('n') if self.running => self.go_live(),
            KeyCode::Char('n') => self.times.and_then(|(_, to)| self.seek(to)),
            KeyCode::Char('<') => {
                self.speed = (self.speed - 1).max(*SPEED_RANGE.start());
                None
            }
            KeyCode::Char('>') => {
                self.speed = (self.speed + 1).min(*SPEED_RANGE.end());
                None
            }
            _ => None,
        }
    }

    fn pause(&mut self, clock: WallTime) -> Option<Wish> {
        let (end, now) = (self.times.map(|(_, to)| to), self.instant(clock));
        match &mut self.place {
            Place::Live { paused_at } => {
                *paused_at = if paused_at.is_some() { None } else { Some(now) };
                None
            }
            // At the end of a finished recording it begins anew.
            Place::Past { at, playing: false } if Some(*at) == end && !self.running => {
                let from = self.times.map(|(from, _)| from)?;
                let wish = self.seek(from);
                if let Place::Past { playing, .. } = &mut self.place {
                    *playing = true;
                }
                wish
            }
            Place::Past { playing, .. } => {
                *playing = !*playing;
                None
            }
        }
    }

    /// Goes to an instant of the past; beyond the end of a running recording that is now.
    fn seek(&mut self, at: WallTime) -> Option<Wish> {
        let (from, to) = self.times?;
        if self.running && at >= to {
            return self.go_live();
        }
        let at = at.clamp(from, to);
        let playing = matches!(self.place, Place::Past { playing: true, .. });
        self.place = Place::Past { at, playing };
        Some(Wish::Seek(at))
    }

    fn go_live(&mut self) -> Option<Wish> {
        if matches!(self.place, Place::Live { .. }) {
            self.place = Place::Live { paused_at: None };
            return None;
        }
        self.place = Place::Live { paused_at: None };
        Some(Wish::GoLive)
    }
}
