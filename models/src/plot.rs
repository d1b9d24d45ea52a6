//! Pictures for papers: figures over the values of a parameter with the ends of their intervals, and
//! histograms, as Scalable Vector Graphics.
//!
//! Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart; curves
//! have marks of their own too, so that a print without colours can be read.

mod axis;
mod svg;

use meikyo_sim::{Bin, Histogram};

use crate::completions::count_f64;
use axis::Axis;
use svg::Picture;

/// Bins of a histogram at most.
const BINS_MAX: usize = 60;

/// A value at a place of the horizontal axis, with the ends of its interval if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Where it stands: a number, or with [`Titles::words`] which of them, counted from 0.
    pub x: f64,
    /// Value on the vertical axis.
    pub y: f64,
    /// The lower and the upper end of its interval.
    pub ends: Option<(f64, f64)>,
}

/// Marks that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// What the legend calls it; nothing where there is only one.
    pub label: String,
    /// The marks, from left to right.
    pub marks: Vec<Mark>,
    /// What theory says, from left to right: a dashed line.
    pub expected: Vec<(f64, f64)>,
}

/// What stands beside the curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Titles<'a> {
    /// Below the horizontal axis.
    pub x: &'a str,
    /// Beside the vertical axis.
    pub y: &'a str,
    /// What stands at the horizontal axis instead of numbers.
    pub words: Option<&'a [String]>,
    /// The last line of the legend.
    pub note: Option<&'a str>,
}

/// A picture of `curves`; the vertical axis begins at 0 unless values are below.
pub fn curves(titles: &Titles<'_>, curves: &[Curve]) -> String {
    let marks = || curves.iter().flat_map(|curve| &curve.marks);
    let expected = || curves.iter().flat_map(|curve| &curve.expected);
    let heights = marks().flat_map(|mark| {
        let (low, high) = mark.ends.unwrap_or((mark.y, mark.y));
        [low, mark.y, high]
    });
    let vertical = Axis::over(heights.chain(expected().map(|(_, y)| *y)).chain([0.0]));
    let horizontal = match titles.words {
        Some(words) => Axis::of_words(words),
        None => Axis::over(marks().map(|mark| mark.x).chain(expected().map(|(x, _)| *x))),
    };
    let mut picture = Picture::new(&horizontal, &vertical, titles.x, titles.y);
    for (at, curve) in curves.iter().enumerate() {
        picture.dashes(at, &curve.expected);
        let line: Vec<(f64, f64)> = curve.marks.iter().map(|mark| (mark.x, mark.y)).collect();
        picture.line(at, &line);
        for mark in &curve.marks {
            if let Some((low, high)) = mark.ends {
                picture.error_bar(at, mark.x, low, high);
            }
            picture.mark(at, mark.x, mark.y);
        }
    }
    let labels = curves.iter().map(|curve| curve.label.as_str());
    let labels: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
    picture.legend(&labels, expected().next().is_some(), titles.note);
    picture.finish()
}

/// A picture of how often values of `name` came: the area of a bar is the share of all values that it
/// stands for. Values that are 0 have no width and are told in the legend.
pub fn histogram(name: &str, histogram: &Histogram) -> String {
    let bins = histogram.bins(BINS_MAX);
    let share = |count: u64| count_f64(count) / count_f64(histogram.count());
    let wide = || bins.iter().filter(|bin| bin.from < bin.to && (bin.to - bin.from).is_finite());
    let density = |bin: &Bin| share(bin.count) / (bin.to - bin.from);
    let horizontal = Axis::over(wide().flat_map(|bin| [bin.from, bin.to]).chain([0.0]));
    let vertical = Axis::over(wide().map(density).chain([0.0]));
    let unit = format!("share of {name} for each unit");
    let mut picture = Picture::new(&horizontal, &vertical, name, &unit);
    for bin in wide() {
        picture.bar(bin.from, bin.to, density(bin));
    }
    let zeros = bins.iter().find(|bin| bin.from >= bin.to).map(|bin| share(bin.count) * 100.0);
    let zeros = zeros.map(|percent| format!("beside them {percent:.1} % are 0"));
    picture.legend(&[], false, zeros.as_deref());
    picture.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of an attribute of all elements of a class.
    fn numbers(svg: &str, class: &str, attribute: &str) -> Vec<f64> {
        let elements = svg.lines().filter(|line| line.contains(&format!("class=\"{class}\"")));
        let value = |line: &str| {
            let rest = line.split_once(&format!(" {attribute}=\"")).expect("it is there").1;
            rest.split('"').next().expect("it ends").parse().expect("a number")
        };
        elements.map(value).collect()
    }

    #[test]
    fn every_mark_stands_where_its_axes_say_and_has_its_interval() {
        let mark = |x, y: f64| Mark { x, y, ends: Some((y - 1.0, y + 1.0)) };
        let curve = Curve {
            label: "a < b".to_owned(),
            marks: vec![mark(0.0, 2.0), mark(5.0, 4.0), mark(10.0, 9.0)],
            expected: vec![(0.0, 2.0), (10.0, 9.0)],
        };
        let titles = Titles { x: "n", y: "t & u", words: None, note: Some("95%") };
        let svg = curves(&titles, &[curve]);
        assert_eq!(svg.matches("class=\"interval\"").count(), 3);
        assert_eq!(svg.matches("class=\"mark\"").count(), 4, "one in the legend");
        assert!(svg.contains(">a &lt; b</text>") && svg.contains(">t &amp; u</text>"));
        // Both axes go from 0 to 10: 84 to 620 across, 364 to 16 upwards.
        let line = svg.lines().find(|line| line.contains("class=\"curve\"")).expect("a line");
        assert!(line.contains("points=\"84.00,294.40 352.00,224.80 620.00,50.80\""), "{line}");
        assert!(svg.contains("M348.00 259.60H356.00M352.00 259.60V190.00M348.00 190.00H356.00"));
    }

    #[test]
    fn the_areas_of_bars_are_shares() {
        let mut values = Histogram::default();
        (0..400).for_each(|at| values.add(f64::from(at) / 4.0 + 1.0));
        (0..100).for_each(|_| values.add(0.0));
        let svg = histogram("wait_us", &values);
        let [widths, heights] = ["width", "height"].map(|name| numbers(&svg, "bar", name));
        let area: f64 = widths.iter().zip(&heights).map(|(width, height)| width * height).sum();
        // 400 of 500, in a picture whose axes have 536 x 348 units for 0 to 120 and some density.
        let top = svg.lines().rfind(|line| line.contains("text-anchor=\"end\"")).expect("a tick");
        let top = top.split('>').nth(1).expect("a text").split('<').next().expect("a text");
        let top: f64 = top.parse().expect("the greatest density");
        let unit = 536.0 / 120.0 * 348.0 / top;
        assert!((area / unit - 0.8).abs() < 0.01, "{} {svg}", area / unit);
        assert!(svg.contains("beside them 20.0 % are 0"));
    }
}
