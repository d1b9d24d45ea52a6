//! Switches that store and forward between networks.

use meikyo_undo::{Log, fields};
use meikyo_units::{Nanos, SimTime};

use crate::simplenet::{Interface, Passage};

/// What messages queue for in a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// For nothing: each message pays start-up and size over rate, and none waits for another.
    Unlimited,
    /// For the interface of the port.
    PerPort,
    /// For the one interface to the network.
    PerNetwork,
    /// For the only interface that the switch has.
    Shared,
}

/// A port of a switch: where one neighbour is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The network, counted from 0.
    pub network: u32,
    /// The port among those of the network, counted from 0.
    pub place: u32,
}

/// A switch that stores and forwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    switching: Switching,
    /// For each network, its first port among all.
    first_ports: Box<[u32]>,
    interfaces: Box<[Interface]>,
}
fields!(Switch { interfaces });

impl Switch {
    /// A switch with `ports` ports to each network.
    pub fn new(switching: Switching, ports: &[u32]) -> Self {
        let mut count = 0;
        let first_ports = ports.iter().map(|ports| {
            count += ports;
            count - ports
        });
        let first_ports = first_ports.collect();
        let interfaces = match switching {
            Switching::Unlimited => 0,
            Switching::PerPort => count as usize,
            Switching::PerNetwork => ports.len(),
            Switching::Shared => 1,
        };
        Self { switching, first_ports, interfaces: vec![Interface::default(); interfaces].into() }
    }

    /// What messages queue for in this switch.
    pub fn switching(&self) -> Switching {
        self.switching
    }

    /// The interfaces that anything queues for: of the ports, of the networks, or the only one.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn interface(&mut self, port: Port) -> Option<&mut Interface> {
        let place = match self.switching {
            Switching::Unlimited => return None,
            Switching::PerPort => self.first_ports[port.network as usize] + port.place,
            Switching::PerNetwork => port.network,
            Switching::Shared => 0,
        };
        Some(&mut self.interfaces[place as usize])
    }

    /// A message begins to arrive; gives when it is there as a whole. See [`Interface::receive`].
    ///
    /// # Panics
    /// If there is no such port and the switch is not unlimited.
    pub fn receive(
        &mut self,
        log: &mut impl Log,
        port: Port,
        begins: SimTime,
        transmission: Nanos,
    ) -> SimTime {
        match self.interface(port) {
            Some(interface) => interface.receive(log, begins, transmission),
            None => begins + transmission,
        }
    }

    /// Sends a message on that is there as a whole; gives when its beginning leaves. See
    /// [`Interface::send`].
    ///
    /// # Panics
    /// If there is no such port and the switch is not unlimited.
    pub fn send(
        &mut self,
        log: &mut impl Log,
        port: Port,
        now: SimTime,
        passage: Passage,
    ) -> SimTime {
        match self.interface(port) {
            Some(interface) => interface.send(log, now, passage),
            None => now + passage.start_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;

    use super::*;

    const UP: Port = Port { network: 1, place: 0 };

    fn down(place: u32) -> Port {
        Port { network: 0, place }
    }

    /// Two messages arrive at 0 from two hosts below, and one at 0 from above; all are sent on as
    /// soon as they are there, those from below upwards. When do they begin to leave?
    fn leave(switching: Switching) -> [u64; 3] {
        let mut switch = Switch::new(switching, &[2, 1]);
        let log = &mut Forget;
        let (slow, fast) = (Nanos::new(100), Nanos::new(10));
        let start_up = Nanos::new(30);
        let mut whole = [(down(0), slow), (down(1), slow), (UP, fast)].map(|(port, time)| {
            let whole = switch.receive(log, port, SimTime::START, time);
            let up = port.network == 0;
            (whole, up)
        });
        whole.sort_by_key(|(whole, _)| *whole);
        whole.map(|(whole, up)| {
            let (port, transmission) = if up { (UP, fast) } else { (down(1), slow) };
            switch.send(log, port, whole, Passage { start_up, transmission }).as_nanos()
        })
    }

    #[test]
    fn messages_queue_for_what_the_switch_has() {
        // The one from above is there at 10, those from below at 100: nothing waits.
        assert_eq!(leave(Switching::Unlimited), [40, 130, 130]);
        // The two upwards share a port: the second waits until 140, when the first has left.
        assert_eq!(leave(Switching::PerPort), [40, 130, 170]);
        // The two from below are received one after the other, at 100 and 200.
        assert_eq!(leave(Switching::PerNetwork), [40, 130, 230]);
        // All three are received one after the other, at 100, 200 and 210. The first occupies the
        // interface from 100 to 140, the second from 200 to 240, the third waits for that.
        assert_eq!(leave(Switching::Shared), [130, 230, 270]);
    }
}
