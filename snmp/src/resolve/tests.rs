mod names;
mod sensors;

use std::path::Path;

use super::*;
use crate::plan::Guard;

fn device(measure: &str) -> Device {
    let text = format!(
        "name = \"test\"\n[snmp]\nversion = \"2c\"\ncommunity = \"env:COMMUNITY\"\n\
         [[hosts]]\nname = \"node1\"\naddress = \"127.0.0.1\"\nmeasure = [{measure}]\n"
    );
    let cluster = meikyo_cluster::parse(&text, Path::new("cluster.toml"));
    cluster.unwrap_or_else(|error| panic!("{error}: {:?}", error.problems())).devices.remove(0)
}

fn oid(text: &str) -> Oid {
    text.parse().unwrap()
}

fn varbind(text: &str, value: Value) -> (Oid, Value) {
    (oid(text), value)
}

fn text(text: &str) -> Value {
    Value::OctetString(text.into())
}

/// What a Debian 12 net-snmp 5.9.3 agent answered to the walks, shortened.
fn agent() -> Vec<(Oid, Value)> {
    vec![
        varbind("1.3.6.1.2.1.1.3.0", Value::TimeTicks(4711)),
        varbind("1.3.6.1.2.1.2.2.1.2.1", text("lo")),
        varbind("1.3.6.1.2.1.2.2.1.2.4", text("eth0")),
        varbind("1.3.6.1.2.1.31.1.1.1.1.1", text("lo")),
        varbind("1.3.6.1.2.1.31.1.1.1.1.4", text("eth0")),
        varbind("1.3.6.1.2.1.31.1.1.1.6.1", Value::Counter64(3193)),
        varbind("1.3.6.1.2.1.31.1.1.1.6.4", Value::Counter64(77_969_260)),
        varbind("1.3.6.1.2.1.31.1.1.1.7.1", Value::Counter64(12)),
        varbind("1.3.6.1.2.1.31.1.1.1.7.4", Value::Counter64(7796)),
        varbind("1.3.6.1.4.1.2021.9.1.2.1", text("/")),
        varbind("1.3.6.1.4.1.2021.9.1.11.1", Value::Gauge32(264_212_084)),
        varbind("1.3.6.1.2.1.25.2.3.1.3.31", text("/")),
        varbind("1.3.6.1.2.1.25.2.3.1.3.35", text("/dev/shm")),
        varbind("1.3.6.1.2.1.25.2.3.1.4.31", Value::Integer(4096)),
        varbind("1.3.6.1.2.1.25.2.3.1.4.35", Value::Integer(4096)),
        varbind("1.3.6.1.4.1.2021.10.1.5.1", Value::Integer(389)),
        varbind("1.3.6.1.4.1.2021.10.1.5.2", Value::Integer(210)),
        varbind("1.3.6.1.4.1.2021.10.1.5.3", Value::Integer(127)),
        varbind("1.3.6.1.4.1.2021.4.5.0", Value::Integer(24_684_084)),
        varbind("1.3.6.1.4.1.2021.4.20.0", Value::Counter64(24_684_084)),
        varbind("1.3.6.1.4.1.2021.4.6.0", Value::Integer(19_923_808)),
        varbind("1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2", Value::Integer(3)),
        varbind("1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.4", Value::Integer(5)),
    ]
}

fn resolved(measure: &str) -> (Vec<RowPlan>, Vec<Problem>) {
    let (plan, problems) = plan(&device(measure), &agent());
    (plan.rows, problems)
}

/// The columns of a row with what is asked for them.
fn asked(row: &RowPlan) -> Vec<(String, String)> {
    let schema = schema(row.table);
    let named = |value: &ValuePlan| {
        let asked = match value.convert {
            Convert::Constant(number) => number.to_string(),
            _ => value.oid.to_string(),
        };
        (schema.columns[value.column].name.clone(), asked)
    };
    row.values.iter().map(named).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, oid)| ((*name).to_owned(), (*oid).to_owned())).collect()
}

#[test]
fn an_interface_is_found_by_name_with_its_64_bit_counters_and_guarded() {
    let (rows, problems) = resolved("\"interface:eth0(in_octets,out_octets)\"");
    assert_eq!(problems, []);
    assert_eq!(rows.len(), 1);
    let guard = Guard { oid: oid("1.3.6.1.2.1.31.1.1.1.1.4"), expected: b"eth0".to_vec() };
    assert_eq!(rows[0].guard, Some(guard));
    assert_eq!(rows[0].instance.as_deref(), Some("eth0"));
    let expected = [
        ("in_octets", "1.3.6.1.2.1.31.1.1.1.6.4"),
        ("out_octets", "1.3.6.1.2.1.31.1.1.1.10.4"),
        ("counter_bits", "64"),
        ("discontinuity_cs", "1.3.6.1.2.1.31.1.1.1.19.4"),
    ];
    assert_eq!(asked(&rows[0]), pairs(&expected));
}

#[test]
fn an_agent_without_ifxtable_is_asked_for_32_bits_under_ifdescr() {
    let walked: Vec<_> = agent()
        .into_iter()
        .filter(|(object, _)| !object.starts_with(&oid("1.3.6.1.2.1.31")))
        .collect();
    let (plan, problems) = plan(&device("\"interface:eth0(in_octets,speed_mbps)\""), &walked);
    assert_eq!(problems, []);
    let guard = Guard { oid: oid("1.3.6.1.2.1.2.2.1.2.4"), expected: b"eth0".to_vec() };
    assert_eq!(plan.rows[0].guard, Some(guard));
    let expected = [("in_octets", "1.3.6.1.2.1.2.2.1.10.4"), ("counter_bits", "32")];
    assert_eq!(asked(&plan.rows[0]), pairs(&expected));
}

#[test]
fn all_interfaces_get_a_row_each_and_all_columns() {
    let (rows, problems) = resolved("\"interfaces\"");
    assert_eq!(problems, []);
    let names: Vec<_> = rows.iter().filter_map(|row| row.instance.as_deref()).collect();
    assert_eq!(names, ["lo", "eth0"]);
    assert_eq!(rows[0].values.len(), 12);
}

#[test]
fn two_interfaces_of_one_name_are_not_mixed() {
    let mut walked = agent();
    walked.push(varbind("1.3.6.1.2.1.31.1.1.1.1.9", text("eth0")));
    let (plan, problems) = plan(&device("\"interfaces\", \"interface:eth0\""), &walked);
    let names: Vec<_> = plan.rows.iter().filter_map(|row| row.instance.as_deref()).collect();
    assert_eq!(names, ["lo", "eth0#4", "eth0#9"]);
    assert_eq!(
        problems[0].to_string(),
        "`node1`: 2 interfaces are called `eth0`, so none of them is measured by that name \
         (`interface:eth0`, line 8); it has `eth0#4`, `eth0#9`"
    );
}

#[test]
fn disks_come_from_dsktable_and_else_from_hrstoragetable() {
    let (rows, problems) = resolved("\"disk:/\", \"disk:/dev/shm every 10s\"");
    assert_eq!(problems, []);
    let expected = [
        ("total_bytes", "1.3.6.1.4.1.2021.9.1.11.1"),
        ("used_bytes", "1.3.6.1.4.1.2021.9.1.15.1"),
        ("available_bytes", "1.3.6.1.4.1.2021.9.1.13.1"),
    ];
    assert_eq!(asked(&rows[0]), pairs(&expected));
    assert_eq!(
        rows[0].values[0].convert,
        Convert::LowHigh { high: oid("1.3.6.1.4.1.2021.9.1.12.1"), factor: 1024 }
    );
    let expected =
        [("total_bytes", "1.3.6.1.2.1.25.2.3.1.5.35"), ("used_bytes", "1.3.6.1.2.1.25.2.3.1.6.35")];
    assert_eq!(asked(&rows[1]), pairs(&expected));
    assert_eq!(rows[1].values[0].convert, Convert::Scaled(4096));
    assert_eq!(rows[1].every, Nanos::from_secs(10));
}

#[test]
fn memory_is_taken_in_64_bits_where_the_agent_has_them() {
    let (rows, problems) = resolved("\"memory\"");
    assert_eq!(problems, []);
    let expected =
        [("total_bytes", "1.3.6.1.4.1.2021.4.20.0"), ("available_bytes", "1.3.6.1.4.1.2021.4.6.0")];
    assert_eq!(asked(&rows[0]), pairs(&expected));
}

#[test]
fn what_is_wanted_twice_is_asked_once_and_as_often_as_wanted_most_often() {
    let (rows, _) =
        resolved("\"interfaces every 10s\", \"interface:eth0(in_octets,out_octets)\", \"load\"");
    let shape: Vec<_> = rows
        .iter()
        .map(|row| {
            (row.instance.as_deref().unwrap_or(""), row.every.get() / 1_000_000, row.values.len())
        })
        .collect();
    // `in_octets`, `out_octets`, `counter_bits`, `discontinuity_cs` of eth0 go with the fast row.
    assert_eq!(shape, [("lo", 10_000, 12), ("eth0", 10_000, 8), ("eth0", 100, 4), ("", 100, 3)]);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let (rows, problems) = resolved("\"interface:eth7\", \"disk:/data\", \"1.3.6.1.2.1.1.3.1\"");
    assert_eq!(rows, []);
    let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "`node1`: the agent has no interface `eth7` (`interface:eth7`, line 8); it has `lo`, \
             `eth0`",
            "`node1`: the agent has no disk `/data` (`disk:/data`, line 8); it has `/`, `/dev/shm`",
            "`node1`: the agent has no object `1.3.6.1.2.1.1.3.1` (`1.3.6.1.2.1.1.3.1`, line 8); it \
             has `1.3.6.1.2.1.1.3.0`",
        ]
    );
    assert_eq!(problems[1].add, ["disk /data"]);
}

#[test]
fn debians_default_view_gets_the_lines_that_open_it() {
    let walked = [varbind("1.3.6.1.2.1.1.3.0", Value::TimeTicks(4711))];
    let (plan, problems) = plan(&device("\"interface:eth0\", \"load\", \"disk:/data 1\""), &walked);
    assert_eq!(plan.rows, []);
    assert_eq!(
        problems[0].to_string(),
        "`node1`: the agent shows no interfaces (`interface:eth0`, line 8)"
    );
    let lines: Vec<_> = problems.iter().flat_map(|problem| problem.add.clone()).collect();
    assert_eq!(
        lines,
        [
            "view systemonly included .1.3.6.1.2.1.2.2",
            "view systemonly included .1.3.6.1.2.1.31.1.1",
            "view systemonly included .1.3.6.1.4.1.2021.10",
            "view systemonly included .1.3.6.1.4.1.2021.9",
            "view systemonly included .1.3.6.1.2.1.25.2.3",
            "disk \"/data 1\"",
        ]
    );
}

#[test]
fn uptime_alone_needs_no_row() {
    let (rows, problems) = resolved("\"uptime\"");
    assert_eq!((rows, problems), (vec![], vec![]));
}

#[test]
fn the_declared_cache_of_the_interfaces_holds_for_both_interface_tables() {
    let (rows, _) = resolved("\"interface:eth0(in_octets)\", \"load\"");
    assert_eq!(declared_refresh(&agent(), &rows[0]), Some(Nanos::from_secs(3)));
    assert_eq!(declared_refresh(&agent(), &rows[1]), None);
}

#[test]
fn every_subtree_is_walked_once() {
    let walks = walks_for(&device("\"interfaces\", \"interface:eth0\", \"load\""));
    let mut sorted = walks.clone();
    sorted.dedup();
    assert_eq!(walks, sorted);
    assert!(walks.contains(&oid("1.3.6.1.2.1.1.3")));
    assert!(walks.contains(&oid("1.3.6.1.4.1.8072.1.5.3.1.2")));
}

#[test]
fn objects_are_asked_by_name_too() {
    let (rows, problems) = resolved("\"sysUpTime.0\", \"ifHCInOctets.4\"");
    assert_eq!(problems, []);
    let oids: Vec<_> = rows.iter().map(|row| row.values[0].oid.to_string()).collect();
    assert_eq!(oids, ["1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.31.1.1.1.6.4"]);
    let (_, problems) = resolved("\"ifHCInOctets.7\", \"ifHCInOctet.4\"");
    assert_eq!(problems[0].has, ["ifHCInOctets.1", "ifHCInOctets.4"]);
    let text = problems[1].to_string();
    assert!(text.contains("`ifHCInOctets`") && text.contains("line 8"), "{text}");
}
