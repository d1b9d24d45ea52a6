//! The cluster file of a bench: written into its scratch directory, read by the real collector.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use meikyo_console::benches::collect::Speech;
use meikyo_units::Nanos;

/// The user of SNMPv3; its passwords are those that every farm gives its users.
pub(crate) const V3_USER: &str = "bench";
const V3_AUTH_PASSWORD: &str = meikyo_snmp::farm::AUTH_PASSWORD;
const V3_PRIVACY_PASSWORD: &str = meikyo_snmp::farm::PRIVACY_PASSWORD;

/// What the file says.
#[derive(Debug)]
pub(crate) struct ClusterText<'a> {
    /// What the cluster is called.
    pub(crate) name: &'a str,
    /// Name and address of every device.
    pub(crate) devices: &'a [(String, SocketAddr)],
    pub(crate) speech: Speech,
    pub(crate) every: Nanos,
    /// What is measured on each of them.
    pub(crate) measure: &'a [&'a str],
}

impl ClusterText<'_> {
    /// Writes the file and its secrets into `directory`; the path of the file.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<PathBuf> {
        let secrets = [
            ("community", "public"),
            ("write-community", "private"),
            ("auth-password", V3_AUTH_PASSWORD),
            ("privacy-password", V3_PRIVACY_PASSWORD),
        ];
        for (name, secret) in secrets {
            std::fs::write(directory.join(name), format!("{secret}\n"))?;
        }
        let path = directory.join("cluster.toml");
        std::fs::write(&path, self.text())?;
        Ok(path)
    }

    fn text(&self) -> String {
        let words: Vec<_> = self.measure.iter().map(|word| format!("{word:?}")).collect();
        let measure = words.join(", ");
        let every = self.every;
        // One request an interval at most, and some room for the walks at the start.
        let rate_max =
            (1_000_000_000 / every.get().max(1)).saturating_mul(4).clamp(1_000, 1_000_000);
        let mut text = format!(
            "name = \"{}\"\nmeasure = [{measure}]\n\n[snmp]\ninterval = \"{every}\"\n\
             rate_max = {rate_max}\n{}",
            self.name,
            settings(self.speech)
        );
        for (name, address) in self.devices {
            write!(text, "\n[[hosts]]\nname = \"{name}\"\naddress = \"{address}\"\n")
                .expect("writing to a string cannot fail");
        }
        text
    }
}

/// The lines of the cluster file that say how agents are spoken to.
fn settings(speech: Speech) -> String {
    match speech {
        Speech::V1 => "version = \"1\"\ncommunity = \"file:community\"\n".into(),
        Speech::V2c => "version = \"2c\"\ncommunity = \"file:community\"\n\
                        write = { version = \"2c\", community = \"file:write-community\" }\n"
            .into(),
        Speech::V3 => format!(
            "version = \"3\"\nuser = \"{V3_USER}\"\n\
             auth = {{ protocol = \"SHA-256\", password = \"file:auth-password\" }}\n\
             privacy = {{ protocol = \"AES-128\", password = \"file:privacy-password\" }}\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_understood_by_the_cluster_crate() {
        let devices: Vec<_> = (1..=3)
            .map(|n| (format!("node{n}"), SocketAddr::from(([127, 1, 0, n], 1610))))
            .collect();
        for speech in [Speech::V1, Speech::V2c, Speech::V3] {
            let directory = tempfile::tempdir().unwrap();
            let every = Nanos::from_millis(10);
            let measure = ["interface:eth0(in_octets,out_octets)", "load(load_1min)"];
            let text =
                ClusterText { name: "bench", devices: &devices, speech, every, measure: &measure };
            let path = text.write(directory.path()).unwrap();
            let cluster = meikyo_cluster::load(&path).unwrap();
            assert_eq!(cluster.devices.len(), 3);
            assert_eq!(cluster.devices[2].address, devices[2].1);
            assert_eq!(cluster.devices[0].snmp.interval, every);
            assert_eq!(cluster.devices[0].measure.len(), 2);
        }
    }
}
