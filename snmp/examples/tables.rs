//! Prints `docs/tables.md`: every table of the engine, from its declaration.

#![expect(clippy::print_stdout, reason = "the text is what it is for")]

fn main() {
    print!("{}", meikyo_snmp::tables::reference());
}
