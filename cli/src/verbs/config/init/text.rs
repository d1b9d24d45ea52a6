//! The text of the cluster file.

use std::fmt::Write as _;

use meikyo_cluster::Access;

use super::found::Found;

/// A cluster file with these devices. `port` is that of agents which name none.
pub(super) fn file(name: &str, port: u16, found: &[Found]) -> String {
    let mut text = format!(
        "# Written by `meikyo config init`. Every key stands in docs/cluster-file.md; check changes with\n\
         # `meikyo config check`, and what devices answer with `meikyo probe`.\n\
         name = {}\n",
        quoted(name)
    );
    let first = found.first().map(|device| &device.access);
    if let Some(access) = first {
        text += "\n[snmp]\n";
        for (key, value) in settings(access) {
            writeln!(text, "{key} = {value}").expect("writing to a string cannot fail");
        }
        if port != 161 {
            writeln!(text, "port = {port}").expect("writing to a string cannot fail");
        }
    }
    for device in found {
        let kind = if device.is_switch { "switches" } else { "hosts" };
        let ip = device.address.ip().to_string();
        let address = if device.address.port() == port { ip } else { device.address.to_string() };
        let measure: Vec<String> = device.measure.iter().map(|word| quoted(word)).collect();
        write!(
            text,
            "\n[[{kind}]]\nname = {}\naddress = {}\nmeasure = [{}]\n",
            quoted(&device.name),
            quoted(&address),
            measure.join(", ")
        )
        .expect("writing to a string cannot fail");
        if first != Some(&device.access) {
            let settings = settings(&device.access).into_iter();
            let settings: Vec<_> =
                settings.map(|(key, value)| format!("{key} = {value}")).collect();
            writeln!(text, "snmp = {{ {} }}", settings.join(", "))
                .expect("writing to a string cannot fail");
        }
    }
    text
}

/// How an agent is spoken to, by key; secrets stay references.
fn settings(access: &Access) -> Vec<(&'static str, String)> {
    let keyed = |protocol: String, password: String| {
        format!("{{ protocol = {}, password = {} }}", quoted(&protocol), quoted(&password))
    };
    match access {
        Access::Unstated => Vec::new(),
        Access::V1 { community } => {
            vec![("version", quoted("1")), ("community", quoted(&community.to_string()))]
        }
        Access::V2c { community } => {
            vec![("version", quoted("2c")), ("community", quoted(&community.to_string()))]
        }
        Access::V3 { user, auth, privacy } => {
            let mut settings = vec![("version", quoted("3")), ("user", quoted(user))];
            if let Some((protocol, password)) = auth {
                settings.push(("auth", keyed(protocol.to_string(), password.to_string())));
            }
            if let Some((protocol, password)) = privacy {
                settings.push(("privacy", keyed(protocol.to_string(), password.to_string())));
            }
            settings
        }
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(c)).expect("writing to a string cannot fail");
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use meikyo_cluster::{AuthProtocol, PrivProtocol, Secret};

    use super::*;

    fn device(name: &str, last: u8, port: u16, access: Access) -> Found {
        Found {
            name: name.to_owned(),
            address: ([10, 0, 0, last], port).into(),
            is_switch: last == 3,
            measure: vec!["interfaces".to_owned(), "disk:/ every 10s".to_owned()],
            access,
        }
    }

    #[test]
    fn what_is_written_is_read_back_as_it_was_found() {
        let password = || Secret::File("secrets/auth".into());
        let user = Access::V3 {
            user: "meikyo".to_owned(),
            auth: Some((AuthProtocol::Sha256, password())),
            privacy: Some((PrivProtocol::Aes128, password())),
        };
        let community = Access::V2c { community: Secret::Env("SWITCHES".to_owned()) };
        let found = [
            device("node1", 1, 1161, user.clone()),
            device("node2", 2, 161, user),
            device("sw", 3, 1161, community),
        ];
        let text = file("a \"name\"", 1161, &found);
        let cluster = meikyo_cluster::parse(&text, Path::new("cluster.toml")).unwrap();
        assert_eq!(cluster.name, "a \"name\"");
        for (read, found) in cluster.devices.iter().zip(&found) {
            assert_eq!((&read.name, read.address), (&found.name, found.address), "{text}");
            assert_eq!(read.snmp.access, found.access, "{text}");
            assert_eq!(read.measure.len(), 2);
        }
        assert_eq!(cluster.devices.len(), 3);
    }
}
