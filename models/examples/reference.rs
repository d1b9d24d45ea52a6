//! Prints the page of all models and their keys: `docs/simulation-models.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(meikyo_models::scenario::reference().as_bytes())
}
