//! What a switch says of itself: any text is read or refused, and what is read is written again as a
//! text that means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_fabric::dialect::{Dialect, SwitchState, Templates, read};
use meikyo_fabric::{Parts, SwitchId, SwitchModel, Topology, cable};

fuzz_target!(|input: (u8, &str)| {
    let (choice, text) = input;
    let models: Vec<SwitchModel> = SwitchModel::names().filter_map(SwitchModel::named).collect();
    let model = models[usize::from(choice) % models.len()].clone();
    let Some(dialect) = Dialect::of_model(&model) else { return };
    let blank = SwitchState::blank(dialect, &model);
    let Ok(state) = read(dialect, &model, &blank, text) else { return };
    let graph = "ring 4".parse::<Topology>().expect("a topology").graph();
    let wiring = cable(&graph, Parts::uniform(&graph, &model, 8)).expect("fits");
    // A switch can be in states that no fabric has; those have no text.
    let Ok(again) = Templates::built_in().render(dialect, &wiring, SwitchId::new(0), &state) else {
        return;
    };
    let read_again = read(dialect, &model, &blank, &again).expect("its own text is understood");
    assert!(read_again.means_the_same(&state), "{text:?} became {again:?}");
});
