//! `--freshen`: interface caches of net-snmp agents are set to 0 for the time of a measurement.
//!
//! One thread of its own talks to the agents one after the other, so that neither the collector nor
//! the person waits for a slow one. Whatever ends the measurement, short of a kill -9, every cache
//! that was set is set back.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use meikyo_cluster::Cluster;
use meikyo_snmp::freshen::{self, Freshened};
use meikyo_snmp::{Client, ClientOptions, Credentials};

use super::devices::Devices;
use super::setup::Ready;
use crate::failure::{Answer, Failure, one_line};
use crate::output;

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

    /// Freshens the cache, again where it was freshened before; what happened, for people.
    fn freshen(&self, known: Option<Freshened>) -> (Option<Freshened>, Result<String, String>) {
        let tried = || -> Result<(Option<Freshened>, String), Box<dyn Error>> {
            let mut client = self.client()?;
            if let Some(mut known) = known {
                let set = known.reapply(&mut client)?;
                let what = if set { "set to 0 again" } else { "is 0 still" };
                return Ok((Some(known), format!("interface cache {what}")));
            }
            let (decision, freshened) = freshen::apply(&mut client)?;
            Ok((freshened, decision.to_string()))
        };
        match tried() {
            Ok((freshened, what)) => (freshened, Ok(format!("{}: {what}", self.device.name))),
            Err(error) => (known, Err(self.complaint(error.as_ref()))),
        }
    }

    fn complaint(&self, error: &dyn Error) -> String {
        format!("{}: the interface cache is as it was: {}", self.device.name, one_line(error))
    }
}

/// Reads the write credentials of a device; `None` if the cluster file has none for it.
fn writable(ready: &Ready, cluster: &Cluster) -> Result<Option<Writable>, Failure> {
    let Some(access) = &ready.device.snmp.write_access else { return Ok(None) };
    let credentials = Credentials::resolve(access, cluster.base())?;
    Ok(Some(Writable { device: ready.device.clone(), credentials }))
}

/// Tells what `--freshen` would do, and does nothing.
pub(super) fn dry_run(devices: &Devices) -> Result<Answer, Failure> {
    let mut answer = Answer::Yes;
    for ready in devices.by_ordinal().values() {
        let line = match writable(ready, devices.cluster())? {
            None => format!("{}: no write credential in the cluster file", ready.device.name),
            Some(writable) => {
                let look = || -> Result<String, Box<dyn Error>> {
                    Ok(freshen::decide(freshen::look(&mut writable.client()?)?).to_string())
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
        output::print(&format!("{line}\n"))?;
    }
    Ok(answer)
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
        let (wishes, taken) = channel();
        let thread = std::thread::Builder::new()
            .name("freshen".into())
            .spawn(move || attend(&writables, &taken, &say))?;
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

fn attend(writables: &BTreeMap<u32, Writable>, wishes: &Receiver<u32>, say: &dyn Fn(u32, String)) {
    let mut freshened: BTreeMap<u32, Freshened> = BTreeMap::new();
    for ordinal in wishes {
        let Some(writable) = writables.get(&ordinal) else { continue };
        let (state, told) = writable.freshen(freshened.get(&ordinal).copied());
        freshened.extend(state.map(|state| (ordinal, state)));
        say(ordinal, told.unwrap_or_else(|complaint| complaint));
    }
    for (ordinal, state) in freshened {
        let writable = &writables[&ordinal];
        let restored =
            || -> Result<bool, Box<dyn Error>> { Ok(state.restore(&mut writable.client()?)?) };
        match restored() {
            Ok(true) => say(ordinal, format!("{}: interface cache set back", writable.device.name)),
            Ok(false) => {}
            Err(error) => say(ordinal, writable.complaint(error.as_ref())),
        }
    }
}
