//! Blocks of rows that an engine writes batch by batch.
//!
//! A collector hands its batches to its own recording, and what is sent elsewhere is made of copies of
//! them beside it: a [`Gather`] takes batches of one table and makes packed rows of what has come. It
//! spends little time, so the columns stay as wide as the codec of rows has them, uncompressed; who sends
//! them makes them short.
//!
//! The rows of a block are in the order of their labels, then as they came: the blocks of two intervals
//! then differ in their readings and in little else, whatever order the answers came in.

use super::{PackError, PackedRows};
use crate::batch::{Batch, ColumnBuffer};
use crate::log::{narrow_u32, packed};
use crate::schema::{ColumnKind, Meaning, TableSchema};

/// Labels that rows are ordered by, at most; those behind are hardly ever there.
const ORDERED_BY_MAX: usize = 3;

/// Symbols that are counted to order rows by them, at most; and for each row, where there are many.
const COUNTED_MIN: usize = 4_096;
const COUNTED_PER_ROW: usize = 8;

/// Octets of a value, and of a text that a row names, at most and as a rule.
const CELL_BYTES: usize = 8;
const TEXT_BYTES: usize = 64;

/// Values of a block at most: what tells changes ([`crate::DeltaEncoder`]) has to have room for as many new ones.
const VALUES_MAX: usize = 1 << 17;

/// What stands for a text that the block does not have yet.
const UNSEEN: u32 = u32::MAX;

/// Rows of one table that wait to become blocks.
#[derive(Debug)]
pub struct Gather {
    schema: TableSchema,
    /// Labels that are symbols, as far as rows are ordered by them.
    labels: Vec<usize>,
    waiting: Batch,
    block: Batch,
    order: Vec<(u64, u32)>,
    /// What ordering takes.
    ordered: Vec<(u64, u32)>,
    begins: Vec<u32>,
    /// By symbol of the stream, its place among the texts of the block that is being made.
    places: Vec<u32>,
    /// The symbols of the stream in the block, by their places.
    used: Vec<u32>,
    /// About how many octets a row takes, by the longest block of the last ones; rather more.
    octets_a_row: usize,
}

impl Gather {
    /// Nothing of a table yet.
    pub fn new(schema: TableSchema) -> Self {
        let is_label = |at: &usize| {
            let column = &schema.columns[*at];
            column.kind == ColumnKind::Symbol && column.meaning == Meaning::Label
        };
        let labels = (0..schema.columns.len()).filter(is_label).take(ORDERED_BY_MAX).collect();
        let (waiting, block) = (Batch::new(0, &schema), Batch::new(0, &schema));
        let (order, ordered, begins) = (Vec::new(), Vec::new(), Vec::new());
        let (places, used) = (Vec::new(), Vec::new());
        let octets_a_row = CELL_BYTES * schema.columns.len() + TEXT_BYTES;
        Self { schema, labels, waiting, block, order, ordered, begins, places, used, octets_a_row }
    }

    /// The rows that wait.
    pub fn rows(&self) -> usize {
        self.waiting.rows()
    }

    /// The least and the greatest time of the rows that wait; 0 without any.
    pub fn times(&self) -> (i64, i64) {
        self.waiting.times()
    }

    /// Takes the rows of a batch of the table, which is empty then; their symbols are those of their stream.
    ///
    /// # Panics
    /// If the batch is of another table.
    pub fn append(&mut self, rows: &mut Batch) {
        assert_eq!(rows.columns.len(), self.waiting.columns.len(), "rows are of the table");
        if self.waiting.rows == 0 {
            std::mem::swap(&mut self.waiting.columns, &mut rows.columns);
            std::mem::swap(&mut self.waiting.rows, &mut rows.rows);
        } else {
            self.waiting.append(rows);
        }
        rows.clear();
    }

    /// Blocks of all rows that wait; none takes more than `octets_max`, unless it has a single row. `words` are the
    /// texts of the stream's symbols. Nothing waits any more, also after an error.
    ///
    /// # Errors
    /// When texts are longer than a block may be.
    pub fn pack(
        &mut self,
        words: &[String],
        octets_max: usize,
    ) -> Result<Vec<PackedRows>, PackError> {
        self.sort();
        let order = std::mem::take(&mut self.order);
        let values_max = VALUES_MAX / self.schema.columns.len().max(1);
        let rows_max = (octets_max / self.octets_a_row).min(values_max).max(1);
        let mut blocks = Vec::new();
        let mut parts = order.chunks(rows_max);
        let packed =
            parts.try_for_each(|part| self.pack_part(part, words, octets_max, &mut blocks));
        self.order = order;
        self.waiting.clear();
        // In a block of few rows their texts weigh more.
        if let Some(longest) = blocks.iter().max_by_key(|block: &&PackedRows| block.rows()) {
            let octets = longest.payload.len() / longest.rows();
            self.octets_a_row = octets + octets / 4 + 1;
        }
        packed.map(|()| blocks)
    }

    /// Makes a block of some rows, or of each half of them where they take too many octets.
    fn pack_part(
        &mut self,
        part: &[(u64, u32)],
        words: &[String],
        octets_max: usize,
        blocks: &mut Vec<PackedRows>,
    ) -> Result<(), PackError> {
        match self.block_of(part, words) {
            Ok(block) if part.len() == 1 || block.payload.len() <= octets_max => {
                blocks.push(block);
                Ok(())
            }
            Err(error) if part.len() == 1 => Err(error),
            _ => {
                let (first, second) = part.split_at(part.len() / 2);
                self.pack_part(first, words, octets_max, blocks)?;
                self.pack_part(second, words, octets_max, blocks)
            }
        }
    }

    /// A block of some of the rows of a batch, in their order.
    pub(super) fn some_of(
        mut self,
        rows: Batch,
        kept: &[usize],
        words: &[String],
    ) -> Result<PackedRows, PackError> {
        self.waiting = rows;
        let part: Vec<_> = kept.iter().map(|&row| (0, narrow_u32(row))).collect();
        self.block_of(&part, words)
    }

    fn sort(&mut self) {
        let rows = self.waiting.rows;
        self.order.clear();
        self.order.extend((0..rows).map(|row| (0, narrow_u32(row))));
        // As many labels as a key has room for; what each of those behind the first takes of it.
        let (mut taken, mut others) = (0, 0);
        for (number, &at) in self.labels.iter().enumerate() {
            let column = &self.waiting.columns[at];
            let greatest = column.bits.iter().max().map_or(0, |bits| bits + 1);
            let bits = u64::BITS - greatest.leading_zeros();
            taken += bits;
            if taken > u64::BITS {
                break;
            }
            others += if number > 0 { bits } else { 0 };
            let is_full = column.bits.len() == rows && column.nulls.iter().all(|&word| word == 0);
            for (key, row) in &mut self.order {
                let row = *row as usize;
                let is_there = is_full || !column.is_null(row);
                let symbol = if is_there { column.bits[row] + 1 } else { 0 };
                *key = key.unbounded_shl(bits) | symbol;
            }
        }
        if !self.order.is_sorted() {
            self.sort_by_first_label(others);
        }
        // The rows of an answer come in the order of their other labels as a rule.
        if !self.order.is_sorted() {
            self.order.sort_unstable();
        }
    }

    /// Orders rows by their first label, by counting, and leaves rows that have the same one in their order; where
    /// symbols are few enough for that. The other labels take so many bits of a key.
    fn sort_by_first_label(&mut self, others: u32) {
        let most = COUNTED_MIN.max(COUNTED_PER_ROW * self.order.len());
        let first = |key: u64| usize::try_from(key.unbounded_shr(others)).ok();
        let greatest = self.order.iter().filter_map(|&(key, _)| first(key)).max();
        let Some(greatest) = greatest.filter(|greatest| *greatest < most) else { return };
        // Where the rows of each label begin.
        self.begins.clear();
        self.begins.resize(greatest + 2, 0);
        for &(key, _) in &self.order {
            self.begins[first(key).expect("it is below the greatest") + 1] += 1;
        }
        let mut before = 0;
        for begin in &mut self.begins {
            before += *begin;
            *begin = before;
        }
        self.ordered.clear();
        self.ordered.resize(self.order.len(), (0, 0));
        for &(key, row) in &self.order {
            let begin = &mut self.begins[first(key).expect("it is below the greatest")];
            self.ordered[*begin as usize] = (key, row);
            *begin += 1;
        }
        std::mem::swap(&mut self.order, &mut self.ordered);
    }

    fn block_of(&mut self, part: &[(u64, u32)], words: &[String]) -> Result<PackedRows, PackError> {
        self.block.clear();
        self.block.rows = part.len();
        self.used.clear();
        self.places.resize(words.len(), UNSEEN);
        let rows = self.waiting.rows;
        for (from, to) in self.waiting.columns.iter().zip(&mut self.block.columns) {
            if from.kind == ColumnKind::Text {
                copy_texts(from, part, to);
            } else {
                copy_bits(from, rows, part, to);
            }
            if from.kind == ColumnKind::Symbol {
                number(to, &mut self.places, &mut self.used);
            }
        }
        let texts: Vec<&str> = self.used.iter().map(|&symbol| &*words[symbol as usize]).collect();
        self.used.iter().for_each(|&symbol| self.places[symbol as usize] = UNSEEN);
        let times = self.block.times();
        let payload = packed::pack_plain(&self.schema, &mut self.block, &texts)?;
        let (table, rows) = (self.schema.name.clone(), part.len());
        let checksum = crc32fast::hash(&payload);
        Ok(PackedRows { table, rows, times, payload, checksum, origin: None })
    }
}

/// Copies some of the `rows` rows of a column.
fn copy_bits(from: &ColumnBuffer, rows: usize, part: &[(u64, u32)], to: &mut ColumnBuffer) {
    if from.bits.is_empty() {
        return;
    }
    if from.bits.len() == rows && from.nulls.iter().all(|&word| word == 0) {
        return to.bits.extend(part.iter().map(|&(_, row)| from.bits[row as usize]));
    }
    for (at, &(_, row)) in part.iter().enumerate() {
        let row = row as usize;
        if from.is_null(row) {
            to.set_null(at);
            to.bits.push(0);
        } else {
            to.bits.push(from.bits[row]);
        }
    }
}

fn copy_texts(from: &ColumnBuffer, part: &[(u64, u32)], to: &mut ColumnBuffer) {
    for (at, &(_, row)) in part.iter().enumerate() {
        let row = row as usize;
        if from.is_null(row) {
            continue;
        }
        let begin = row.checked_sub(1).map_or(0, |before| from.bits[before]);
        let ends = [begin, from.bits[row]].map(|end| usize::try_from(end).expect("64 bits"));
        to.pad(at);
        to.octets.extend_from_slice(&from.octets[ends[0]..ends[1]]);
        to.bits.push(to.octets.len() as u64);
    }
}

/// Puts places among the texts of the block where symbols of the stream are.
fn number(column: &mut ColumnBuffer, places: &mut [u32], used: &mut Vec<u32>) {
    let nulls = std::mem::take(&mut column.nulls);
    let is_null = |row: usize| nulls.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1);
    let is_full = nulls.iter().all(|&word| word == 0);
    for (row, bits) in column.bits.iter_mut().enumerate() {
        if !is_full && is_null(row) {
            continue;
        }
        let symbol = usize::try_from(*bits).expect("a symbol has 32 bits");
        let place = &mut places[symbol];
        if *place == UNSEEN {
            *place = narrow_u32(used.len());
            used.push(narrow_u32(symbol));
        }
        *bits = u64::from(*place);
    }
    column.nulls = nulls;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::batch::Symbol;
    use crate::schema::Column;

    const WORDS: [&str; 5] = ["node003", "ok", "node001", "eth0", "node002"];

    fn schema() -> TableSchema {
        let column = |name, kind, meaning| Column::new(name, kind, meaning, "");
        TableSchema::new(
            "t",
            "",
            vec![
                column("device", ColumnKind::Symbol, Meaning::Label),
                column("value", ColumnKind::U64, Meaning::Gauge),
                column("text", ColumnKind::Text, Meaning::Detail),
                column("state", ColumnKind::Symbol, Meaning::State),
            ],
        )
    }

    type Row = (i64, Option<u8>, Option<u64>, Option<String>, Option<u8>);

    fn batch_of(rows: &[Row]) -> Batch {
        let mut batch = Batch::new(3, &schema());
        for (time, device, value, text, state) in rows {
            batch.begin_row(*time);
            if let Some(device) = device {
                batch.put_symbol(1, Symbol(u32::from(device % 5)));
            }
            if let Some(value) = value {
                batch.put_u64(2, *value);
            }
            if let Some(text) = text {
                batch.put_text(3, text);
            }
            if let Some(state) = state {
                batch.put_symbol(4, Symbol(u32::from(state % 5)));
            }
        }
        batch
    }

    type Read = (Option<String>, i64, Option<u64>, Option<String>, Option<String>);

    fn read(block: &PackedRows) -> Vec<Read> {
        let (batch, texts) = block.unpack(&schema()).unwrap();
        let word = |column, row| {
            let place = usize::try_from(batch.bits(column, row)?).unwrap();
            Some(texts[place].clone())
        };
        let row = |row| {
            let time = batch.bits(0, row).unwrap().cast_signed();
            let text = batch.text(3, row).map(str::to_owned);
            (word(1, row), time, batch.bits(2, row), text, word(4, row))
        };
        (0..batch.rows()).map(row).collect()
    }

    proptest! {
        #[test]
        fn blocks_hold_the_rows_that_came_in_the_order_of_their_labels(
            batches: Vec<Vec<Row>>, octets_max in 1_usize..400
        ) {
            let words: Vec<String> = WORDS.map(str::to_owned).into();
            let mut gather = Gather::new(schema());
            batches.iter().for_each(|rows| gather.append(&mut batch_of(rows)));
            prop_assert_eq!(gather.rows(), batches.iter().map(Vec::len).sum::<usize>());
            let blocks = gather.pack(&words, octets_max).unwrap();
            prop_assert_eq!(gather.rows(), 0);
            let fits = |block: &PackedRows| block.rows() == 1 || block.payload().len() <= octets_max;
            prop_assert!(blocks.iter().all(fits));
            let found: Vec<Read> = blocks.iter().flat_map(read).collect();
            // By device, in the order in which they came.
            let mut expected: BTreeMap<Option<u32>, Vec<Read>> = BTreeMap::new();
            for (time, device, value, text, state) in batches.into_iter().flatten() {
                let word = |symbol: u8| words[usize::from(symbol % 5)].clone();
                let row = (device.map(word), time, value, text, state.map(word));
                expected.entry(device.map(|of| u32::from(of % 5))).or_default().push(row);
            }
            prop_assert_eq!(found, expected.into_values().flatten().collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn some_rows_of_a_block_are_these_rows(rows: Vec<Row>, kept: u64) {
            prop_assume!(!rows.is_empty());
            let words: Vec<String> = WORDS.map(str::to_owned).into();
            let mut gather = Gather::new(schema());
            gather.append(&mut batch_of(&rows));
            let block = gather.pack(&words, usize::MAX).unwrap().remove(0);
            let is_kept = |row: usize| kept >> (row % 64) & 1 == 1;
            let some = block.retain(&schema(), |_, _, row| is_kept(row)).unwrap();
            let all = read(&block).into_iter().enumerate();
            let expected: Vec<Read> = all.filter(|(row, _)| is_kept(*row)).map(|(_, of)| of).collect();
            prop_assert_eq!(some.as_ref().map(read).unwrap_or_default(), expected);
        }
    }

    #[test]
    fn the_times_of_a_block_are_those_of_its_rows() {
        let row = |time, device| (time, Some(device), None, None, None);
        let mut gather = Gather::new(schema());
        gather.append(&mut batch_of(&[row(7, 2), row(5, 0), row(9, 4)]));
        let words: Vec<String> = WORDS.map(str::to_owned).into();
        let row_of_two = gather.pack(&words, usize::MAX).unwrap()[0].payload().len() - 1;
        gather.append(&mut batch_of(&[row(7, 2), row(5, 0), row(9, 4)]));
        let blocks = gather.pack(&words, row_of_two).unwrap();
        let times: Vec<_> = blocks.iter().map(PackedRows::times).collect();
        assert_eq!(times, [(5, 7), (9, 9)]);
        let again = PackedRows::received(blocks[0].payload().to_vec(), blocks[0].checksum());
        assert_eq!(again.as_ref(), Ok(&blocks[0]));
    }

    /// Rows of a node, of which the last one, of another node, has a text of so many octets.
    fn ending_with(text: usize) -> Vec<Row> {
        let mut rows = vec![(5, Some(0), Some(7), None, None); 999];
        rows.push((5, Some(4), Some(7), Some("x".repeat(text)), None));
        rows
    }

    #[test]
    fn a_short_block_with_much_text_makes_later_blocks_no_shorter() {
        let words: Vec<String> = WORDS.map(str::to_owned).into();
        let mut gather = Gather::new(schema());
        let octets_max = 999 * gather.octets_a_row;
        for blocks in [2, 1] {
            gather.append(&mut batch_of(&ending_with(if blocks == 2 { 10_000 } else { 0 })));
            assert_eq!(gather.pack(&words, octets_max).unwrap().len(), blocks);
        }
    }

    #[test]
    fn a_block_has_only_so_many_values() {
        let rows = 2 * VALUES_MAX / schema().columns.len();
        let mut gather = Gather::new(schema());
        gather.append(&mut batch_of(&vec![(5, Some(0), Some(7), None, None); rows]));
        let words: Vec<String> = WORDS.map(str::to_owned).into();
        let blocks = gather.pack(&words, usize::MAX).unwrap();
        let values = |block: &PackedRows| block.rows() * schema().columns.len();
        assert!(blocks.iter().all(|block| values(block) <= VALUES_MAX), "{} blocks", blocks.len());
        assert_eq!(blocks.iter().map(PackedRows::rows).sum::<usize>(), rows);
    }
}
