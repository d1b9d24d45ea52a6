//! A server: the metadata service's own, behind an interface and before a storage.

use std::num::NonZeroU16;
use std::sync::Arc;

use meikyo_metadata::{Request, Server, ServerId};
use meikyo_sim::{Context, LpId};
use meikyo_undo::fields;
use meikyo_units::{SimTime, WallTime};

use crate::digest::Digest;
use crate::ethernet::Nic;
use crate::metadata_service::ethernet;
use crate::metadata_service::{Event, Packet, Plan};
use crate::rpc::{Body, Call};
use crate::simplenet::Interface;
use crate::storage::Storage;

/// A metadata server as an LP.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataServer {
    plan: Arc<Plan>,
    core: Server,
    interface: Interface,
    /// What it has in place of that on Ethernet.
    nic: Option<Box<Nic<Packet>>>,
    storage: Storage,
}
fields!(MetadataServer { core, interface, nic, storage });

impl MetadataServer {
    pub(crate) fn new(plan: &Arc<Plan>, me: LpId) -> Self {
        let servers: NonZeroU16 = plan.servers();
        let place = u16::try_from(plan.server_place(me)).expect("servers have 16-bit numbers");
        Self {
            core: Server::new(ServerId::new(place), servers),
            interface: Interface::default(),
            nic: plan.nic(me),
            storage: Storage::new(plan.metadata.store),
            plan: Arc::clone(plan),
        }
    }

    /// The real server, with the entries and directories that it keeps.
    pub fn core(&self) -> &Server {
        &self.core
    }

    /// Its end of the link to the switch.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Its network cards on Ethernet.
    pub(crate) fn nic(&self) -> Option<&Nic<Packet>> {
        self.nic.as_deref()
    }

    /// The storage that changes wait for before their answers leave.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The entries and directories it keeps, and how its interface and storage stand.
    pub(crate) fn add_to(&self, digest: &mut Digest) {
        for (key, inode) in self.core.entries() {
            digest.word(key.directory.get());
            digest.bytes(key.name.as_bytes());
            digest.word(inode.number.get());
            digest.word(inode.changed.as_nanos().cast_unsigned());
        }
        for (directory, servers) in self.core.parts() {
            digest.word(directory.get());
            servers.as_slice().iter().for_each(|server| digest.word(u64::from(server.get())));
        }
        self.interface.add_to(digest);
        self.nic.iter().for_each(|nic| nic.add_to(digest));
        self.storage.add_to(digest);
    }

    pub(crate) fn handle(&mut self, event: Event, context: &mut impl Context<Event>) {
        match event {
            Event::Begins(Packet { call, body: Body::Request(request) }) => {
                let transmission = Plan::ordinary(&self.plan.server).transmission;
                let whole = self.interface.receive(context, context.now(), transmission);
                self.serve(call, &request, whole, context);
            }
            Event::Due(reply) => self.reply(reply, context),
            Event::Content(packet) => ethernet::expect(&mut self.nic, packet, context),
            Event::Wire(wire) => {
                let Some(Packet { call, body: Body::Request(request) }) =
                    ethernet::arrived(&mut self.nic, wire, context)
                else {
                    return;
                };
                self.serve(call, &request, context.now(), context);
            }
            Event::Begins(_) | Event::Next => {}
        }
    }

    /// Takes a request that is there at `whole`. Requests are received in the order in which they begin to arrive, so
    /// that what happens when one is there can be worked out before.
    fn serve(
        &mut self,
        call: Call,
        request: &Request,
        whole: SimTime,
        context: &mut impl Context<Event>,
    ) {
        let now = context.now();
        let response = self.core.handle(wall(whole), request, context);
        let ready = if is_change(request) {
            self.storage.access(context, whole, self.plan.message_size())
        } else {
            whole + self.plan.metadata.read_latency
        };
        context.send(context.me(), ready.since(now), Event::Due(call.reply(response)));
    }

    fn reply(&mut self, reply: Packet, context: &mut impl Context<Event>) {
        if self.nic.is_some() {
            return ethernet::send(&mut self.nic, &self.plan, reply, context);
        }
        let now = context.now();
        let passage = self.plan.passage(&self.plan.server, &reply);
        let begins = self.interface.send(context, now, passage);
        let delay = begins.since(now);
        let waited = delay.saturating_sub(passage.start_up);
        context.tally(self.plan.reply_wait_us, waited.as_secs_f64() * 1e6);
        let switch = self.plan.server_switch(context.me());
        context.send(switch, delay, Event::Begins(reply));
    }
}

/// Whether the storage must have what `request` changes before it is answered.
fn is_change(request: &Request) -> bool {
    match request {
        Request::ServerList { .. }
        | Request::Lookup(_)
        | Request::Stat(_)
        | Request::ReadPage { .. } => false,
        Request::Create(_)
        | Request::Unlink(_)
        | Request::BeginDirectory { .. }
        | Request::AddPart { .. }
        | Request::RemovePart { .. }
        | Request::LinkDirectory { .. }
        | Request::UnlinkDirectory { .. } => true,
    }
}

/// The run begins at the epoch. What comes after the last instant that the wall clock can tell, in the
/// year 2262, is told as that one: simulated time goes on for twice as long.
fn wall(instant: SimTime) -> WallTime {
    // Saturates, as is said above.
    WallTime::from_nanos(i64::try_from(instant.as_nanos()).unwrap_or(i64::MAX))
}
