//! Simulated switches: agents that serve VLANs, neighbours and learned addresses as the plan has
//! them, or not.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use meikyo_fabric::emulator::Emulator;
use meikyo_fabric::{Configuration, HostId, PortNumber, SwitchId, Vlan, Wiring, describe, plan};
use meikyo_snmp::agent::{Access, Engine, Instances, InstancesBuilder, Mib, Stop, serve};
use meikyo_snmp::usm::EngineId;
use meikyo_snmp::{ErrorStatus, Oid, Value, ValueRef};
use meikyo_units::WallTime;

type Objects = BTreeMap<String, Value>;

/// One agent for each switch of a cluster file.
pub(super) struct Agents(Vec<Agent>);

struct Agent {
    port: u16,
    objects: Arc<Mutex<Objects>>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

struct Served {
    objects: Arc<Mutex<Objects>>,
    instances: Instances,
    values: Vec<Value>,
    scratch: Vec<u8>,
}

impl Served {
    fn read(&mut self) {
        let mut builder = InstancesBuilder::default();
        for (oid, value) in self.objects.lock().unwrap().iter() {
            let oid: Oid = oid.parse().unwrap();
            let (last, object) = oid.as_slice().split_last().unwrap();
            builder.add(&Oid::from_slice(object), &[*last], value.clone());
        }
        (self.instances, self.values) = builder.finish();
    }
}

impl Mib for Served {
    fn begin(&mut self, _: WallTime) -> Result<(), ErrorStatus> {
        self.read();
        Ok(())
    }

    fn instances(&self) -> &Instances {
        &self.instances
    }

    fn value(&mut self, position: usize) -> ValueRef<'_> {
        self.values[position].borrow(&mut self.scratch)
    }
}

impl Agents {
    /// Agents that serve what the file plans.
    pub(super) fn start(cluster: &Path) -> Self {
        let cluster = meikyo_cluster::load(cluster).unwrap();
        let described = describe(&cluster).unwrap();
        let wiring = described.wiring;
        let configuration = plan(&wiring, &described.options).unwrap().configuration(&wiring);
        let mut agents: Vec<Objects> = (0..wiring.switches.len())
            .map(|place| objects(&wiring, &configuration, place))
            .collect();
        learn(&wiring, &configuration, &mut agents);
        Self(agents.into_iter().map(Agent::start).collect())
    }

    /// Their addresses as a list of the cluster file.
    pub(super) fn addresses(&self) -> String {
        let addresses: Vec<String> =
            self.0.iter().map(|agent| format!("\"127.0.0.1:{}\"", agent.port)).collect();
        format!("[{}]", addresses.join(", "))
    }

    fn change(&self, switch: usize, change: impl FnOnce(&mut Objects)) {
        change(&mut self.0[switch].objects.lock().unwrap());
    }

    /// The cables of ports 47 and 48 change places.
    pub(super) fn swap_cables(&mut self, switch: usize) {
        self.change(switch, |objects| {
            for column in [7, 9] {
                let name = |port: u16| format!("{NEIGHBOURS}.{column}.0.{port}.1");
                let one = objects.remove(&name(47)).unwrap();
                let other = objects.insert(name(48), one).unwrap();
                objects.insert(name(47), other);
            }
        });
    }

    /// The cable of port 47 is pulled.
    pub(super) fn lose_cable(&mut self, switch: usize) {
        self.change(switch, |objects| {
            for column in [7, 9] {
                objects.remove(&format!("{NEIGHBOURS}.{column}.0.47.1")).unwrap();
            }
        });
    }

    /// Port 1 is back in VLAN 1.
    pub(super) fn set_pvid(&mut self, switch: usize) {
        self.change(switch, |objects| {
            objects.insert(format!("{PVIDS}.1"), Value::Gauge32(1)).unwrap();
        });
    }

    /// What was learned of a host in the VLAN, it was at this port.
    pub(super) fn learn_at(&mut self, switch: usize, vlan: u32, host: HostId, port: u16) {
        self.change(switch, |objects| {
            let database = DATABASES_FROM + vlan;
            objects
                .insert(format!("{LEARNED}.{database}.{}", octets(host)), integer(port))
                .unwrap();
        });
    }

    /// The agent is switched off.
    pub(super) fn end(&mut self, switch: usize) {
        self.0[switch].end();
    }
}

const PVIDS: &str = "1.3.6.1.2.1.17.7.1.4.5.1.1";
const VLANS: &str = "1.3.6.1.2.1.17.7.1.4.3.1";
const DATABASE: &str = "1.3.6.1.2.1.17.7.1.4.2.1.3";
const LEARNED: &str = "1.3.6.1.2.1.17.7.1.2.2.1.2";
/// Databases have numbers of their own, so that they are not taken for those of VLANs.
const DATABASES_FROM: u32 = 10_000;
const NEIGHBOURS: &str = "1.0.8802.1.1.2.1.4.1.1";

/// Q-BRIDGE-MIB and LLDP-MIB of a switch that is as planned.
fn objects(wiring: &Wiring, configuration: &Configuration, place: usize) -> Objects {
    let settings = &configuration.switches[place];
    let mut objects = Objects::new();
    let mut bits: BTreeMap<(u16, Vlan), Vec<u8>> = BTreeMap::new();
    for port in &settings.ports {
        let number = port.ports[0].0;
        let pvid = port.pvid.map_or(1, Vlan::id);
        objects.insert(format!("{PVIDS}.{number}"), Value::Gauge32(pvid.into()));
        let mut set = |column, vlan| {
            let bits = bits.entry((column, vlan)).or_insert_with(|| vec![0; 6]);
            bits[usize::from((number - 1) / 8)] |= 0x80 >> ((number - 1) % 8);
        };
        port.members().iter().for_each(|vlan| set(2, vlan));
        port.untagged.iter().for_each(|vlan| set(4, vlan));
    }
    for ((column, vlan), bits) in bits {
        objects.insert(format!("{VLANS}.{column}.{vlan}"), Value::OctetString(bits));
    }
    for trunk in &wiring.trunks {
        if let Some((near, far)) = trunk.seen_from(SwitchId::new(place)) {
            let index = format!("0.{}.1", near.ports[0]);
            let name = wiring.switches[far.switch.place()].name.clone();
            let port = format!("1/g{}", far.ports[0]);
            let text = |text: String| Value::OctetString(text.into_bytes());
            objects.insert(format!("{NEIGHBOURS}.9.{index}"), text(name));
            objects.insert(format!("{NEIGHBOURS}.7.{index}"), text(port));
        }
    }
    objects
}

/// The address of a host in an index: `02:00:00:00:00:01` for the first.
fn octets(host: HostId) -> String {
    format!("2.0.0.0.0.{}", host.place() + 1)
}

fn integer(port: u16) -> Value {
    Value::Integer(port.into())
}

/// Every switch has learned every host that has sent a broadcast in each VLAN of its port.
fn learn(wiring: &Wiring, configuration: &Configuration, agents: &mut [Objects]) {
    let mut emulator = Emulator::new(wiring, configuration);
    for (place, own) in wiring.hosts.iter().enumerate() {
        let host = HostId::new(place);
        let settings = configuration.switches[own.switch.place()].ports.iter();
        let settings = settings.clone().find(|port| port.ports == own.ports).unwrap();
        for vlan in settings.members().iter() {
            let mut learn = |switch: SwitchId, port: PortNumber| {
                let database = DATABASES_FROM + u32::from(vlan.id());
                let objects = &mut agents[switch.place()];
                objects.insert(format!("{DATABASE}.0.{vlan}"), Value::Gauge32(database));
                objects.insert(format!("{LEARNED}.{database}.{}", octets(host)), integer(port.0));
            };
            learn(own.switch, own.ports[0]);
            for (crossing, _) in emulator.send(host, None, Some(vlan)).crossings {
                let to = crossing.to;
                learn(to.switch, configuration.switches[to.switch.place()].ports[to.slot].ports[0]);
            }
        }
    }
}

impl Agent {
    fn start(objects: Objects) -> Self {
        let objects = Arc::new(Mutex::new(objects));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let (stop, trigger) = Stop::pair().unwrap();
        let (instances, values) = InstancesBuilder::default().finish();
        let mut served =
            Served { objects: Arc::clone(&objects), instances, values, scratch: Vec::new() };
        let thread = std::thread::spawn(move || {
            let id = EngineId::from_slice(b"a simulated switch").unwrap();
            let mut engine = Engine::new(id, 1, WallTime::now());
            let access = Access::read_only(b"public");
            serve(&socket, &access, &mut engine, &mut served, &stop).unwrap();
        });
        Self { port, objects, stop: Some(trigger), thread: Some(thread) }
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end();
    }
}
