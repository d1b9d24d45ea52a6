//! What is done to a lab that runs: priming, cutting and mending links.

use std::collections::BTreeSet;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_fabric::priming_period;
use meikyo_lab::{Done, Purpose, Task};

use super::{Model, Which, model, roles};

/// Arguments of `meikyo lab prime`.
#[derive(Debug, Args)]
pub(super) struct PrimeArgs {
    #[command(flatten)]
    which: Which,
}

/// Arguments of `meikyo lab cut` and `meikyo lab mend`.
#[derive(Debug, Args)]
pub(super) struct CutArgs {
    #[command(flatten)]
    which: Which,
    /// The two switches
    #[arg(value_name = "SWITCH:SWITCH")]
    link: String,
    /// Which of several cables, from 1 [default: all of them]
    #[arg(long, value_name = "N")]
    cable: Option<usize>,
}

pub(super) fn prime(args: &PrimeArgs) -> Result<Answer, Failure> {
    let (directory, record) = args.which.record()?;
    let Model { wiring, configuration, .. } = model(&record.cluster)?;
    let roles = roles::roles()?;
    let frames = meikyo_lab::prime(&directory, &roles, &wiring, &configuration)?;
    let Done::Tables(tables) = meikyo_lab::ask(&directory, &roles, &Task::Tables)? else {
        return Err(Failure::new("the lab sent an unexpected answer"));
    };
    let most = tables.iter().map(Vec::len).max().unwrap_or(0);
    let again = match priming_period(&configuration) {
        Some(period) => format!("repeat it at least every {period}"),
        None => "once is enough".into(),
    };
    output::print(&format!("{frames} frames; at most {most} table entries; {again}\n"))?;
    Ok(Answer::Yes)
}

pub(super) fn set_link(args: &CutArgs, up: bool) -> Result<Answer, Failure> {
    let (directory, _) = args.which.record()?;
    let wrong =
        |text: String| Failure::new(text).hint("write the names of two switches, as `s1:s2`");
    let (one, other) =
        args.link.split_once(':').ok_or_else(|| wrong(format!("`{}` is no link", args.link)))?;
    let blueprint = directory.blueprint()?;
    for switch in [one, other] {
        if !blueprint.switches().any(|(_, space)| space.name == switch) {
            return Err(Failure::new(format!("there is no switch `{switch}`"))
                .hint("`meikyo lab status` lists hosts and switches"));
        }
    }
    let mut neighbours = BTreeSet::new();
    let mut cables = Vec::new();
    for (place, cable) in blueprint.cables.iter().enumerate() {
        let [first, second] = [0, 1].map(|end| &blueprint.spaces[cable.ends[end].space].name);
        let far = if first == one { second } else { first };
        if cable.purpose == Purpose::Trunk && (first == one || second == one) {
            neighbours.insert(far.as_str());
            cables.extend((far == other).then_some(place));
        }
    }
    if cables.is_empty() {
        let joined: Vec<&str> = neighbours.into_iter().collect();
        return Err(Failure::new(format!("no cable connects `{one}` and `{other}`"))
            .hint(format!("`{one}` is connected to {}", joined.join(", "))));
    }
    let chosen: Vec<usize> = match args.cable {
        Some(nth) => cables.get(nth.wrapping_sub(1)).copied().into_iter().collect(),
        None => cables.clone(),
    };
    if chosen.is_empty() {
        let text = format!("the cables between `{one}` and `{other}` are 1 to {}", cables.len());
        return Err(Failure::new(text).hint("without `--cable` all of them are meant"));
    }
    let roles = roles::roles()?;
    for &cable in &chosen {
        meikyo_lab::ask(&directory, &roles, &Task::SetCable { cable, up })?;
    }
    let done = if up { "mended" } else { "cut" };
    output::print(&format!("{one}:{other}: {} of {} cables {done}\n", chosen.len(), cables.len()))?;
    Ok(Answer::Yes)
}
