//! What the mouse does: it selects, and sorts by a heading.

use meikyo_units::WallTime;
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Overlay, Screen};

impl Screen {
    /// Does what a click or the wheel says.
    pub(in crate::top) fn mouse(&mut self, event: MouseEvent, clock: WallTime) {
        let row = self.selected_row().unwrap_or(0);
        match event.kind {
            MouseEventKind::ScrollUp => self.select_row(row.saturating_sub(1)),
            MouseEventKind::ScrollDown => self.select_row(row + 1),
            MouseEventKind::Down(MouseButton::Left) if self.overlay != Overlay::None => {
                self.overlay = Overlay::None;
            }
            MouseEventKind::Down(MouseButton::Left) => {
                self.click(Position::new(event.column, event.row), clock);
            }
            _ => {}
        }
    }

    fn click(&mut self, at: Position, clock: WallTime) {
        let column = self.targets.columns.iter().find(|(area, _)| area.contains(at));
        if let Some((_, column)) = column {
            if self.order.column == *column {
                self.order.reversed = !self.order.reversed;
            } else {
                self.order.column = *column;
            }
            return self.arrange(self.instant(clock));
        }
        let device = self.targets.devices.iter().find(|(area, _)| area.contains(at));
        if let Some((_, device)) = device {
            // A second click on the same device opens it.
            self.detail = self.selected == Some(*device) && !self.detail;
            self.selected = Some(*device);
            self.keep_in_sight();
        }
    }
}
