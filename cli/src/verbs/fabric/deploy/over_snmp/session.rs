//! A switch that is read and written over SNMP: what is set is read back, whatever the answer was.

use std::path::Path;

use meikyo_cluster::Device;
use meikyo_fabric::{SwitchModel, Vlan};
use meikyo_snmp::{Client, ClientOptions, Credentials, ErrorStatus, Oid, RequestError, Value};
use meikyo_units::in_one_line;

use super::changes::Change;
use super::tables::{ACTIVE, ROW_STATUS, Tables};

/// `sysUpTime.0` (RFC 3418), hundredths of a second.
const UPTIME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3, 0];
/// How often a request is sent again to a switch that is silent.
const RETRIES: u32 = 2;
/// `createAndGo` of `RowStatus` (RFC 2579).
const CREATE_AND_GO: i64 = 4;
/// `createAndWait` of `RowStatus`: the row is made and not used yet.
const CREATE_AND_WAIT: i64 = 5;
/// `destroy` of `RowStatus`: the row is taken away.
const DESTROY: i64 = 6;

/// The way to one switch.
pub(super) struct Session {
    reader: Client,
    writer: Client,
    uptime_cs: u64,
}

impl Session {
    /// Credentials to read and to write, from the cluster file.
    pub(super) fn open(device: &Device, base: &Path) -> Result<Self, String> {
        let write = device.snmp.write_access.as_ref().ok_or(
            "the file has no credentials that may write (`snmp.write`); see docs/cluster-file.md",
        )?;
        let client = |access| {
            let credentials =
                Credentials::resolve(access, base).map_err(|error| in_one_line(&error))?;
            let options = ClientOptions { timeout: device.snmp.timeout, retries: RETRIES };
            Client::connect(device.address, credentials, options)
                .map_err(|error| in_one_line(&error))
        };
        let (mut reader, writer) = (client(&device.snmp.access)?, client(write)?);
        let uptime_cs = uptime(&mut reader)?;
        Ok(Self { reader, writer, uptime_cs })
    }

    /// What the switch holds.
    pub(super) fn tables(&mut self, model: &SwitchModel) -> Result<Tables, String> {
        let mut walk = |subtree| self.reader.walk(&subtree).map_err(|error| in_one_line(&error));
        Tables::read(model, &mut walk)
    }

    /// Whether the switch has started anew since this was asked last.
    pub(super) fn has_restarted(&mut self) -> Result<bool, String> {
        let now = uptime(&mut self.reader)?;
        let before = std::mem::replace(&mut self.uptime_cs, now);
        // After 497 days the count begins anew by itself.
        let wrapped = before > u64::from(u32::MAX) - 100 * 3_600;
        Ok(now < before && !wrapped)
    }

    /// Carries a change out; an error if it is not there afterwards.
    pub(super) fn carry_out(&mut self, tables: &Tables, change: &Change) -> Result<(), String> {
        match change {
            Change::Create(vlan) => self.create(*vlan),
            Change::Destroy(vlan) => self.destroy(*vlan),
            _ => self.set(&tables.objects(change)),
        }
        .map_err(|problem| format!("{}: {problem}", tables.in_words(change)))
    }

    fn set(&mut self, objects: &[(Oid, Value)]) -> Result<(), String> {
        let answered = self.writer.set(objects);
        let names: Vec<Oid> = objects.iter().map(|(oid, _)| oid.clone()).collect();
        match self.reader.get(&names) {
            // An answer that got lost is no failure, and a yes that was not kept is one.
            Ok(found) if same(objects, &found) => Ok(()),
            found => Err(match answered {
                Err(error) => refused(&error),
                Ok(()) => match found {
                    Ok(_) => "the switch said yes and did not do it".to_owned(),
                    Err(error) => format!("it cannot be read back: {}", in_one_line(&error)),
                },
            }),
        }
    }

    /// A row that counts: at once, or, where the switch wants that, first one that does not count yet.
    fn create(&mut self, vlan: Vlan) -> Result<(), String> {
        let at_once = self.writer.set(&[(row(vlan), Value::Integer(CREATE_AND_GO))]);
        if self.status(vlan)? == Some(ACTIVE) {
            return Ok(());
        }
        let waiting = self.writer.set(&[(row(vlan), Value::Integer(CREATE_AND_WAIT))]);
        let active = Value::Integer(i64::try_from(ACTIVE).expect("a small constant"));
        let activated = self.writer.set(&[(row(vlan), active)]);
        if self.status(vlan)? == Some(ACTIVE) {
            return Ok(());
        }
        let said = [at_once, waiting, activated].into_iter().find_map(Result::err);
        Err(said.map_or_else(
            || "the switch said yes and did not do it".to_owned(),
            |error| refused(&error),
        ))
    }

    fn destroy(&mut self, vlan: Vlan) -> Result<(), String> {
        let answered = self.writer.set(&[(row(vlan), Value::Integer(DESTROY))]);
        match (self.status(vlan)?, answered) {
            (None, _) => Ok(()),
            (Some(_), Err(error)) => Err(refused(&error)),
            (Some(_), Ok(())) => Err("the switch said yes and did not do it".to_owned()),
        }
    }

    /// The status of the row of a VLAN; `None`: there is none.
    fn status(&mut self, vlan: Vlan) -> Result<Option<u64>, String> {
        let found = self.reader.get(&[row(vlan)]);
        let found = found.map_err(|error| format!("it cannot be read: {}", in_one_line(&error)))?;
        Ok(found.first().and_then(|(_, value)| value.as_u64()))
    }
}

fn row(vlan: Vlan) -> Oid {
    Oid::from_slice(ROW_STATUS).child(&[vlan.id().into()])
}

fn uptime(client: &mut Client) -> Result<u64, String> {
    let found = client.get(&[Oid::from_slice(UPTIME)]).map_err(|error| in_one_line(&error))?;
    let uptime = found.first().and_then(|(_, value)| value.as_u64());
    uptime.ok_or_else(|| "the agent does not say how long it has run (sysUpTime)".to_owned())
}

/// Whether what was found is what was set; agents may leave out zeros at the end of a list, or add some.
fn same(set: &[(Oid, Value)], found: &[(Oid, Value)]) -> bool {
    let is = |wanted: &Value, found: &Value| match (wanted.as_octets(), found.as_octets()) {
        (Some(wanted), Some(found)) => {
            let length = wanted.len().max(found.len());
            let octet = |list: &[u8], at: usize| list.get(at).copied().unwrap_or(0);
            (0..length).all(|at| octet(wanted, at) == octet(found, at))
        }
        _ => wanted.as_u64().is_some() && wanted.as_u64() == found.as_u64(),
    };
    set.len() == found.len()
        && set.iter().zip(found).all(|((_, wanted), (_, found))| is(wanted, found))
}

/// What the switch said, and what helps.
fn refused(error: &RequestError) -> String {
    let hint = match error.status() {
        Some(status) if status == ErrorStatus::NotWritable.code() => {
            "; it does not let that be set over SNMP: set it by hand"
        }
        Some(status)
            if [ErrorStatus::NoAccess, ErrorStatus::AuthorizationError]
                .iter()
                .any(|known| status == known.code()) =>
        {
            "; the credentials of `snmp.write` may not write it"
        }
        _ => "",
    };
    format!("{}{hint}", in_one_line(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_the_end_of_a_list_say_nothing() {
        let oid = Oid::from_slice(&[1, 3]);
        let list = |octets: &[u8]| [(oid.clone(), Value::OctetString(octets.to_vec()))];
        assert!(same(&list(&[0x80]), &list(&[0x80, 0, 0])));
        assert!(same(&list(&[0x80, 0]), &list(&[0x80])));
        assert!(!same(&list(&[0x80]), &list(&[0x80, 1])));
        // Unsigned32 and INTEGER of the same number are the same.
        let number = |value: Value| [(oid.clone(), value)];
        assert!(same(&number(Value::Gauge32(5)), &number(Value::Integer(5))));
        assert!(!same(&number(Value::Gauge32(5)), &number(Value::NoSuchInstance)));
    }
}
