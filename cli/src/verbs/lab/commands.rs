//! What is done to a lab that runs: priming, cutting and mending links.

use clap::Args;
use meikyo_fabric::priming_period;
use meikyo_lab::{Done, Purpose, Task};

use super::{Model, Which, model, roles};
use crate::failure::{Answer, Failure};
use crate::output;

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
    /// Which of several cables, from 1; without, all of them
    #[arg(long, value_name = "N")]
    cable: Option<usize>,
}

pub(super) fn prime(args: &PrimeArgs) -> Result<Answer, Failure> {
    let directory = args.which.directory()?;
    let record = directory.record()?;
    let Model { wiring, configuration, .. } = model(&record.cluster)?;
    let roles = roles::roles()?;
    let frames = meikyo_lab::prime(&directory, &roles, &wiring, &configuration)?;
    let Done::Tables(tables) = meikyo_lab::ask(&directory, &roles, &Task::Tables)? else {
        return Err(Failure::new("the lab answers something else"));
    };
    let most = tables.iter().map(Vec::len).max().unwrap_or(0);
    let again = match priming_period(&configuration) {
        Some(period) => format!("switches want it again every {period}"),
        None => "once is enough".into(),
    };
    output::print(&format!("{frames} frames; at most {most} table entries; {again}\n"))?;
    Ok(Answer::Yes)
}

pub(super) fn set_link(args: &CutArgs, up: bool) -> Result<Answer, Failure> {
    let directory = args.which.directory()?;
    let wrong =
        |text: String| Failure::new(text).hint("write the names of two switches, as `s1:s2`");
    let (one, other) =
        args.link.split_once(':').ok_or_else(|| wrong(format!("`{}` is no link", args.link)))?;
    let blueprint = directory.blueprint()?;
    let name = |space: usize| blueprint.spaces[space].name.as_str();
    let joins = |ends: &[meikyo_lab::CableEnd; 2]| {
        let [first, second] = [name(ends[0].space), name(ends[1].space)];
        (first, second) == (one, other) || (first, second) == (other, one)
    };
    let cables: Vec<usize> = blueprint
        .cables
        .iter()
        .enumerate()
        .filter(|(_, cable)| cable.purpose == Purpose::Trunk && joins(&cable.ends))
        .map(|(place, _)| place)
        .collect();
    let chosen: Vec<usize> = match args.cable {
        Some(nth) => cables.get(nth.wrapping_sub(1)).copied().into_iter().collect(),
        None => cables.clone(),
    };
    if chosen.is_empty() {
        return Err(wrong(format!("{} cables join `{one}` and `{other}`", cables.len())));
    }
    let roles = roles::roles()?;
    for cable in chosen {
        meikyo_lab::ask(&directory, &roles, &Task::SetCable { cable, up })?;
    }
    Ok(Answer::Yes)
}
