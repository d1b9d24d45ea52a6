//! A farm of live devices and a collector that measures it, for the benches that look on.

use std::path::PathBuf;

use meikyo_console::benches::collect::Speech;
use meikyo_console::failure::Failure;
use meikyo_units::{Nanos, WallTime};
use tempfile::TempDir;

use crate::cluster_text::ClusterText;
use crate::collector::{Collector, CollectorPlan};
use crate::farm_process::{FarmPlan, FarmProcess};
use crate::placement::{Placement, wait_until};
use crate::values::Values;

/// How often each is read, where nothing else is said.
pub(super) const EVERY: Nanos = Nanos::from_millis(100);
/// How long the collector may take to begin its recording.
const PATIENCE: Nanos = Nanos::from_secs(8);

/// A running measurement; everything of it ends and goes when this is dropped.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) recording: PathBuf,
    collector: Collector,
    _farm: FarmProcess,
    pub(super) scratch: TempDir,
}

impl Measurement {
    /// Starts one of so many devices and of `span`, and waits until there is a recording to look at. With real-time
    /// priority for the collector the agents have it as well and a core of their own, as in
    /// `bench collect`: they stand for other machines.
    pub(super) fn start(devices: u32, span: Nanos, realtime: bool) -> Result<Self, Failure> {
        let agents = if realtime { Placement::elsewhere(true) } else { Placement::default() };
        Self::start_at((devices, EVERY), span, (agents, Placement::default()))
    }

    /// The same of devices that are read as often as is said, with agents and collector at their places.
    /// Whether they have real-time priority is told by the agents' place.
    pub(super) fn start_at(
        (devices, every): (u32, Nanos),
        span: Nanos,
        (agents, collector): (Placement, Placement),
    ) -> Result<Self, Failure> {
        let scratch = tempfile::tempdir()?;
        let recording = scratch.path().join("recording");
        let speech = Speech::V2c;
        let farm = FarmProcess::start(&FarmPlan {
            agents: devices,
            cache: "0s",
            step: every,
            truth: &scratch.path().join("truth"),
            speech,
            placement: agents,
        })?;
        let devices = farm.devices(0..devices);
        let measure = Values::Five.measure();
        let text = ClusterText { name: "bench", devices: &devices, speech, every, measure };
        let collector = Collector::start(&CollectorPlan {
            cluster_file: &text.write(scratch.path())?,
            recording: &recording,
            span,
            placement: collector,
            realtime: agents.realtime,
            freshen: false,
        })?;
        let deadline = WallTime::now() + PATIENCE;
        while !recording.join("recording.toml").exists() {
            if WallTime::now() > deadline {
                return Err(Failure::new(format!("no recording was begun within {PATIENCE}")));
            }
            wait_until(WallTime::now() + Nanos::from_millis(50))?;
        }
        Ok(Self { recording, collector, _farm: farm, scratch })
    }

    /// Waits for its end; the recording stays as long as the directory is held.
    pub(super) fn finish(self) -> Result<(PathBuf, TempDir), Failure> {
        self.collector.finish()?;
        Ok((self.recording, self.scratch))
    }
}
