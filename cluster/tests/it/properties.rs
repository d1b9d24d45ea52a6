//! What holds for every file.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use meikyo_cluster::{PROBLEMS_MAX, diff, fold, parse};
use proptest::prelude::*;

const EXAMPLE: &str = include_str!("../../../examples/cluster.toml");

/// Reads the text; what is told about a wrong one must be bounded and point into it.
fn is_told_well(text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = parse(text, Path::new("cluster.toml")) {
        let problems = error.problems();
        prop_assert!(!problems.is_empty() && problems.len() <= PROBLEMS_MAX);
        prop_assert!(problems.is_sorted());
        for problem in problems {
            let lines = 1..=text.lines().count() + 1;
            let within = problem.line.is_some_and(|line| lines.contains(&line));
            prop_assert!(within, "{problem:?}");
            prop_assert!(!problem.text.is_empty() && !problem.text.contains('\n'), "{problem:?}");
        }
    }
    Ok(())
}

/// Cuts `text` at the nearest boundaries of characters and puts `inserted` into the place.
fn damaged(text: &str, at: usize, length: usize, inserted: &str) -> String {
    let start = text.floor_char_boundary(at % (text.len() + 1));
    let end = text.floor_char_boundary((start + length).min(text.len()));
    format!("{}{inserted}{}", &text[..start], &text[end..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_told_about(text in "\\PC{0,200}") {
        is_told_well(&text)?;
    }

    #[test]
    fn any_toml_is_read_or_told_about(
        keys in prop::collection::vec(
            (
                prop::sample::select(&[
                    "name", "measure", "snmp", "hosts", "switches", "groups", "recording", "x",
                    "snmp.version", "snmp.user", "snmp.auth", "snmp.port", "snmp.interval",
                ][..]),
                prop::sample::select(&[
                    "1", "-1", "1.5", "true", "[]", "[[]]", "{}", "\"\"", "\"x\"", "[1, \"x\"]",
                    "[{}]", "[{ name = \"a[1-\", address = \"::\" }]", "{ keep = 0 }",
                    "1979-05-27", "99999999999999999999", "{ a = { members = \"a\" } }",
                ][..]),
            ),
            0..8,
        ),
    ) {
        let lines: Vec<_> = keys.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        is_told_well(&lines.join("\n"))?;
    }

    #[test]
    fn a_damaged_file_is_read_or_told_about(
        at: usize,
        length in 0..40_usize,
        inserted in "[\\[\\]{}\"'#=.,:\n a-z0-9é-]{0,12}",
    ) {
        is_told_well(&damaged(EXAMPLE, at, length, &inserted))?;
    }

    #[test]
    fn what_is_written_is_read(
        names in prop::collection::btree_set("[a-c]{1,2}[0-9]{0,3}(-[0-9]{1,2})?", 1..60),
        seed: u32,
        interval_ms in 1..3_600_000_u32,
    ) {
        let names: Vec<String> = names.into_iter().collect();
        let addresses: Vec<String> = (0..u32::try_from(names.len()).unwrap_or(0))
            // Addresses that an agent can have, from 1.0.0.0 on and below the multicast ones.
            .map(|at| 0x0100_0000 + seed.wrapping_add(at * 7) % 0xdf00_0000)
            .map(|address| Ipv4Addr::from(address).to_string())
            .collect();
        let text = format!(
            "name = \"x\"\nmeasure = [\"load\"]\n\
             snmp = {{ version = \"1\", community = \"env:C\", interval = \"{interval_ms}ms\" }}\n\
             [[hosts]]\nname = \"{}\"\naddress = \"{}\"\n",
            fold(&names), fold(&addresses)
        );
        let cluster = parse(&text, Path::new("cluster.toml"))
            .map_err(|error| TestCaseError::fail(format!("{text}\n{error}")))?;
        prop_assert_eq!(cluster.devices.len(), names.len());
        for ((device, name), address) in cluster.devices.iter().zip(&names).zip(&addresses) {
            prop_assert_eq!(&device.name, name);
            prop_assert_eq!(Ok(device.address.ip()), address.parse::<IpAddr>());
            prop_assert_eq!(device.snmp.interval.get(), u64::from(interval_ms) * 1_000_000);
        }
        prop_assert!(diff(&cluster, &cluster).is_empty());
    }
}
