//! A figure as an SVG picture.

use std::path::Path;

use meikyo_console::failure::Failure;
use plotters::prelude::*;

/// Colours that are told apart without colour vision (Okabe and Ito 2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
];

/// What is drawn.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
}

/// One axis; both begin at 0.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) name: String,
}

/// One line of a figure.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Writes the picture.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn draw(path: &Path, title: &str, lines: &Lines) -> Result<(), Failure> {
    plot(path, title, lines)
        .map_err(|error| Failure::new(format!("cannot draw {}: {error}", path.display())))
}

fn plot(path: &Path, title: &str, lines: &Lines) -> Result<(), Box<dyn std::error::Error>> {
    let points = || lines.lines.iter().flat_map(|line| &line.points);
    let x_max = points().map(|point| point.0).fold(1.0, f64::max);
    let y_max = points().map(|point| point.1).fold(0.0, f64::max) * 1.08;
    let area = SVGBackend::new(path, (860, 520)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..x_max, 0.0..y_max)?;
    chart.configure_mesh().x_desc(&lines.x.name).y_desc(&lines.y.name).draw()?;
    for (line, colour) in lines.lines.iter().zip(COLOURS.iter().cycle()) {
        let colour = *colour;
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart
            .draw_series(line.points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}
