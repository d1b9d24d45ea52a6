//! Prints `docs/profile-tables.md`: every table of a profile, from its declaration.

#![expect(clippy::print_stdout, reason = "the text is what it is for")]

fn main() {
    print!("{}", meikyo_profile::tables::reference());
}
