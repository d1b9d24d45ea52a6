//! The order in which switches are told their settings, so that nothing goes round on the way.
//!
//! A fabric has loops that only VLANs break. Between the settings that the switches have and those
//! that are planned lie as many states as there are steps, and a frame that goes round in one of them
//! takes the whole network, and the manager's way to the switches, with it. So the order is planned,
//! and each state that is passed through is checked by [`check_state`], which knows nothing of it:
//! no VLAN may have a loop that a spanning tree protocol does not guard, and the manager must reach
//! every switch.
//!
//! From factory settings, with loops guarded by a spanning tree protocol in VLAN 1:
//!
//! 1. the trunks that the tree of the management VLAN does without are shut down, and all cables but
//!    one of bundles: now nothing can go round, whatever is set;
//! 2. each switch gets its settings, its protocol goes off, and VLAN 1 stays for the manager;
//! 3. bundles come up beside the cable that is left;
//! 4. each switch is reached in the management VLAN instead;
//! 5. VLAN 1 goes;
//! 6. the other trunks come up, with the planned VLANs only.
//!
//! A switch that is somewhere on that way already, as after a deployment that ended early, is taken
//! from where it is.
//!
//! From one fabric to another: first trunks lose what they shall not carry any more, then they gain
//! what is new; the management VLAN and its tree stay as they are.

mod guard;
mod order;
mod safety;

use std::fmt;

use thiserror::Error;

use crate::dialect::{Dialect, RenderError, SwitchState, Templates};
use crate::{Configuration, HostId, SwitchId, Vlan, Wiring};

pub use guard::{confirmation, guarded_delivery, guarded_script, lost_session};
pub use safety::{Danger, check_state};

/// A change of one switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The switch that the step changes.
    pub switch: SwitchId,
    /// What the step is for.
    pub why: Why,
    /// The state that the switch is in before the step.
    pub before: SwitchState,
    /// The state that the step leads to.
    pub after: SwitchState,
}

/// Why a switch is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Shut what could become a loop.
    Shut,
    /// Set everything but what the manager still needs.
    Set,
    /// Bring up bundles beside the cable that is left.
    Bundle,
    /// Reach the switch in the management VLAN.
    Manage,
    /// Take away the VLAN that the manager used before.
    Leave,
    /// Open the trunks that were shut, with the planned VLANs only.
    Open,
    /// Take away what trunks shall not carry any more.
    Narrow,
    /// Add what trunks shall carry, and set the rest.
    Widen,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shut => "shut what could become a loop",
            Self::Set => "set everything but what the manager still needs",
            Self::Bundle => "bring up bundles beside the cable that is left",
            Self::Manage => "reach the switch in the management VLAN",
            Self::Leave => "take away the VLAN that the manager used before",
            Self::Open => "open the other trunks",
            Self::Narrow => "take away what trunks shall not carry any more",
            Self::Widen => "add what trunks shall carry, and set the rest",
        })
    }
}

/// Why there is no order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeployError {
    /// A state that is passed through is not safe.
    #[error("{}", describe(*.step, .switch))]
    Unsafe {
        /// The number of the step, the first being 1; 0 is the state that the switches have now.
        step: usize,
        /// The switch that the step changes.
        switch: String,
        /// The danger that the network is in then.
        source: Danger,
    },
    /// The management VLAN is the one that is used now.
    #[error(
        "the management VLAN {vlan} is the one in which the switches are reached now, over all \
         trunks; choose another one, so that both are there for a while"
    )]
    SameManagement {
        /// The VLAN that the switches are managed in now, and shall be.
        vlan: Vlan,
    },
}

fn describe(step: usize, switch: &str) -> String {
    match step {
        0 => "the switches are not safe as they are now".to_owned(),
        _ => {
            format!("there is no safe order: after step {step}, at `{switch}`, something is wrong")
        }
    }
}

/// The states that a configuration means: settings, and the management VLAN.
pub fn planned_states(configuration: &Configuration, management: Option<Vlan>) -> Vec<SwitchState> {
    let settings = configuration.switches.iter().cloned();
    settings.map(|settings| SwitchState::managed(settings, management)).collect()
}

/// The steps from the states that the switches have to the planned ones, in order; each state that
/// is passed through is checked. Without a `manager` nothing has to be reachable.
///
/// Steps are at most six for each switch; each is checked in time linear in trunks times VLANs.
///
/// # Errors
/// If no safe order is known.
pub fn plan_deployment(
    wiring: &Wiring,
    now: &[SwitchState],
    planned: &[SwitchState],
    manager: Option<HostId>,
) -> Result<Vec<Step>, DeployError> {
    let from_protocol = || order::from_protocol(wiring, now, planned, manager);
    let from_fabric = || Ok(order::from_fabric(wiring, now, planned));
    let orders: [&dyn Fn() -> Result<Vec<Step>, DeployError>; 2] =
        match now.iter().any(|state| state.settings.spanning_tree) {
            true => [&from_protocol, &from_fabric],
            // What looks like a fabric may be half on its way from the factory.
            false => [&from_fabric, &from_protocol],
        };
    let [first, second] = orders.map(|order| {
        let steps = order()?;
        check_steps(wiring, now, &steps, manager).map(|()| steps)
    });
    first.or_else(|error| second.map_err(|_| error))
}

/// Checks the state before the first step, and after each.
///
/// # Errors
/// If one of them is not safe.
pub fn check_steps(
    wiring: &Wiring,
    now: &[SwitchState],
    steps: &[Step],
    manager: Option<HostId>,
) -> Result<(), DeployError> {
    let mut states = now.to_vec();
    let check = |states: &[SwitchState], step: usize, switch: &str| {
        check_state(wiring, states, manager).map_err(|source| DeployError::Unsafe {
            step,
            switch: switch.to_owned(),
            source,
        })
    };
    check(&states, 0, "")?;
    for (number, step) in (1..).zip(steps) {
        states[step.switch.place()] = step.after.clone();
        check(&states, number, &wiring.switches[step.switch.place()].name)?;
    }
    Ok(())
}

/// The texts of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTexts {
    /// What is typed, or run.
    pub apply: String,
    /// What takes it back, also if it was carried out in part.
    pub roll_back: String,
}

/// The texts of a step in the dialect of its switch.
///
/// # Errors
/// If the dialect cannot say it.
pub fn step_texts(
    templates: &Templates,
    dialect: Dialect,
    wiring: &Wiring,
    step: &Step,
) -> Result<StepTexts, RenderError> {
    let Step { switch, before, after, .. } = step;
    let apply = templates.render_change(dialect, wiring, *switch, before, after)?;
    let back = templates.render_back(dialect, wiring, *switch, after, before)?;
    // The step may have been carried out in part.
    Ok(StepTexts { apply, roll_back: dialect.tolerant(back) })
}
