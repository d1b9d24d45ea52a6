//! The reference of all models and their keys, as a page.

use std::fmt::Write as _;

use crate::parameters::{Given, Key};
use crate::scenario::table::MODELS;

/// What stands above the models.
const BEGINNING: &str = "\
# Models and their keys

What `meikyo simulate` can run: a scenario file names its `model`, and writes the keys whose values differ
from the defaults. The page [simulation.md](simulation.md) says how to run one. This page is made from what
the models declare: `cargo run -p meikyo-models --example reference > docs/simulation-models.md`.
";

/// Every key of every model in Markdown: what is allowed, what holds unless it is written, and what it is
/// for. It is `docs/simulation-models.md`.
///
/// # Panics
/// Never: a text can always be written into.
pub fn reference() -> String {
    let mut page = BEGINNING.to_owned();
    for entry in MODELS {
        let about = entry.about();
        let table = "| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
        write!(page, "\n## `{}`\n\n{}\n\n{table}", about.name, about.doc).expect("it is a text");
        for key in entry.declared(&Given::default(), false).keys.iter() {
            page.push_str(&row(key));
        }
    }
    page
}

fn row(key: &Key) -> String {
    let default = key.default.map_or_else(String::new, |value| format!("`{value}`"));
    let needs = key.only_with.as_ref();
    let needs = needs.map_or_else(String::new, |needs| format!(" Only with `{needs}`."));
    format!("| `{}` | {} | {default} | {}{needs} |\n", key.name, key.expected, key.doc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Value;

    #[test]
    fn the_page_of_models_is_not_stale() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/simulation-models.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        let remedy =
            "run `cargo run -p meikyo-models --example reference > docs/simulation-models.md`";
        assert!(page == reference(), "{remedy}");
    }

    #[test]
    fn every_default_could_be_written_in_a_file() {
        for entry in MODELS {
            for key in entry.declared(&Given::default(), false).keys.iter() {
                let Some(default) = key.default else { continue };
                let read = Value::from_text(key.expected, &default.to_string());
                assert_eq!(read, Ok(default), "{} of {}", key.name, entry.about().name);
            }
        }
    }
}
