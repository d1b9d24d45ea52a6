//! The examples hold what they say.

#[path = "../../examples/machine_repair.rs"]
mod machine_repair;
#[path = "../../examples/mm1.rs"]
mod mm1;
#[path = "../../examples/ring_of_switches.rs"]
mod ring_of_switches;

#[test]
fn mm1_waits_as_its_closed_form_says() {
    mm1::main().unwrap();
}

#[test]
fn the_repairer_is_as_busy_as_its_closed_form_says() {
    machine_repair::main().unwrap();
}

#[test]
fn a_ring_of_switches_loses_nothing_under_any_scheduler() {
    ring_of_switches::main().unwrap();
}

#[test]
fn the_first_example_is_read_at_a_glance() {
    assert!(include_str!("../../examples/mm1.rs").lines().count() <= 40);
}
