//! The laws of texts, for a PowerConnect.

use proptest::prelude::*;

use crate::SwitchSettings;
use crate::dialect::Dialect;
use crate::dialect::state::SwitchState;
use crate::dialect::vendors::laws;

fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(12, (10_u64..1_000_000).prop_map(Some))
}

fn dialect() -> Dialect {
    super::NAME.parse().expect("the table has it")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_powerconnect_text_says_the_settings(own in settings()) {
        laws::says_the_settings(dialect(), &laws::wiring(super::NAME), own)?;
    }

    #[test]
    fn a_powerconnect_is_changed_from_any_settings_to_any(
        before in settings(), after in settings(),
        managed in prop::array::uniform2(prop::sample::select(vec![1_u16, 101, 300])),
    ) {
        let [first, second] = managed.map(|id| Some(laws::vlan(id)));
        let before = SwitchState::managed(before, first);
        let after = SwitchState::managed(after, second);
        laws::changes(dialect(), &laws::wiring(super::NAME), before, after)?;
    }
}
