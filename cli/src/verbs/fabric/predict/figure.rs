//! The rates of compared topologies over the cables of a link, as a picture.

use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_models::plot::{self, Curve, Mark, Titles};

use super::Row;

/// Draws all rows that were predicted; the first one is the fabric itself.
pub(super) fn write(file: &Path, rows: &[Row]) -> Result<(), Failure> {
    std::fs::write(file, drawn(rows))
        .map_err(|error| Failure::new(format!("cannot write `{}`: {error}", file.display())))
}

fn drawn(rows: &[Row]) -> String {
    let mut curves: Vec<Curve> = Vec::new();
    let (mut unit, mut note) = ("", None);
    for row in rows {
        let Ok(predicted) = &row.predicted else { continue };
        unit = predicted.unit;
        let Some(cables) = row.cables_per_link else {
            note = Some(format!("{}: {:.1}", row.topology, predicted.rate));
            continue;
        };
        let at = curves.iter().position(|curve| curve.label == row.topology);
        let at = at.unwrap_or_else(|| {
            curves.push(Curve { label: row.topology.clone(), ..Curve::default() });
            curves.len() - 1
        });
        let mark = Mark { x: f64::from(cables), y: predicted.rate, ends: None };
        curves[at].marks.push(mark);
    }
    for curve in &mut curves {
        curve.marks.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let titles = Titles { x: "cables per link", y: unit, words: None, note: note.as_deref() };
    plot::curves(&titles, &curves)
}
