//! The page that describes the tables is what the declarations say.

use meikyo_profile::tables;

#[test]
fn the_page_of_the_tables_is_what_the_declarations_say() {
    let checked_in = include_str!("../../../docs/profile-tables.md");
    assert!(
        checked_in == tables::reference(),
        "write it anew: cargo run -p meikyo-profile --example profile_tables > docs/profile-tables.md"
    );
}

#[test]
fn every_table_has_what_its_role_promises_and_a_name_of_its_own() {
    let mut names: Vec<_> = tables::all().into_iter().map(|table| table.name).collect();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for table in tables::all() {
        assert_eq!(table.role().lacks(&table), None, "{}", table.name);
    }
}
