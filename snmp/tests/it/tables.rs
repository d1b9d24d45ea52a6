//! The reference of tables is what their declarations say.

use meikyo_recording::schema::{Hint, Role, State};
use meikyo_recording::summary::SUFFIX;
use meikyo_recording::{Kind, Recording, Selection, StreamOptions, StreamWriter};
use meikyo_snmp::tables::{self, Table, interfaces, polls};

#[test]
fn the_checked_in_reference_is_what_the_declarations_give() {
    let checked_in = include_str!("../../../docs/tables.md");
    assert!(
        checked_in == tables::reference(),
        "write it anew: cargo run -p meikyo-snmp --example tables > docs/tables.md"
    );
}

#[test]
fn rows_written_by_handle_are_read_by_the_names_of_the_documentation() {
    let dir = tempfile::tempdir().unwrap();
    let options = StreamOptions::COLLECTOR;
    let mut writer =
        StreamWriter::open(dir.path(), Kind::Measured, "snmp", tables::schemas(), options).unwrap();
    let (device, eth0) = (writer.symbol("node1"), writer.symbol("eth0"));
    let mut batch = writer.batch(Table::Interfaces.index());
    batch.begin_row(1_000_000_000);
    batch.put(interfaces::DEVICE, device);
    batch.put(interfaces::INTERFACE, eth0);
    batch.put(interfaces::OUT_DISCARDS, 17);
    batch.put(interfaces::PDU, 3);
    writer.submit(batch);
    writer.close().unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let mut rows = Vec::new();
    for batch in recording.scan(&Selection::all("interfaces")).unwrap() {
        rows.push(batch.unwrap());
    }
    assert_eq!(rows.len(), 1);
    assert_eq!(interfaces::INTERFACE.values_in(&rows[0]).unwrap().get(0), Some("eth0"));
    assert_eq!(interfaces::OUT_DISCARDS.values_in(&rows[0]).unwrap().get(0), Some(17));
    assert_eq!(interfaces::OUT_ERRORS.values_in(&rows[0]).unwrap().get(0), None);
    let names: Vec<_> = rows[0].schema().fields().iter().map(|of| of.name().clone()).collect();
    assert_eq!((&*names[10], &*names[15]), ("out_discards", "pdu"));
    // What was declared comes back from the files, too.
    let table = recording.table("interfaces").unwrap();
    assert_eq!((table.role(), table.answers()), (Role::Readings, Some(polls::NAME)));
    assert_eq!(table.hint(Hint::LineRate), Some(interfaces::SPEED_MBPS.position()));
    let found = recording.tables_for(Role::Answers).unwrap();
    assert_eq!(found.iter().map(|table| &*table.name).collect::<Vec<_>>(), ["polls"]);
    assert_eq!(found[0].columns[polls::STATE.position()].order, State::words());
    assert!(recording.tables().unwrap().contains_key(&format!("interfaces{SUFFIX}")));
}
