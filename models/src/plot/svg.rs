//! Lines, marks and texts as Scalable Vector Graphics 1.1.

use std::fmt::Write as _;

use super::axis::Axis;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 56.0;
/// From one line of the legend to the next.
const LINE: f64 = 17.0;

/// Okabe and Ito, "Color Universal Design" (2008), without the yellow, which is too light for lines.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// A picture with its axes.
pub(super) struct Picture<'a> {
    horizontal: &'a Axis,
    vertical: &'a Axis,
    text: String,
}

impl<'a> Picture<'a> {
    /// A picture of two axes with their titles.
    pub(super) fn new(horizontal: &'a Axis, vertical: &'a Axis, x: &str, y: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{} over {}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n",
            escaped(y),
            escaped(x)
        );
        let mut picture = Self { horizontal, vertical, text };
        picture.axes(x, y);
        picture
    }

    fn push(&mut self, line: std::fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("writing to a string cannot fail");
        self.text.push('\n');
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.horizontal.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.vertical.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&mut self, x: &str, y: &str) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, label) in &self.vertical.ticks {
            let at = self.y(*value);
            self.push(format_args!(
                "<line x1=\"{LEFT}\" y1=\"{at:.2}\" x2=\"{right}\" y2=\"{at:.2}\" \
                 stroke=\"#e0e0e0\"/>"
            ));
            let base = at + 4.0;
            let edge = LEFT - 8.0;
            let label = escaped(label);
            self.push(format_args!(
                "<text x=\"{edge}\" y=\"{base:.2}\" text-anchor=\"end\">{label}</text>"
            ));
        }
        for (value, label) in &self.horizontal.ticks {
            let (at, base, end) = (self.x(*value), bottom + 20.0, bottom + 5.0);
            self.push(format_args!(
                "<line x1=\"{at:.2}\" y1=\"{bottom}\" x2=\"{at:.2}\" y2=\"{end}\" stroke=\"#000000\"/>"
            ));
            let label = escaped(label);
            self.push(format_args!(
                "<text x=\"{at:.2}\" y=\"{base}\" text-anchor=\"middle\">{label}</text>"
            ));
        }
        self.push(format_args!(
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#000000\"/>"
        ));
        let (middle, base) = (f64::midpoint(LEFT, right), HEIGHT - 14.0);
        self.push(format_args!(
            "<text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\">{}</text>",
            escaped(x)
        ));
        let middle = f64::midpoint(TOP, bottom);
        self.push(format_args!(
            "<text x=\"18\" y=\"{middle}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 18 {middle})\">{}</text>",
            escaped(y)
        ));
    }

    /// A line from point to point.
    pub(super) fn line(&mut self, curve: usize, points: &[(f64, f64)]) {
        self.path("curve", curve, points, "");
    }

    /// A dashed line from point to point.
    pub(super) fn dashes(&mut self, curve: usize, points: &[(f64, f64)]) {
        self.path("expected", curve, points, " stroke-dasharray=\"5 4\"");
    }

    fn path(&mut self, class: &str, curve: usize, points: &[(f64, f64)], more: &str) {
        if points.len() < 2 {
            return;
        }
        let places = points.iter().map(|(x, y)| format!("{:.2},{:.2}", self.x(*x), self.y(*y)));
        let places = places.collect::<Vec<_>>().join(" ");
        let colour = colour(curve);
        self.push(format_args!(
            "<polyline class=\"{class}\" points=\"{places}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"1.5\"{more}/>"
        ));
    }

    /// A bar with ends from `low` to `high`.
    pub(super) fn error_bar(&mut self, curve: usize, x: f64, low: f64, high: f64) {
        let (x, low, high, colour) = (self.x(x), self.y(low), self.y(high), colour(curve));
        let (left, right) = (x - 4.0, x + 4.0);
        self.push(format_args!(
            "<path class=\"interval\" d=\"M{left:.2} {low:.2}H{right:.2}M{x:.2} {low:.2}V{high:.2}\
             M{left:.2} {high:.2}H{right:.2}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"1.2\"/>"
        ));
    }

    /// A mark at a point: of another shape for each of four curves.
    pub(super) fn mark(&mut self, curve: usize, x: f64, y: f64) {
        let (x, y) = (self.x(x), self.y(y));
        self.shape(curve, x, y);
    }

    fn shape(&mut self, curve: usize, x: f64, y: f64) {
        let d = match curve % 4 {
            0 => format!("M{:.2} {y:.2}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", x - 3.5),
            1 => format!("M{:.2} {:.2}h6v6h-6z", x - 3.0, y - 3.0),
            2 => format!("M{x:.2} {:.2}l4 7h-8z", y - 4.0),
            _ => format!("M{x:.2} {:.2}l4 4l-4 4l-4 -4z", y - 4.0),
        };
        let colour = colour(curve);
        self.push(format_args!("<path class=\"mark\" d=\"{d}\" fill=\"{colour}\"/>"));
    }

    /// A bar of a histogram, from the horizontal axis up.
    pub(super) fn bar(&mut self, from: f64, to: f64, height: f64) {
        let (left, right) = (self.x(from), self.x(to));
        let (top, bottom) = (self.y(height), self.y(0.0));
        let (width, height) = (right - left, bottom - top);
        self.push(format_args!(
            "<rect class=\"bar\" x=\"{left:.2}\" y=\"{top:.2}\" width=\"{width:.2}\" \
             height=\"{height:.2}\" fill=\"#0072b2\" stroke=\"#ffffff\" stroke-width=\"0.5\"/>"
        ));
    }

    /// What curves, dashes and bars mean, and a `note`.
    pub(super) fn legend(&mut self, labels: &[&str], theory: bool, note: Option<&str>) {
        let mut base = TOP + 14.0;
        let x = LEFT + 14.0;
        for (curve, label) in labels.iter().enumerate() {
            self.shape(curve, x, base - 4.0);
            self.legend_text(label, base);
            base += LINE;
        }
        if theory {
            let (from, to, y) = (x - 8.0, x + 8.0, base - 4.0);
            self.push(format_args!(
                "<path d=\"M{from} {y}H{to}\" stroke=\"#000000\" stroke-dasharray=\"5 4\"/>"
            ));
            self.legend_text("expected", base);
            base += LINE;
        }
        if let Some(note) = note {
            self.legend_text(note, base);
        }
    }

    fn legend_text(&mut self, text: &str, base: f64) {
        let x = LEFT + 30.0;
        self.push(format_args!("<text x=\"{x}\" y=\"{base}\">{}</text>", escaped(text)));
    }

    /// The picture as a file.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

fn colour(curve: usize) -> &'static str {
    COLOURS[curve % COLOURS.len()]
}

/// A text as it stands in XML, which has no way to write most control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
