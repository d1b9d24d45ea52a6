//! Names are resolved beside the collector, so that no walk ever delays a poll.
//!
//! One thread, one socket, many devices at once ([`crate::survey`]). Jobs come from the start of a
//! measurement (all devices), from the collector (an agent restarted, or an index moved) and from a
//! changed cluster file; what comes of them goes to whoever asked.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError};

use meikyo_cluster::{Device, Measure};
use meikyo_units::Nanos;

use crate::credentials::Credentials;
use crate::plan::DevicePlan;
use crate::resolve::{self, Problem};
use crate::survey::{self, Survey, SurveyError, SurveyOptions, SurveySocketError};

/// How long the thread waits for answers before it looks for new jobs.
const TURN: Nanos = Nanos::from_millis(5);

/// How the resolver walks: answers of a walk fill a frame, and 64 of them fit any receive buffer.
pub const OPTIONS: SurveyOptions =
    SurveyOptions { in_flight_max: 64, timeout: Nanos::from_secs(1), retries: 2 };

/// A device whose names are wanted.
#[derive(Debug)]
pub struct Job {
    /// The collector's ordinal of it.
    pub ordinal: u32,
    /// The device as the cluster file has it.
    pub device: Device,
    /// How the device is spoken to.
    pub credentials: Credentials,
}

/// What came of a job.
#[derive(Debug)]
pub struct Outcome {
    /// The job's device.
    pub ordinal: u32,
    /// What to ask the device, and what the cluster file wants and the agent does not have, as far as
    /// that was not so the last time; or why its tables could not be walked.
    pub result: Result<(DevicePlan, Vec<Problem>), SurveyError>,
}

/// Resolves jobs until their sender is gone; outcomes come in any order.
///
/// # Errors
/// When the system gives no socket.
pub fn run(
    jobs: &Receiver<Job>,
    options: SurveyOptions,
    report: &mut dyn FnMut(Outcome),
) -> Result<(), SurveySocketError> {
    let mut survey = Survey::new(options);
    let mut open: BTreeMap<usize, Device> = BTreeMap::new();
    let mut told = Told::default();
    loop {
        if survey.open() == 0 {
            // Nothing to do: the next job may take as long as it likes.
            let Ok(job) = jobs.recv() else { return Ok(()) };
            add(job, &mut survey, &mut open);
        }
        loop {
            match jobs.try_recv() {
                Ok(job) => add(job, &mut survey, &mut open),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
        survey.step(TURN)?;
        while let Some(finished) = survey.poll_finished() {
            let Some(device) = open.remove(&finished.device) else { continue };
            let Ok(ordinal) = u32::try_from(finished.device) else { continue };
            let requests = finished.requests;
            let result = finished.result.map(|walked| {
                let (plan, problems) = resolve::plan(&device, &walked);
                let problems = told.only_new(ordinal, device, problems);
                (DevicePlan { requests, ..plan }, problems)
            });
            report(Outcome { ordinal, result });
        }
    }
}

fn add(job: Job, survey: &mut Survey, open: &mut BTreeMap<usize, Device>) {
    let key = job.ordinal as usize;
    survey.add(survey::Job {
        device: key,
        address: job.device.address,
        credentials: job.credentials,
        subtrees: resolve::walks_for(&job.device),
    });
    open.insert(key, job.device);
}

/// What was told of every device the last time: names are resolved again and again, and what is
/// still missing is no news.
#[derive(Debug, Default)]
struct Told(BTreeMap<u32, (Vec<Measure>, Vec<Problem>)>);

impl Told {
    /// The problems that the device, which wants the same, did not have the last time.
    fn only_new(&mut self, ordinal: u32, device: Device, problems: Vec<Problem>) -> Vec<Problem> {
        let measure = device.measure;
        let before = self.0.insert(ordinal, (measure.clone(), problems.clone()));
        let known = before.filter(|(wanted, _)| *wanted == measure);
        let known = known.map_or_else(Vec::new, |(_, known)| known);
        problems.into_iter().filter(|problem| !known.contains(problem)).collect()
    }
}
