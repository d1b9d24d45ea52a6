//! Values per series and pixel while an answer is put together.

/// What a pixel of a series holds; nothing while its weight is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The least value.
    pub min: f32,
    /// The mean, weighted by `weight`.
    pub mean: f32,
    /// The greatest value.
    pub max: f32,
    /// What the mean is weighted by: readings, or µs in which a rate is known.
    pub weight: f32,
    /// How many readings there are in it.
    pub count: u32,
}

impl Cell {
    const NONE: Self =
        Self { min: f32::INFINITY, mean: 0.0, max: f32::NEG_INFINITY, weight: 0.0, count: 0 };

    /// Takes another one into itself.
    #[inline]
    pub(crate) fn add(&mut self, other: &Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        let weight = self.weight + other.weight;
        if weight > 0.0 {
            self.mean += (other.mean - self.mean) * (other.weight / weight);
            self.weight = weight;
        }
    }

    /// Folds the cell of a neighbouring series into itself: the extremes of both, the greater mean.
    fn fold(&mut self, other: &Self) {
        let mean = if self.weight > 0.0 { self.mean.max(other.mean) } else { other.mean };
        self.add(other);
        self.mean = mean;
    }

    /// Whether there is a value.
    pub fn is_some(&self) -> bool {
        self.weight > 0.0
    }
}

/// The pixels of the chosen series.
#[derive(Debug)]
pub struct Cells {
    /// The row of each series by its number; `None` where it was not chosen.
    rows: Vec<Option<u32>>,
    /// The number of the series, or of the first series of the row.
    of_rows: Vec<u32>,
    width: usize,
    /// Row after row; a row without a value is empty.
    cells: Vec<Vec<Cell>>,
}

impl Cells {
    pub(crate) fn new(chosen: &[u32], width: usize) -> Self {
        let most = chosen.iter().max().map_or(0, |most| *most as usize + 1);
        let mut rows = vec![None; most];
        for (row, &series) in (0..).zip(chosen) {
            rows[series as usize] = Some(row);
        }
        Self { rows, of_rows: chosen.to_vec(), width, cells: vec![Vec::new(); chosen.len()] }
    }

    /// The pixels of a series; `None` when it was not chosen.
    #[inline]
    pub(crate) fn of_series(&mut self, series: u32) -> Option<&mut [Cell]> {
        let row = (*self.rows.get(series as usize)?)?;
        let cells = &mut self.cells[row as usize];
        if cells.is_empty() {
            cells.resize(self.width, Cell::NONE);
        }
        Some(cells)
    }

    /// Folds neighbouring rows until at most `most` are left; how many went into one.
    pub(crate) fn fold(&mut self, most: u32) -> u32 {
        let rows = u32::try_from(self.cells.len()).expect("at most `CELLS_MAX` rows");
        let factor = rows.div_ceil(most.max(1)).max(1);
        if factor == 1 {
            return 1;
        }
        let mut folded: Vec<Vec<Cell>> = Vec::new();
        for group in self.cells.chunks_mut(factor as usize) {
            let mut into = std::mem::take(&mut group[0]);
            for from in &mut group[1..] {
                if into.is_empty() {
                    into = std::mem::take(from);
                    continue;
                }
                for (into, from) in into.iter_mut().zip(&*from).filter(|(_, from)| from.is_some()) {
                    into.fold(from);
                }
                from.clear();
            }
            folded.push(into);
        }
        self.cells = folded;
        self.of_rows = self.of_rows.iter().copied().step_by(factor as usize).collect();
        factor
    }

    /// The rows that have a value: number of the row, number of its first series, pixels.
    pub fn rows(&self) -> impl Iterator<Item = (u32, u32, &[Cell])> {
        let rows = (0..).zip(&self.of_rows).zip(&self.cells);
        rows.filter(|(_, cells)| !cells.is_empty())
            .map(|((row, &series), cells)| (row, series, cells.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(value: f32, weight: f32) -> Cell {
        Cell { min: value, mean: value, max: value, weight, count: 1 }
    }

    #[test]
    fn means_are_weighted_and_extremes_kept() {
        let mut sum = Cell::NONE;
        assert!(!sum.is_some());
        sum.add(&cell(1.0, 3.0));
        sum.add(&cell(5.0, 1.0));
        assert_eq!(sum, Cell { min: 1.0, mean: 2.0, max: 5.0, weight: 4.0, count: 2 });
        // A spike stays, whatever comes after it.
        sum.add(&cell(2.0, 4.0));
        assert_eq!(sum, Cell { min: 1.0, mean: 2.0, max: 5.0, weight: 8.0, count: 3 });
    }

    #[test]
    fn neighbouring_rows_fold_by_their_greatest() {
        let mut cells = Cells::new(&[2, 3, 7, 8, 9], 2);
        for (series, value) in [(2, 1.0), (3, 4.0), (9, -3.0)] {
            cells.of_series(series).unwrap()[1].add(&cell(value, 1.0));
        }
        assert!(cells.of_series(4).is_none() && cells.of_series(100).is_none());
        assert_eq!(cells.fold(3), 2);
        let rows: Vec<_> =
            cells.rows().map(|(row, series, cells)| (row, series, cells[1])).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].0, rows[0].1, rows[0].2.max, rows[0].2.mean), (0, 2, 4.0, 4.0));
        assert_eq!((rows[1].0, rows[1].1, rows[1].2.mean), (2, 9, -3.0));
    }
}
