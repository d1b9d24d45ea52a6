//! Colours: one quiet ramp for quantities, vermilion for what is missing, gold for what is late.
//!
//! They are the page's. A terminal with 256 colours gets the nearest ones; without colours
//! (`NO_COLOR`, pipes) heights and signs say the same.

use ratatui::style::{Color, Modifier, Style};

/// Deep water to light, for a dark and for a light ground.
const STOPS: [[[u8; 3]; 6]; 2] = [
    [[18, 30, 36], [20, 58, 68], [26, 98, 108], [60, 150, 150], [140, 200, 178], [236, 238, 206]],
    [
        [226, 232, 228],
        [206, 226, 222],
        [142, 194, 194],
        [70, 146, 156],
        [22, 92, 112],
        [10, 44, 66],
    ],
];

/// Heights for where there are no colours.
pub(super) const HEIGHTS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// How many colours there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    None,
    Indexed,
    True,
}

/// Dark or light ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Theme {
    Dark,
    Light,
}

/// The colours of a terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    pub(super) depth: Depth,
    pub(super) theme: Theme,
}

impl Palette {
    /// Without colours.
    pub(super) const PLAIN: Self = Self { depth: Depth::None, theme: Theme::Dark };

    /// What the environment says of the terminal.
    pub(super) fn of_environment(theme: Option<Theme>) -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        // https://no-color.org: any text that is not empty.
        let depth = if !variable("NO_COLOR").is_empty() || variable("TERM") == "dumb" {
            Depth::None
        } else if matches!(variable("COLORTERM").as_str(), "truecolor" | "24bit") {
            Depth::True
        } else {
            Depth::Indexed
        };
        // `COLORFGBG` ends in the number of the ground: 7 and 15 are white.
        let ground = variable("COLORFGBG");
        let light = matches!(ground.rsplit(';').next(), Some("7" | "15"));
        let theme = theme.unwrap_or(if light { Theme::Light } else { Theme::Dark });
        Self { depth, theme }
    }

    /// The colour of a part of the scale, from 0 to 1.
    pub(super) fn ramp(self, part: f64) -> Style {
        let stops = &STOPS[usize::from(self.theme == Theme::Light)];
        let place = part.clamp(0.0, 1.0) * 5.0;
        let leg = (0..5_u8).rev().find(|leg| place >= f64::from(*leg)).unwrap_or(0);
        let within = place - f64::from(leg);
        let (left, right) = (stops[usize::from(leg)], stops[usize::from(leg) + 1]);
        let mixed = [0, 1, 2].map(|part| {
            let (left, right) = (f64::from(left[part]), f64::from(right[part]));
            octet(left + (right - left) * within)
        });
        self.colour(mixed)
    }

    /// Missing or broken.
    pub(super) fn missing(self) -> Style {
        self.either([240, 102, 74], [207, 61, 34]).add_modifier(Modifier::BOLD)
    }

    /// Late or doubtful.
    pub(super) fn late(self) -> Style {
        self.either([227, 179, 65], [169, 121, 8])
    }

    /// Lines of what comes in, and marks.
    pub(super) fn water(self) -> Style {
        self.either([92, 196, 201], [11, 127, 136])
    }

    /// Lines of what goes out.
    pub(super) fn wisteria(self) -> Style {
        self.either([167, 155, 232], [106, 91, 196])
    }

    /// Text that matters less.
    pub(super) fn quiet(self) -> Style {
        self.either([159, 178, 181], [86, 103, 107])
    }

    /// Headings and what is barely there.
    pub(super) fn faint(self) -> Style {
        self.either([100, 122, 127], [138, 152, 154])
    }

    /// The selected row.
    pub(super) fn selected(self) -> Style {
        match (self.depth, self.theme) {
            (Depth::None, _) => Style::new().add_modifier(Modifier::REVERSED),
            (Depth::Indexed, Theme::Dark) => Style::new().bg(Color::Indexed(236)),
            (Depth::Indexed, Theme::Light) => Style::new().bg(Color::Indexed(254)),
            (Depth::True, Theme::Dark) => Style::new().bg(Color::Rgb(34, 49, 56)),
            (Depth::True, Theme::Light) => Style::new().bg(Color::Rgb(226, 223, 214)),
        }
    }

    fn either(self, dark: [u8; 3], light: [u8; 3]) -> Style {
        self.colour(if self.theme == Theme::Dark { dark } else { light })
    }

    fn colour(self, rgb: [u8; 3]) -> Style {
        match self.depth {
            Depth::None => Style::new(),
            Depth::Indexed => Style::new().fg(Color::Indexed(nearest(rgb))),
            Depth::True => Style::new().fg(Color::Rgb(rgb[0], rgb[1], rgb[2])),
        }
    }
}

/// The height that stands for a part of the scale, from 0 to 1.
pub(super) fn height(part: f64) -> &'static str {
    let step = (0..8_u8).rev().find(|step| part * 8.0 > f64::from(*step)).unwrap_or(0);
    HEIGHTS[usize::from(step)]
}

/// The nearest of the 216 colours and 24 greys that terminals number from 16 to 255.
fn nearest([red, green, blue]: [u8; 3]) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let distance = |a: [u8; 3]| -> u32 {
        let parts = a.into_iter().zip([red, green, blue]);
        parts.map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    let level = |part: u8| {
        let at = (0..6_u8).min_by_key(|at| LEVELS[usize::from(*at)].abs_diff(part));
        at.unwrap_or(0)
    };
    let (r, g, b) = (level(red), level(green), level(blue));
    let cube = [r, g, b].map(|at| LEVELS[usize::from(at)]);
    let grey = (0..24_u8).min_by_key(|at| distance([8 + 10 * at; 3])).unwrap_or(0);
    if distance([8 + 10 * grey; 3]) < distance(cube) { 232 + grey } else { 16 + 36 * r + 6 * g + b }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two octets")]
fn octet(value: f64) -> u8 {
    value.round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_rises_in_lightness_and_reaches_both_ends() {
        let light = |part: f64| {
            let style = Palette { depth: Depth::True, theme: Theme::Dark }.ramp(part);
            match style.fg {
                Some(Color::Rgb(r, g, b)) => u32::from(r) * 2 + u32::from(g) * 5 + u32::from(b),
                _ => 0,
            }
        };
        let lights: Vec<_> = (0..=20).map(|step| light(f64::from(step) / 20.0)).collect();
        assert!(lights.windows(2).all(|pair| pair[0] < pair[1]), "{lights:?}");
        assert_eq!(light(0.0), 18 * 2 + 30 * 5 + 36);
        assert_eq!(light(7.0), 236 * 2 + 238 * 5 + 206);
    }

    #[test]
    fn heights_and_indexed_colours_are_the_nearest() {
        assert_eq!([0.0, 0.1, 0.5, 0.51, 1.0].map(height), ["▁", "▁", "▄", "▅", "█"]);
        assert_eq!(nearest([255, 255, 255]), 231);
        assert_eq!(nearest([0, 0, 0]), 16);
        assert_eq!(nearest([129, 129, 127]), 244);
        assert_eq!(nearest([255, 95, 0]), 202);
        assert_eq!(Palette::PLAIN.ramp(0.7), Style::new());
    }
}
