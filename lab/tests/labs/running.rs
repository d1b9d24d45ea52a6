//! A lab that goes with its test, and what a test asks of it. As many run side by side as tests do: each
//! takes one core at most, and often waits. A lab whose links have rates runs alone.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use meikyo_cluster::MacAddress;
use meikyo_fabric::{
    Configuration, Parts, Plan, PlanOptions, Priming, SwitchModel, Topology, Wiring, cable, plan,
};
use meikyo_lab::{
    Blueprint, BlueprintOptions, Directory, Done, EngineChoice, Invocation, Outcome, Roles, Task,
    UpOptions, as_bridges, ask, down, find_engine, run, up,
};
use meikyo_units::BitsPerSecond;

/// Held for writing by a lab in which rates are measured: its guest needs a core for itself.
static LABS: RwLock<()> = RwLock::new(());

/// Nothing is behind the lock that a test that failed could have left half done.
#[expect(dead_code, reason = "held, not read")]
enum Turn {
    Beside(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Turn {
    fn take(alone: bool) -> Self {
        if alone {
            Self::Alone(LABS.write().unwrap_or_else(PoisonError::into_inner))
        } else {
            Self::Beside(LABS.read().unwrap_or_else(PoisonError::into_inner))
        }
    }
}

/// A planned fabric, with the settings that the texts for Linux bridges say.
pub(crate) struct Fabric {
    pub(crate) wiring: Wiring,
    pub(crate) plan: Plan,
    pub(crate) configuration: Configuration,
}

pub(crate) fn fabric(
    topology: &str,
    hosts: usize,
    change: impl FnOnce(&mut PlanOptions),
) -> Fabric {
    cabled_fabric(topology, hosts, Cabling::of_links(1), change)
}

/// How many cables there are where one would do.
#[derive(Clone, Copy)]
pub(crate) struct Cabling {
    pub(crate) ports_per_host: u16,
    pub(crate) cables_per_link: u16,
}

impl Cabling {
    /// So many cables for each link between switches, and one for each host.
    pub(crate) const fn of_links(cables_per_link: u16) -> Self {
        Self { ports_per_host: 1, cables_per_link }
    }
}

pub(crate) fn cabled_fabric(
    topology: &str,
    hosts: usize,
    cabling: Cabling,
    change: impl FnOnce(&mut PlanOptions),
) -> Fabric {
    let topology: Topology = topology.parse().expect("a topology");
    let model = SwitchModel::named("linux-bridge").expect("a known model");
    let graph = topology.graph();
    let mut parts = Parts::uniform(&graph, &model, hosts);
    parts.ports_per_host = cabling.ports_per_host;
    parts.cables_per_link = cabling.cables_per_link;
    let mut wiring = cable(&graph, parts).expect("fits");
    for (place, host) in wiring.hosts.iter_mut().enumerate() {
        host.mac = Some(MacAddress(meikyo_lab::host_mac(place)));
    }
    let mut options = PlanOptions::new(Some(topology));
    change(&mut options);
    let plan = plan(&wiring, &options).expect("can be planned");
    let configuration = as_bridges(&wiring, &plan.configuration(&wiring)).expect("has texts");
    Fabric { wiring, plan, configuration }
}

pub(crate) fn without_priming(fabric: &Fabric) -> Configuration {
    Configuration { priming: Priming::None, ..fabric.configuration.clone() }
}

/// A lab; ends with the test.
pub(crate) struct Lab {
    pub(crate) directory: Directory,
    pub(crate) roles: Roles,
    place: tempfile::TempDir,
    _turn: Turn,
}

impl Drop for Lab {
    fn drop(&mut self) {
        down(&self.directory).expect("a lab can be ended");
    }
}

/// The program of the example `roles`, which is built with the tests.
pub(crate) fn roles() -> Roles {
    let tests = std::env::current_exe().expect("this program has a path");
    let target = tests.ancestors().nth(2).expect("tests are in a directory of the target folder");
    let role = |name: &str| vec![name.to_owned()];
    Roles {
        program: target.join("examples").join("roles"),
        keeper: role("keeper"),
        inside: role("inside"),
        task: role("task"),
        probe: role("probe"),
    }
}

/// A lab of this fabric; `None`, with the reason printed, where nothing can run one.
pub(crate) fn lab(fabric: &Fabric, rate: Option<BitsPerSecond>) -> Option<Lab> {
    lab_of(&fabric.wiring, &fabric.configuration, rate)
}

pub(crate) fn lab_of(
    wiring: &Wiring,
    configuration: &Configuration,
    rate: Option<BitsPerSecond>,
) -> Option<Lab> {
    lab_on(EngineChoice::Any, wiring, configuration, rate)
}

pub(crate) fn lab_on(
    engine: EngineChoice,
    wiring: &Wiring,
    configuration: &Configuration,
    rate: Option<BitsPerSecond>,
) -> Option<Lab> {
    lab_reading(engine, wiring, configuration, rate, Vec::new())
}

/// A lab in which this can be read beside the system's directories.
pub(crate) fn lab_reading(
    engine: EngineChoice,
    wiring: &Wiring,
    configuration: &Configuration,
    rate: Option<BitsPerSecond>,
    read: Vec<PathBuf>,
) -> Option<Lab> {
    let turn = Turn::take(rate.is_some());
    let roles = roles();
    if let Err(error) = find_engine(engine, &roles) {
        meikyo_testing::lacking(&error.to_string());
        return None;
    }
    let place = tempfile::tempdir().expect("a directory for the test");
    let directory = Directory::at(&place.path().join("lab")).expect("a plain path");
    let options = BlueprintOptions { rate, management: false };
    let blueprint = Blueprint::new(wiring, configuration, &options).expect("can be built");
    let options = UpOptions {
        directory: directory.clone(),
        files: None,
        read,
        engine,
        memory_mib: None,
        name: "test".into(),
        cluster_text: String::new(),
        services: Vec::new(),
        contents: Vec::new(),
    };
    up(&blueprint, &roles, &options).expect("the lab comes up");
    Some(Lab { directory, roles, place, _turn: turn })
}

impl Lab {
    pub(crate) fn ask(&self, task: &Task) -> Done {
        ask(&self.directory, &self.roles, task).expect("the lab does it")
    }

    pub(crate) fn exec(&self, space: Option<&str>, command: &[&str], input: &[u8]) -> Outcome {
        let invocation = Invocation { space, command, environment: &[] };
        run(&self.directory, &invocation, input).expect("the lab runs it")
    }

    /// The directory that goes with the test, outside of the lab's.
    pub(crate) fn outside(&self) -> &Path {
        self.place.path()
    }
}
