//! The laws of texts, for a PowerConnect.

use proptest::prelude::*;

use crate::SwitchSettings;
use crate::dialect::Dialect;
use crate::dialect::vendors::laws;

fn settings() -> impl Strategy<Value = SwitchSettings> {
    laws::typed_settings(12, (10_u64..1_000_000).prop_map(Some))
}

fn dialect() -> Dialect {
    super::NAME.parse().expect("the table has it")
}

laws::hold!(dialect(), super::NAME, settings());
