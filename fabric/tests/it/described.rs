//! From cluster files to wirings.

use meikyo_fabric::{Described, PortNumber, describe, plan};

fn described(fabric: &str, hosts: usize, switches: usize) -> Result<Described, String> {
    let text = format!(
        "{fabric}\n[[hosts]]\nname = \"node[1-{hosts}]\"\naddress = \"10.0.0.[1-{hosts}]\"\n\
         [[switches]]\nname = \"sw[1-{switches}]\"\naddress = \"10.0.1.[1-{switches}]\"\n"
    );
    let text = format!(
        "name = \"test\"\nmeasure = [\"interfaces\"]\n\
         snmp = {{ version = \"2c\", community = \"env:C\" }}\n{text}"
    );
    let cluster =
        meikyo_cluster::parse(&text, "cluster.toml".as_ref()).map_err(|error| error.to_string())?;
    describe(&cluster).map_err(|error| error.to_string())
}

#[test]
fn hosts_are_dealt_out_evenly() {
    let paper = "[fabric]\ntopology = \"complete 8\"\ncables = 2\nmodel = \"powerconnect-6248\"";
    let described = described(paper, 225, 8).unwrap();
    let hosts = described.wiring.hosts.iter();
    let first = hosts.filter(|host| host.switch.place() == 0).count();
    assert_eq!(first, 29);
    let plan = plan(&described.wiring, &described.options).unwrap();
    assert_eq!(plan.table_entries, [1800; 8]);
}

#[test]
fn links_get_the_ports_that_they_name_and_others_the_free_ones() {
    let links = "[fabric]\nmodel = \"powerconnect-6248\"\n\
                 [[links]]\nbetween = [\"sw1\", \"sw2\"]\ncables = 2\n\
                 [[links]]\nbetween = [\"sw2:48\", \"sw3:1\"]\n\
                 [[links]]\nbetween = [\"node1\", \"sw1\"]\n\
                 [[links]]\nbetween = [\"node[2-3]\", \"sw3\"]\n";
    let described = described(links, 3, 3).unwrap();
    let wiring = &described.wiring;
    let ports = |ports: &[PortNumber]| ports.iter().map(|port| port.0).collect::<Vec<_>>();
    assert_eq!(ports(&wiring.trunks[0].ends[0].ports), [47, 48]);
    assert_eq!(ports(&wiring.trunks[0].ends[1].ports), [46, 47]);
    assert_eq!(ports(&wiring.trunks[1].ends[0].ports), [48]);
    assert_eq!(ports(&wiring.hosts[1].ports), [2]);
    assert_eq!(plan(wiring, &described.options).unwrap().working.len(), 1);
}

#[test]
fn what_cannot_be_wired_is_refused_with_the_line() {
    for (fabric, hosts, switches, error) in [
        (
            "[fabric]\ntopology = \"ring 2\"",
            4,
            2,
            "line 5: fabric.topology: `ring 2` cannot be wired: 2 switches, at least 3 are needed",
        ),
        (
            "[fabric]\ntopology = \"ring 4\"",
            4,
            3,
            "line 5: the topology has 4 switches, the cluster file 3",
        ),
        (
            "[fabric]\ntopology = \"complete 8\"\ncables = 3\nmodel = \"powerconnect-6248\"",
            225,
            8,
            "line 5: `sw1` (powerconnect-6248) needs 29 ports for hosts and 21 for trunks, 50 in \
             all, and has 48: 2 links a bundle would fit",
        ),
        (
            "[fabric]\nmodel = \"powerconnect-6248\"\n\
             [[links]]\nbetween = [\"node1\", \"sw1:49\"]",
            1,
            1,
            "line 6: links.between: `sw1` (powerconnect-6248) has no port 49; its ports are 1 to 48",
        ),
        (
            "[fabric]\n[[links]]\nbetween = [\"node1\", \"sw1:4\"]\n\
             [[links]]\nbetween = [\"node2\", \"sw1:4\"]",
            2,
            1,
            "line 7: links.between: port 4 of `sw1` is used twice",
        ),
        (
            "[fabric]\n[[links]]\nbetween = [\"node1\", \"sw1\"]",
            2,
            1,
            "line 7: hosts.name: `node2` is linked to no switch",
        ),
    ] {
        assert_eq!(described(fabric, hosts, switches).unwrap_err(), error);
    }
}
