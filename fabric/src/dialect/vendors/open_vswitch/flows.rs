//! The flows of a switch of Open vSwitch, read as what they do to frames.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_units::Nanos;

use crate::dialect::reading::{Line, ParseError};
use crate::{Vlan, VlanSet};

/// The action that learns a sender and goes on; the timeout stands between.
const LEARN: [&str; 2] = [
    "learn(table=2,hard_timeout=",
    ",NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:NXM_OF_IN_PORT[]->\
     NXM_NX_REG0[0..15]),resubmit(,2),resubmit(,3)",
];

/// What flows do, by the port numbers of flows.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The VLAN of frames without a tag, by the port that they come in by.
    pub(super) pvids: BTreeMap<u16, Vlan>,
    /// The VLANs of tags that are taken.
    pub(super) taken: BTreeMap<u16, VlanSet>,
    /// When an address is forgotten: `Some(None)` is never; `None` if nothing is learned.
    pub(super) ageing: Option<Option<Nanos>>,
    /// Whether frames to a port lose their tag; and the VLANs in which it is not so.
    unicast: BTreeMap<u16, (bool, BTreeSet<Vlan>)>,
    /// The tables that were emptied: all that flows are added to.
    emptied: BTreeSet<u8>,
    /// Where a frame to an unknown address goes, with its tag and without.
    pub(super) floods: BTreeMap<Vlan, (BTreeSet<u16>, BTreeSet<u16>)>,
}

impl Flows {
    /// Adds a flow.
    pub(super) fn add(&mut self, line: Line<'_>) -> Result<(), ParseError> {
        if let Some(table) = line.text.strip_prefix("delete table=") {
            let table: u8 = line.number(table)?;
            if table > 3 || !self.ports().is_empty() {
                return Err(line.wrong("tables 0 to 3 are emptied, before flows are added"));
            }
            self.emptied.insert(table);
            return Ok(());
        }
        let Some((matches, actions)) = line.text.split_once("actions=") else {
            return Err(line.wrong("a flow has no `actions=`"));
        };
        let mut table = 0;
        let mut priority = None;
        let mut fields = BTreeMap::new();
        for part in matches.split([',', ' ']).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("table", number)) => table = line.number(number)?,
                Some(("priority", number)) => priority = Some(line.number::<u16>(number)?),
                Some((name, value)) => {
                    fields.insert(name, value);
                }
                None => return Err(line.wrong(format!("`{part}` is not understood"))),
            }
        }
        if !self.emptied.contains(&table) {
            return Err(line.wrong(format!("`delete table={table}` comes first")));
        }
        let fields: Vec<(&str, &str)> = fields.into_iter().collect();
        match (table, priority) {
            (0, Some(10)) => self.add_in(line, &fields, actions),
            (1, Some(10)) => self.add_learn(line, &fields, actions),
            (3, Some(20 | 30)) => self.add_unicast(line, &fields, actions),
            (3, Some(10)) => self.add_flood(line, &fields, actions),
            _ => Err(line.wrong("a flow of this table and priority is not understood")),
        }
    }

    fn add_in(
        &mut self,
        line: Line<'_>,
        fields: &[(&str, &str)],
        actions: &str,
    ) -> Result<(), ParseError> {
        match fields {
            [("in_port", port), ("vlan_tci", "0x0000/0x1fff")] => {
                let vlan = actions
                    .strip_prefix("mod_vlan_vid:")
                    .and_then(|rest| rest.strip_suffix(",resubmit(,1)"))
                    .ok_or_else(|| line.wrong("frames without a tag must get one and go on"))?;
                self.pvids.insert(line.number(port)?, line.vlan(vlan)?);
                Ok(())
            }
            [("dl_vlan", vlan), ("in_port", port)] if actions == "resubmit(,1)" => {
                let taken = self.taken.entry(line.number(port)?).or_default();
                taken.insert(line.vlan(vlan)?);
                Ok(())
            }
            _ => Err(line.wrong("a flow of table 0 is not understood")),
        }
    }

    fn add_learn(
        &mut self,
        line: Line<'_>,
        fields: &[(&str, &str)],
        actions: &str,
    ) -> Result<(), ParseError> {
        let timeout = actions.strip_prefix(LEARN[0]).and_then(|rest| rest.strip_suffix(LEARN[1]));
        let (true, Some(timeout)) = (fields.is_empty(), timeout) else {
            return Err(line.wrong("the flow of table 1 must learn the sender and go on"));
        };
        let seconds: u16 = line.number(timeout)?;
        self.ageing = Some((seconds > 0).then(|| Nanos::from_secs(seconds.into())));
        Ok(())
    }

    fn add_unicast(
        &mut self,
        line: Line<'_>,
        fields: &[(&str, &str)],
        actions: &str,
    ) -> Result<(), ParseError> {
        let (vlan, port) = match fields {
            [("reg0", port)] => (None, line.number::<u16>(port)?),
            [("dl_vlan", vlan), ("reg0", port)] => (Some(line.vlan(vlan)?), line.number(port)?),
            _ => return Err(line.wrong("a flow of table 3 is not understood")),
        };
        let strips = if actions == format!("output:{port}") {
            false
        } else if actions == format!("strip_vlan,output:{port}") {
            true
        } else {
            return Err(line.wrong(format!("what was learned at port {port} must go out there")));
        };
        match vlan {
            None => self.unicast.entry(port).or_insert((strips, BTreeSet::new())).0 = strips,
            Some(vlan) => match self.unicast.get_mut(&port) {
                Some((all, but)) if *all != strips => {
                    but.insert(vlan);
                }
                _ => return Err(line.wrong("the flow for all VLANs of the port comes first")),
            },
        }
        Ok(())
    }

    fn add_flood(
        &mut self,
        line: Line<'_>,
        fields: &[(&str, &str)],
        actions: &str,
    ) -> Result<(), ParseError> {
        let [("dl_vlan", vlan), ("reg0", "0")] = fields else {
            return Err(line.wrong("a flow of table 3 is not understood"));
        };
        let (mut tagged, mut untagged, mut stripped) = (BTreeSet::new(), BTreeSet::new(), false);
        for action in actions.split(',') {
            match action.strip_prefix("output:") {
                None if action == "strip_vlan" && !stripped => stripped = true,
                Some(port) => {
                    let ports = if stripped { &mut untagged } else { &mut tagged };
                    ports.insert(line.number(port)?);
                }
                None => return Err(line.wrong(format!("`{action}` is not understood here"))),
            }
        }
        self.floods.insert(line.vlan(vlan)?, (tagged, untagged));
        Ok(())
    }

    /// Whether a frame that is sent to an address at `port` goes out as a flooded one does.
    pub(super) fn agrees(&self, port: u16, vlan: Vlan, untagged: bool) -> bool {
        self.unicast
            .get(&port)
            .is_some_and(|(strips, but)| (*strips != but.contains(&vlan)) == untagged)
    }

    /// Every port that a flow names.
    pub(super) fn ports(&self) -> BTreeSet<u16> {
        let floods =
            self.floods.values().flat_map(|(tagged, untagged)| tagged.iter().chain(untagged));
        let ins = self.pvids.keys().chain(self.taken.keys()).chain(self.unicast.keys());
        ins.chain(floods).copied().collect()
    }
}
