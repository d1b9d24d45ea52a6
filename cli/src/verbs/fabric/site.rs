//! What several subcommands of `meikyo fabric` begin with: the plan, the texts, the templates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_cluster::Cluster;
use meikyo_console::failure::Failure;
use meikyo_fabric::dialect::{self, Dialect, SwitchState, Templates};
use meikyo_fabric::{
    CheckOptions, Configuration, Described, HostId, PlanOptions, Switch, SwitchId, TrunkId,
    Verdict, Vlan, Wiring, check, plan,
};

use super::FileArgs;

/// How texts are made.
#[derive(Debug, Args)]
pub(super) struct TextArgs {
    /// The dialect of switches whose model has none
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<Dialect>,
    /// Directory with your own templates, in place of the built-in ones (see `meikyo fabric
    /// templates`)
    #[arg(long, value_name = "DIR")]
    templates: Option<PathBuf>,
}

/// A fabric, planned.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) cluster: Cluster,
    pub(super) wiring: Wiring,
    pub(super) options: PlanOptions,
    pub(super) configuration: Configuration,
}

/// The plan for a cluster file.
pub(super) fn planned(args: &FileArgs) -> Result<Planned, Failure> {
    let (cluster, Described { wiring, options }) = super::described(args)?;
    let plan = plan(&wiring, &options).map_err(super::unplannable)?;
    let configuration = plan.configuration(&wiring);
    Ok(Planned { cluster, wiring, options, configuration })
}

impl Planned {
    /// Refuses a configuration that the checker refuses.
    pub(super) fn prove(&self, configuration: &Configuration) -> Result<(), Failure> {
        let report = check(&self.wiring, configuration, &CheckOptions::INTACT);
        if report.verdict() == Verdict::Good {
            return Ok(());
        }
        let first = report.faults.first();
        let fault = first.map_or_else(String::new, |own| own.in_words(&self.wiring).to_string());
        Err(Failure::new(format!("the configuration is refused: {fault}"))
            .hint("`meikyo fabric check` lists all faults"))
    }

    /// Every switch, in order.
    pub(super) fn switches(&self) -> impl Iterator<Item = SwitchId> + use<> {
        (0..self.wiring.switches.len()).map(SwitchId::new)
    }

    pub(super) fn name(&self, switch: SwitchId) -> &str {
        &self.wiring.switches[switch.place()].name
    }

    pub(super) fn host_name(&self, host: HostId) -> &str {
        &self.wiring.hosts[host.place()].name
    }

    /// The dialect of a switch.
    pub(super) fn dialect(&self, switch: SwitchId, texts: &TextArgs) -> Result<Dialect, Failure> {
        dialect_of(&self.wiring, switch, texts.dialect)
    }

    pub(super) fn management(&self) -> Option<Vlan> {
        self.options.management
    }

    /// What each switch is to be in.
    pub(super) fn states(&self) -> Vec<SwitchState> {
        meikyo_fabric::deploy::planned_states(&self.configuration, self.management())
    }

    /// What each switch is in, by the texts of a directory: `NAME.cfg` or `NAME.sh` for each.
    pub(super) fn read(
        &self,
        directory: &Path,
        texts: &TextArgs,
    ) -> Result<Vec<SwitchState>, Failure> {
        let read = |switch| read_one(&self.wiring, directory, texts.dialect, switch);
        self.switches().map(read).collect()
    }
}

/// The dialect of a switch: its model's own, or else the given one.
fn dialect_of(
    wiring: &Wiring,
    switch: SwitchId,
    given: Option<Dialect>,
) -> Result<Dialect, Failure> {
    let Switch { name, model } = &wiring.switches[switch.place()];
    match (Dialect::of_model(model), given) {
        (Some(own), Some(given)) if own != given => {
            let text =
                format!("`{name}` is a `{}`, whose dialect is {own}, not {given}", model.name);
            Err(Failure::new(text)
                .hint("`--dialect` is for switches whose model has none of its own"))
        }
        (Some(own), _) => Ok(own),
        (None, Some(given)) => Ok(given),
        (None, None) => {
            let text = format!("`{name}`: there is no dialect for the model `{}`", model.name);
            Err(Failure::new(text)
                .hint("name one with `--dialect`, or a `model` in the cluster file"))
        }
    }
}

/// What a switch is in, by its text in a directory: `NAME.cfg` or `NAME.sh`.
pub(super) fn read_one(
    wiring: &Wiring,
    directory: &Path,
    dialect: Option<Dialect>,
    switch: SwitchId,
) -> Result<SwitchState, Failure> {
    let dialect = dialect_of(wiring, switch, dialect)?;
    let Switch { name, model } = &wiring.switches[switch.place()];
    let path = directory.join(file_name(name, dialect));
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Failure::new(format!("cannot read {}: {error}", path.display())).hint(
            "there must be one configuration for each switch, as `meikyo fabric configure` writes them",
        )
    })?;
    dialect::read(dialect, model, &SwitchState::blank(dialect, model), &text).map_err(|error| {
        let file = path.display();
        Failure::new(error.line.map_or_else(
            || format!("{file}: {error}"),
            |line| format!("{file}:{line}: `{}`: {}", error.text, error.problem),
        ))
    })
}

/// Refuses to write over files.
pub(super) fn refuse_existing<'a>(
    mut files: impl Iterator<Item = &'a Path>,
) -> Result<(), Failure> {
    files.find(|file| file.exists()).map_or(Ok(()), |file| {
        Err(Failure::new(format!("{} is there already", file.display()))
            .hint("name another place, or overwrite it with `--force`"))
    })
}

/// The switch of this name.
pub(super) fn switch_named(wiring: &Wiring, name: &str) -> Result<SwitchId, Failure> {
    let place = wiring.switches.iter().position(|switch| switch.name == name);
    place.map(SwitchId::new).ok_or_else(|| {
        let names: Vec<String> = wiring.switches.iter().map(|switch| switch.name.clone()).collect();
        Failure::new(format!("there is no switch `{name}`"))
            .hint(format!("the switches are {}", meikyo_cluster::fold(&names)))
    })
}

/// The trunks between two switches, written `sw1:sw2`.
pub(in crate::verbs) fn trunks_between(
    wiring: &Wiring,
    link: &str,
) -> Result<Vec<TrunkId>, Failure> {
    let (one, other) = link.split_once(':').ok_or_else(|| {
        Failure::new(format!("`{link}` is no link")).hint("write both switches: `sw1:sw2`")
    })?;
    let (one, other) = (switch_named(wiring, one)?, switch_named(wiring, other)?);
    let joins = |trunk: &TrunkId| {
        let ends = wiring.trunks[trunk.place()].ends.each_ref().map(|end| end.switch);
        ends == [one, other] || ends == [other, one]
    };
    let trunks: Vec<TrunkId> = (0..wiring.trunks.len()).map(TrunkId::new).filter(joins).collect();
    if trunks.is_empty() {
        return Err(Failure::new(format!("there is no trunk between the switches of `{link}`"))
            .hint("`meikyo fabric cables` lists what is plugged into what"));
    }
    Ok(trunks)
}

/// The file with the text of a switch.
pub(super) fn file_name(switch: &str, dialect: Dialect) -> String {
    format!("{switch}.{}", dialect.file_ending())
}

impl TextArgs {
    /// The built-in templates, or the site's in their place.
    pub(super) fn templates(&self) -> Result<Templates, Failure> {
        let Some(directory) = &self.templates else { return Ok(Templates::built_in()) };
        let failed = |error: std::io::Error| {
            Failure::new(format!("cannot read {}: {error}", directory.display()))
                .hint("`meikyo fabric templates --out DIR` writes the built-in ones")
        };
        let mut own = BTreeMap::new();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if name.ends_with(".j2") {
                let text = std::fs::read_to_string(&path).map_err(failed)?;
                own.insert(name.to_owned(), text);
            }
        }
        Ok(Templates::with(&own)?)
    }
}
