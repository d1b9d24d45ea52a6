//! `--freshen`: interface caches of net-snmp agents are set to 0 for the time of a measurement.
//!
//! One thread of its own talks to the agents one after the other, so that neither the collector nor
//! the person waits for a slow one. Whatever ends the measurement, every cache that was set is set
//! back; after a kill -9 by the next `--freshen`, or by `--freshen --restore`.

mod originals;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use meikyo_cluster::Cluster;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::{output, printable};
use meikyo_recording::control;
use meikyo_snmp::freshen::{self, Decision};
use meikyo_snmp::{Client, ClientOptions, Credentials};

use self::originals::Originals;
use meikyo_units::in_one_line;

use super::devices::Devices;
use super::setup::Ready;

/// A device whose agent may be written.
#[derive(Debug, Clone)]
struct Writable {
    device: meikyo_cluster::Device,
    credentials: Credentials,
}

impl Writable {
    fn client(&self) -> Result<Client, Box<dyn Error>> {
        let options = ClientOptions { timeout: self.device.snmp.timeout, retries: 2 };
        Ok(Client::connect(self.device.address, self.credentials.clone(), options)?)
    }

    /// Freshens the cache if that is right; what happened, for people.
    fn freshen(&self, originals: &mut Originals) -> Result<String, Box<dyn Error>> {
        let mut client = self.client()?;
        let decision = freshen::decide(freshen::look(&mut client)?);
        if let Decision::Set { from } = decision {
            // First, so that whatever happens next it is known what to set back.
            originals.remember(self.device.address, from)?;
            freshen::freshen(&mut client)?;
        }
        Ok(in_words(decision, originals.seconds_of(self.device.address)))
    }

    /// Sets the cache back to what it was before this run, or before an earlier one that was killed.
    /// False if there was nothing to do.
    fn restore(&self, originals: &mut Originals) -> Result<bool, Box<dyn Error>> {
        let Some(original) = originals.seconds_of(self.device.address) else { return Ok(false) };
        let restored = freshen::restore(&mut self.client()?, original)?;
        originals.forget(self.device.address)?;
        Ok(restored)
    }

    fn complaint(&self, error: &dyn Error) -> String {
        format!("{}: the interface cache stays as it is: {}", self.device.name, in_one_line(error))
    }
}

/// What is done about a cache, when `original` is what belongs there as far as that is known.
fn in_words(decision: Decision, original: Option<u32>) -> String {
    match (decision, original) {
        (Decision::AlreadyFresh, Some(seconds)) => format!(
            "nsCacheTimeout of ifTable is 0 already, by Meikyo; it was {seconds} s, and will be again \
             at the end"
        ),
        _ => decision.to_string(),
    }
}

/// Reads the write credentials of a device; `None` if the cluster file has none for it.
fn writable(ready: &Ready, cluster: &Cluster) -> Result<Option<Writable>, Failure> {
    let Some(access) = &ready.device.snmp.write_access else { return Ok(None) };
    let credentials = Credentials::resolve(access, cluster.base())?;
    Ok(Some(Writable { device: ready.device.clone(), credentials }))
}

/// Tells what `--freshen` would do, and does nothing.
pub(super) fn dry_run(devices: &Devices, recording: &Path) -> Result<Answer, Failure> {
    let originals = Originals::load(recording)?;
    let mut answer = Answer::Yes;
    for ready in devices.by_ordinal().values() {
        let line = match writable(ready, devices.cluster())? {
            None => format!("{}: no write credential in the cluster file", ready.device.name),
            Some(writable) => {
                let look = || -> Result<String, Box<dyn Error>> {
                    let decision = freshen::decide(freshen::look(&mut writable.client()?)?);
                    Ok(in_words(decision, originals.seconds_of(writable.device.address)))
                };
                match look() {
                    Ok(decision) => format!("{}: {decision}", ready.device.name),
                    Err(error) => {
                        answer = Answer::No;
                        writable.complaint(error.as_ref())
                    }
                }
            }
        };
        output::print(&format!("{}\n", printable::line(&line)))?;
    }
    Ok(answer)
}

/// Sets back what an earlier run that was killed left at 0.
pub(super) fn restore(devices: &Devices, recording: &Path) -> Result<Answer, Failure> {
    if control::is_open(recording) {
        let text = format!("a measurement is writing into {}", recording.display());
        return Err(Failure::new(text).hint("it restores the caches itself when it ends"));
    }
    let mut originals = Originals::load(recording)?;
    let left = originals.addresses();
    if left.is_empty() {
        output::print("no cache is left to be set back\n")?;
    }
    let mut answer = Answer::Yes;
    for address in left {
        let mut of_address = devices.by_ordinal().values();
        let known = of_address.find(|ready| ready.device.address == address);
        let writable = known.map(|ready| writable(ready, devices.cluster())).transpose()?;
        let line = match writable.flatten() {
            None => {
                answer = Answer::No;
                format!("{address}: the cluster file has no write credential for this agent")
            }
            Some(writable) => match writable.restore(&mut originals) {
                Ok(true) => format!("{}: interface cache restored", writable.device.name),
                Ok(false) => {
                    format!("{}: the interface cache is no longer 0", writable.device.name)
                }
                Err(error) => {
                    answer = Answer::No;
                    writable.complaint(error.as_ref())
                }
            },
        };
        output::print(&format!("{}\n", printable::line(&line)))?;
    }
    Ok(answer)
}

/// The agents that an earlier run left at 0 because it was killed.
pub(super) fn left_behind(recording: &Path) -> Result<Vec<SocketAddr>, Failure> {
    Ok(Originals::load(recording)?.addresses())
}

/// The thread that freshens, and what it may write to.
#[derive(Debug)]
pub(super) struct Freshening {
    wishes: Sender<u32>,
    thread: JoinHandle<()>,
}

impl Freshening {
    /// Starts the thread for the devices that have write credentials, by ordinal; `say` is told
    /// what happens.
    pub(super) fn start(
        devices: &Devices,
        recording: &Path,
        say: impl Fn(u32, String) + Send + 'static,
    ) -> Result<Self, Failure> {
        let mut writables = BTreeMap::new();
        for (&ordinal, ready) in devices.by_ordinal() {
            if let Some(writable) = writable(ready, devices.cluster())? {
                writables.insert(ordinal, writable);
            }
        }
        if writables.is_empty() {
            return Err(Failure::new("`--freshen` needs a write credential")
                .hint("add `[snmp.write]` to the cluster file; see docs/cluster-file.md"));
        }
        let originals = Originals::load(recording)?;
        let (wishes, taken) = channel();
        let thread = std::thread::Builder::new()
            .name("freshen".into())
            .spawn(move || attend(&writables, originals, &taken, &say))?;
        Ok(Self { wishes, thread })
    }

    /// Asks for a device to be freshened, at the start and after its agent restarted.
    pub(super) fn wish(&self, ordinal: u32) {
        if self.wishes.send(ordinal).is_err() {
            tracing::error!("the freshening thread has ended");
        }
    }

    /// Sets every cache back and waits until that is done.
    pub(super) fn restore(self) {
        drop(self.wishes);
        if self.thread.join().is_err() {
            tracing::error!("the freshening thread has panicked; caches may still be 0");
        }
    }
}

fn attend(
    writables: &BTreeMap<u32, Writable>,
    mut originals: Originals,
    wishes: &Receiver<u32>,
    say: &dyn Fn(u32, String),
) {
    for ordinal in wishes {
        let Some(writable) = writables.get(&ordinal) else { continue };
        let told = match writable.freshen(&mut originals) {
            Ok(what) => format!("{}: {what}", writable.device.name),
            Err(error) => writable.complaint(error.as_ref()),
        };
        say(ordinal, told);
    }
    for (&ordinal, writable) in writables {
        match writable.restore(&mut originals) {
            Ok(true) => say(ordinal, format!("{}: interface cache restored", writable.device.name)),
            Ok(false) => {}
            Err(error) => say(ordinal, writable.complaint(error.as_ref())),
        }
    }
}
