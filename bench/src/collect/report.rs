//! What is printed for people.

use meikyo_console::output::TextTable;

use crate::collect::numbers::Numbers;

/// What a number is called, by its key, and in which unit it is printed.
const WORDS: [(&str, &str); 28] = [
    ("agents", "agents"),
    ("interval_ms", "interval, ms"),
    ("intervals", "intervals"),
    ("ok", "polls ok"),
    ("late", "polls late"),
    ("missed", "polls missed"),
    ("errors", "polls in error"),
    ("skipped", "polls skipped"),
    ("stalls", "own stalls"),
    ("values_verified", "values equal to the truth"),
    ("values_wrong", "values that differ from it"),
    ("completion_us_min", "interval kept, least, µs"),
    ("completion_us_median", "interval kept, median, µs"),
    ("completion_us_p99", "interval kept, p99, µs"),
    ("start_jitter_us_p99", "start jitter, p99, µs"),
    ("cpu_us_per_poll", "CPU per poll, µs"),
    ("bytes_per_value", "bytes per kept value"),
    ("peak_rss_bytes", "peak memory, bytes"),
    ("bare_cpu_us_per_poll", "bare loop per poll, µs"),
    ("cpu_ratio_to_bare", "ratio to the bare loop"),
    ("compactions", "segments compacted meanwhile"),
    ("compaction_seconds", "compacting, s"),
    ("memory_before_bytes", "memory before, bytes"),
    ("memory_compacting_bytes", "memory while compacting, bytes"),
    ("memory_after_bytes", "memory after, bytes"),
    ("spoiled_compacting", "late, missed, skipped while compacting"),
    ("spoiled_otherwise", "late, missed, skipped otherwise"),
    ("load_average_1min", "load average before"),
];

/// The medians, and every run beside them where there are several.
pub(crate) fn text(medians: &[(&'static str, f64)], runs: &[Numbers]) -> String {
    let mut headings = vec!["".to_owned()];
    if runs.len() > 1 {
        headings.push("median".into());
    }
    headings.extend((1..=runs.len()).map(|number| format!("run {number}")));
    let headings: Vec<_> = headings.iter().map(String::as_str).collect();
    let mut table = TextTable::new(&headings);
    let entries: Vec<_> = runs.iter().map(Numbers::entries).collect();
    for &(key, median) in medians {
        let mut cells = vec![word(key).to_owned()];
        if runs.len() > 1 {
            cells.push(figure(median));
        }
        let of_run = |entries: &Vec<(&str, f64)>| {
            let found = entries.iter().find(|(other, _)| *other == key);
            found.map_or_else(String::new, |&(_, value)| figure(value))
        };
        cells.extend(entries.iter().map(of_run));
        table.row(cells);
    }
    table.to_string()
}

fn word(key: &'static str) -> &'static str {
    WORDS.iter().find(|(other, _)| *other == key).map_or(key, |(_, word)| word)
}

/// A number with as many decimals as it needs; a dash where there is none.
pub(crate) fn figure(value: f64) -> String {
    if value.is_nan() {
        "-".into()
    } else if value.fract().abs() < 5e-4 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::compaction::Compactions;
    use crate::collect::numbers::medians;

    #[test]
    fn every_number_has_a_word_for_people() {
        let compactions = Compactions { count: 1, ..Compactions::default() };
        let run = Numbers {
            bare_cpu_us_per_poll: Some(2.0),
            values_wrong: 1,
            compactions,
            ..Numbers::default()
        };
        for (key, _) in run.entries() {
            assert!(WORDS.iter().any(|(other, _)| *other == key), "`{key}` has no word");
        }
    }

    #[test]
    fn several_runs_stand_beside_their_median() {
        let runs =
            [1.0, 3.0, 2.5].map(|cpu| Numbers { cpu_us_per_poll: cpu, ..Numbers::default() });
        let text = text(&medians(&runs), &runs);
        let line = text.lines().find(|line| line.starts_with("CPU per poll")).unwrap();
        let cells: Vec<_> = line.split_whitespace().skip(4).collect();
        assert_eq!(cells, ["2.50", "1", "3", "2.50"]);
    }
}
