//! What a predicted run carries, as a recording that the page's view of the fabric shows like a measured one.
//!
//! Each port of a switch is read at the beginning, at most 255 times in between, at equal distances, and at
//! the end. Octets are those of programs, without headers.

use std::collections::BTreeMap;
use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_fabric::{PortNumber, SwitchId, TrunkEnd, Wiring, dialect};
use meikyo_models::prediction::{LanePlace, Prediction};
use meikyo_recording::format::FILE_NAME;
use meikyo_recording::{Kind, StreamOptions, StreamWriter, WhenFull};
use meikyo_snmp::tables::{self, Table};
use meikyo_units::Nanos;

/// Octets that come in and go out at a port.
type Octets = [u64; 2];

/// Writes the recording.
pub(super) fn write(dir: &Path, wiring: &Wiring, predicted: &Prediction) -> Result<(), Failure> {
    if dir.join(FILE_NAME).exists() {
        let text = format!("`{}` holds a recording already", dir.display());
        return Err(Failure::new(text).hint("name another directory: --out run-2"));
    }
    let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(dir, Kind::Simulated, "predict", tables::schemas(), options)?;
    let schema = tables::schema(Table::Interfaces);
    let at = |name| schema.column(name).expect("a column of `interfaces`");
    let courses = predicted.courses.as_ref().expect("it was asked for");
    let beginning = std::iter::once((Nanos::ZERO, None));
    let readings = courses.until.iter().enumerate().map(|(at, until)| (*until, Some(at)));
    for (time, reading) in beginning.chain(readings) {
        let mut batch = writer.batch(Table::Interfaces.index());
        let carried = |lane: usize| reading.map_or(0, |at| courses.carried[lane][at].get());
        // Saturates after 292 years.
        let time = i64::try_from(time.get()).unwrap_or(i64::MAX);
        for (&(switch, port), [came, went]) in &ports(wiring, predicted, carried) {
            let switch = &wiring.switches[switch.place()];
            let [device, interface] = [&switch.name, &dialect::interface_name(&switch.model, port)]
                .map(|name| writer.symbol(name));
            batch.begin_row(time);
            batch.put_symbol(at("device"), device);
            batch.put_symbol(at("interface"), interface);
            batch.put_u64(at("in_octets"), *came);
            batch.put_u64(at("out_octets"), *went);
            batch.put_u64(at("speed_mbps"), wiring.rate.get() / 1_000_000);
            batch.put_u64(at("oper_status"), 1);
            batch.put_u64(at("counter_bits"), 64);
        }
        writer.submit(batch);
    }
    let dropped = writer.close()?.counters.rows_dropped;
    if dropped > 0 {
        return Err(Failure::new(format!("{dropped} rows could not be written")));
    }
    Ok(())
}

/// What each port of a switch has carried, those that carry nothing included, if lanes have carried so much.
fn ports(
    wiring: &Wiring,
    predicted: &Prediction,
    carried: impl Fn(usize) -> u64,
) -> BTreeMap<(SwitchId, PortNumber), Octets> {
    let mut ports: BTreeMap<(SwitchId, PortNumber), Octets> = BTreeMap::new();
    for (lane, &(place, _)) in predicted.carried.iter().enumerate() {
        let mut count = |port, way: usize| {
            let octets: &mut Octets = ports.entry(port).or_default();
            octets[way] += carried(lane);
        };
        let end = |end: &TrunkEnd, cable: usize| (end.switch, end.ports[cable]);
        match place {
            LanePlace::FromHost { host, card } => {
                let host = &wiring.hosts[host];
                count((host.switch, host.ports[card]), 0);
            }
            LanePlace::ToHost { host, card } => {
                let host = &wiring.hosts[host];
                count((host.switch, host.ports[card]), 1);
            }
            LanePlace::Cable { trunk, forward, cable } => {
                let [one, other] = &wiring.trunks[trunk].ends;
                let (from, to) = if forward { (one, other) } else { (other, one) };
                count(end(from, cable), 1);
                count(end(to, cable), 0);
            }
            LanePlace::Within { .. } => {}
        }
    }
    ports
}
