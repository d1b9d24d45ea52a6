//! The model of a switch: built in, or described in the file.

use meikyo_cluster::{Device, Fabric, Model, Place};

use super::{DescribeError, wrong};
use crate::{Learning, SwitchModel};

/// The model of switches for which the file names none.
const UNNAMED: &str = "generic";

/// The model that the file gives a switch.
pub(super) fn model_of(fabric: &Fabric, switch: &Device) -> Result<SwitchModel, DescribeError> {
    let (name, place) = match (&switch.model, &fabric.model) {
        (Some(name), _) => (name.as_str(), switch.place),
        (None, Some(stated)) => (stated.value.as_str(), stated.place),
        (None, None) => (UNNAMED, fabric.place),
    };
    match fabric.models.iter().find(|model| model.name == name) {
        Some(model) => described(model),
        None => built_in(name, place, "model"),
    }
}

fn built_in(name: &str, place: Place, key: &'static str) -> Result<SwitchModel, DescribeError> {
    SwitchModel::named(name).ok_or_else(|| {
        let known: Vec<String> = SwitchModel::names().map(|name| format!("`{name}`")).collect();
        let text = format!(
            "`{name}` is no model; built in are {}, others are described in `[fabric.models.NAME]`",
            known.join(", ")
        );
        wrong(place, key, text)
    })
}

fn described(model: &Model) -> Result<SwitchModel, DescribeError> {
    let like = match &model.like {
        Some(stated) => built_in(&stated.value, stated.place, "like")?,
        None => built_in(UNNAMED, model.place, "like")?,
    };
    let short = |value: Option<u32>, otherwise: u16| {
        let short = |value| u16::try_from(value).expect("the cluster file allows 4096 at most");
        value.map_or(otherwise, short)
    };
    let ports = short(model.ports, like.ports);
    Ok(SwitchModel {
        name: model.name.clone(),
        ports,
        table_entries: model.table_entries.unwrap_or(like.table_entries),
        vlans: short(model.vlans, like.vlans),
        bundle_ports: short(model.bundle_ports, like.bundle_ports),
        bundles: like.bundles.max(ports),
        multi_untagged: model.multi_untagged.unwrap_or(like.multi_untagged),
        learning: match model.shared_learning {
            Some(true) => Learning::Shared,
            Some(false) => Learning::Independent,
            None => like.learning,
        },
        ageing_min: model.ageing_min.unwrap_or(like.ageing_min),
        ageing_max: model.ageing_max.or(like.ageing_max),
        default_vlan_stays: model.vlan_1_stays.unwrap_or(like.default_vlan_stays),
        vlan_ids: like.vlan_ids,
    })
}
