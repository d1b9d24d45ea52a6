//! Names of interfaces as real agents give them, see `walks/README.md`.

use super::*;

/// The varbinds of a recorded walk.
pub(super) fn recorded(text: &str) -> Vec<(Oid, Value)> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, '|');
        let [oid, kind, value] = [(); 3].map(|()| parts.next().unwrap());
        let octets = || (0..value.len() / 2).map(|at| &value[2 * at..2 * at + 2]);
        let number = || value.parse::<u64>().unwrap();
        let narrow = || u32::try_from(number()).unwrap();
        let value = match kind {
            "2" => Value::Integer(value.parse().unwrap()),
            "4" => self::text(value),
            "4x" => Value::OctetString(
                octets().map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect(),
            ),
            "65" => Value::Counter32(narrow()),
            "66" => Value::Gauge32(narrow()),
            "67" => Value::TimeTicks(narrow()),
            "70" => Value::Counter64(number()),
            other => panic!("type {other}"),
        };
        (oid.parse().unwrap(), value)
    };
    text.lines().map(line).collect()
}

/// The rows of `interfaces` as (name, last arc of what is read as `in_octets`), and the remarks.
fn named(walk: &str) -> (Vec<(String, u32)>, Vec<String>) {
    let (plan, problems) = plan(&device("\"interfaces(in_octets)\""), &recorded(walk));
    assert_eq!(problems, []);
    let read = |row: &RowPlan| *row.values[0].oid.as_slice().last().unwrap();
    let rows = plan.rows.iter().map(|row| (row.instance.clone().unwrap(), read(row)));
    (rows.collect(), plan.remarks)
}

fn pairs(expected: &[(&str, u32)]) -> Vec<(String, u32)> {
    expected.iter().map(|(name, index)| ((*name).to_owned(), *index)).collect()
}

const NET_SNMP: &str = include_str!("../walks/net-snmp-5.9.snmprec");
const PROCURVE: &str = include_str!("../walks/hpe-procurve-516733-b21.snmprec");

#[test]
fn an_interface_that_was_made_again_is_read_and_its_remnant_is_not() {
    let (rows, remarks) = named(NET_SNMP);
    assert_eq!(rows, pairs(&[("lo", 1), ("peer0", 4), ("tst0", 5)]));
    assert_eq!(
        remarks[1],
        "2 interfaces are called `tst0`: the one at ifIndex 5 is measured, since the agent took \
         down the others before it"
    );
    let (plan, problems) = plan(&device("\"interface:tst0\""), &recorded(NET_SNMP));
    assert_eq!((plan.rows.len(), problems), (1, vec![]));
    let guard = Guard { oid: oid("1.3.6.1.2.1.31.1.1.1.1.5"), expected: b"tst0".to_vec() };
    assert_eq!(plan.rows[0].guard, Some(guard));
    assert!(plan.rows[0].named);
    // It is said of the interface that is measured, and of no other.
    assert_eq!(plan.remarks, remarks[1..=1]);
}

#[test]
fn of_remnants_alone_the_last_one_is_read_until_the_agent_forgets_it() {
    // Deleted, made again and deleted again: both are down, the second one since later.
    let mut walk = NET_SNMP.to_owned();
    for (from, to) in [("2.2.1.7.5|2|1", "2.2.1.7.5|2|2"), ("2.2.1.8.5|2|1", "2.2.1.8.5|2|2")] {
        walk = walk.replace(from, to);
    }
    assert_eq!(named(&walk).0, pairs(&[("lo", 1), ("peer0", 4), ("tst0", 5)]));
}

#[test]
fn ports_that_share_a_name_are_told_apart_by_ifdescr_and_this_is_said() {
    let (rows, remarks) = named(PROCURVE);
    let [switch, band] = [
        "HP ProCurve Switch software loopback interface",
        "HP Procurve Out Of Band Management loopback Interface",
    ];
    let expected =
        [("1", 1), ("2", 2), (switch, 4170), ("lo1", 4171), ("oobm0", 4178), (band, 4179)];
    assert_eq!(rows, pairs(&expected));
    assert_eq!(
        remarks,
        [format!(
            "2 interfaces are called `lo0`: they are recorded by ifDescr, as `{switch}`, `{band}`"
        )]
    );
    // By the shared name none can be meant; by its own each can.
    let walked = recorded(PROCURVE);
    let (_, problems) = plan(&device("\"interface:lo0\""), &walked);
    assert_eq!(problems[0].has, [switch, band]);
    let (plan, problems) = plan(&device(&format!("\"interface:{band}(in_octets)\"")), &walked);
    assert_eq!(problems, []);
    assert_eq!(plan.rows[0].values[0].oid, oid("1.3.6.1.2.1.31.1.1.1.6.4179"));
}

#[test]
fn ports_with_nothing_else_of_their_own_are_told_apart_by_ifindex() {
    let (rows, remarks) = named(include_str!("../walks/wds-ips-1022.snmprec"));
    assert_eq!(rows, pairs(&[("e0#1", 1), ("e0#2", 2)]));
    let said = "2 interfaces are called `e0`: they are recorded by ifIndex, as `e0#1`, `e0#2`";
    assert_eq!(remarks, [said]);
    // One is down, and yet none is the remnant of the other: the agent never took it down.
    let (rows, _) = named(include_str!("../walks/sangfor-wac.snmprec"));
    let expected = [
        ("eth0", 1),
        ("eth3#4", 4),
        ("eth6#7", 7),
        ("eth7#8", 8),
        ("eth3#13", 13),
        ("eth6#16", 16),
        ("eth7#17", 17),
    ];
    assert_eq!(rows, pairs(&expected));
}

#[test]
fn ports_without_any_name_are_recorded_by_ifindex_and_guarded_by_their_empty_name() {
    let walk = include_str!("../walks/vertiv-power.snmprec");
    let (rows, remarks) = named(walk);
    assert_eq!(rows, pairs(&[("#1", 1), ("#2", 2)]));
    assert_eq!(remarks, ["2 interfaces have no name: they are recorded by ifIndex, as `#1`, `#2`"]);
    let (plan, problems) = plan(&device("\"interface:#2\""), &recorded(walk));
    assert_eq!(problems, []);
    let guard = Guard { oid: oid("1.3.6.1.2.1.2.2.1.2.2"), expected: Vec::new() };
    assert_eq!(plan.rows[0].guard, Some(guard));
}

/// Four ports that are all called `Port`, with a text of their own in one column.
fn four_ports(column: &str, own: fn(usize) -> String) -> Vec<(Oid, Value)> {
    let mut walked = vec![varbind("1.3.6.1.2.1.1.3.0", Value::TimeTicks(1))];
    for port in 1..=4 {
        walked.push(varbind(&format!("1.3.6.1.2.1.31.1.1.1.1.{port}"), text("Port")));
        walked.push(varbind(&format!("1.3.6.1.2.1.31.1.1.1.6.{port}"), Value::Counter64(1)));
        walked.push(varbind(&format!("{column}.{port}"), text(&own(port))));
    }
    walked
}

#[test]
fn the_first_text_that_differs_among_all_is_the_name() {
    let names = |walked: &[(Oid, Value)]| -> Vec<String> {
        let (plan, problems) = plan(&device("\"interfaces\""), walked);
        assert_eq!(problems, []);
        plan.rows.into_iter().filter_map(|row| row.instance).collect()
    };
    let descr = "1.3.6.1.2.1.2.2.1.2";
    let walked = four_ports(descr, |port| format!("Slot 0 Port {port}"));
    assert_eq!(
        names(&walked),
        ["Slot 0 Port 1", "Slot 0 Port 2", "Slot 0 Port 3", "Slot 0 Port 4"]
    );
    let walked = four_ports("1.3.6.1.2.1.31.1.1.1.18", |port| format!("to rack {port}"));
    assert_eq!(names(&walked), ["to rack 1", "to rack 2", "to rack 3", "to rack 4"]);
    // Three of four do not tell four apart, and neither does a name that another port has.
    let walked = four_ports(descr, |port| format!("Slot 0 Port {}", port.min(3)));
    assert_eq!(names(&walked), ["Port#1", "Port#2", "Port#3", "Port#4"]);
    let mut walked = four_ports(descr, |port| format!("eth{port}"));
    walked.push(varbind("1.3.6.1.2.1.31.1.1.1.1.9", text("eth3")));
    assert_eq!(names(&walked), ["Port#1", "Port#2", "Port#3", "Port#4", "eth3"]);
}

#[test]
fn what_changes_with_the_rows_of_the_agent_is_watched() {
    let watched = |measure, walked: &[(Oid, Value)]| -> Vec<(String, Option<u64>)> {
        let (plan, _) = plan(&device(measure), walked);
        plan.watched.into_iter().map(|each| (each.oid.to_string(), each.seen)).collect()
    };
    let both =
        [("1.3.6.1.2.1.31.1.5.0".to_owned(), Some(902)), ("1.3.6.1.2.1.2.1.0".to_owned(), Some(5))];
    assert_eq!(watched("\"interfaces\"", &recorded(NET_SNMP)), both);
    assert_eq!(watched("\"interface:eth7\", \"load\"", &recorded(NET_SNMP)), both);
    // An agent that shows neither: the place after the last one.
    let next = [("1.3.6.1.2.1.2.2.1.2.5".to_owned(), None)];
    assert_eq!(watched("\"interfaces\"", &agent()), next);
    // A disk and an object that are not there yet.
    let expected = [
        ("1.3.6.1.4.1.2021.9.1.2.2".to_owned(), None),
        ("1.3.6.1.2.1.25.2.3.1.3.36".to_owned(), None),
        ("1.3.6.1.2.1.1.3.7".to_owned(), None),
    ];
    assert_eq!(watched("\"disk:/data\", \"1.3.6.1.2.1.1.3.7\"", &agent()), expected);
    assert_eq!(watched("\"load\", \"disk:/\"", &agent()), []);
}

#[test]
fn of_disks_that_share_a_path_the_first_is_read_and_this_is_said() {
    // hrStorageDescr and hrStorageAllocationUnits of what net-snmp shows where one file system is
    // mounted over another.
    let (descr, units) = ("1.3.6.1.2.1.25.2.3.1.3", "1.3.6.1.2.1.25.2.3.1.4");
    let mut walked = vec![varbind("1.3.6.1.2.1.1.3.0", Value::TimeTicks(1))];
    for (index, path) in [(31, "/"), (35, "/data"), (38, "/data"), (40, "/scratch")] {
        walked.push(varbind(&format!("{descr}.{index}"), text(path)));
        walked.push(varbind(&format!("{units}.{index}"), Value::Integer(4096)));
    }
    walked.sort_by(|a, b| a.0.cmp(&b.0));
    let (plan, problems) = plan(&device("\"disk:/data\", \"disk:/\""), &walked);
    assert_eq!(problems, []);
    let read: Vec<_> = plan.rows.iter().map(|row| row.values[0].oid.clone()).collect();
    assert_eq!(read, [oid("1.3.6.1.2.1.25.2.3.1.5.35"), oid("1.3.6.1.2.1.25.2.3.1.5.31")]);
    assert_eq!(plan.remarks, ["2 disks are called `/data`: the one at index 35 is measured"]);
}
