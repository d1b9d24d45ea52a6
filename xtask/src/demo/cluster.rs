//! The cluster file of the demo.

use std::path::Path;

use anyhow::Context as _;

/// What stands in it.
pub(crate) struct Cluster {
    pub(crate) hosts: u32,
    pub(crate) switches: u32,
    /// Port of all simulated agents.
    pub(crate) farm_port: u16,
    /// Port of this machine's own agent, if there is one.
    pub(crate) real_port: Option<u16>,
}

impl Cluster {
    /// Writes it and the community into `directory`.
    pub(crate) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        for (name, text) in [("community", "public\n".to_owned()), ("cluster.toml", self.text())] {
            let path = directory.join(name);
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        Ok(())
    }

    fn text(&self) -> String {
        let Self { hosts, switches, farm_port, real_port } = self;
        let mut text = format!(
            r#"# The cluster of `./x demo`: simulated agents on the loopback network.
name = "demo"
measure = ["interface:eth0", "disk:/", "load", "cpu", "memory"]

[snmp]
version = "2c"
community = "file:community"
port = {farm_port}
interval = "100ms"

[[hosts]]
name = "node[001-{hosts:03}]"
address = "127.1.0.[1-{hosts}]"

[[switches]]
name = "switch[01-{switches:02}]"
address = "127.1.0.[{first_switch}-{last_switch}]"
measure = ["interfaces(in_octets,out_octets)"]
"#,
            first_switch = hosts + 1,
            last_switch = hosts + switches,
        );
        if let Some(port) = real_port {
            text.push_str(&format!(
                r#"
# This machine, through a real snmpd.
[[hosts]]
name = "this-machine"
address = "127.0.0.1:{port}"
measure = ["interfaces", "disk:/", "load", "cpu", "memory"]
"#
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_hosts_and_switches_once() {
        let cluster = Cluster { hosts: 64, switches: 4, farm_port: 1610, real_port: Some(1611) };
        let text = cluster.text();
        assert!(text.contains("name = \"node[001-064]\"\naddress = \"127.1.0.[1-64]\""));
        assert!(text.contains("name = \"switch[01-04]\"\naddress = \"127.1.0.[65-68]\""));
        assert!(text.contains("address = \"127.0.0.1:1611\""));
    }
}
