//! A worksheet for each switch: what a person clicks together on a switch without a command line.
//!
//! The pages of such switches ask for the ports of one VLAN at a time, each an untagged member (U), a
//! tagged one (T) or none (-), and on another page for the PVID of each port. So a worksheet has a line for
//! each VLAN and a column for each port, and a line of PVIDs. As CSV it can be read by other programs.
//!
//! Whether the switch does what is clicked is not known here: `meikyo fabric verify` asks it over SNMP
//! where it answers.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use thiserror::Error;

use crate::{
    Bundling, CableEnd, Configuration, PortNumber, PortSettings, SwitchId, SwitchSettings, Vlan,
    Wiring, cables,
};

/// Why writing to a text does not fail.
const TAKES_ALL: &str = "a string takes everything";

/// How a worksheet is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorksheetFormat {
    /// For a terminal or a printer.
    Text,
    /// A page that is printed by any browser.
    Html,
    /// One line for each VLAN, one column for each port (RFC 4180).
    Csv,
}

/// A text names no format of worksheets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no format of worksheets; allowed are `text`, `html` and `csv`")]
pub struct ParseWorksheetFormatError {
    text: String,
}

impl FromStr for WorksheetFormat {
    type Err = ParseWorksheetFormatError;

    fn from_str(text: &str) -> Result<Self, ParseWorksheetFormatError> {
        match text {
            "text" => Ok(Self::Text),
            "html" => Ok(Self::Html),
            "csv" => Ok(Self::Csv),
            _ => Err(ParseWorksheetFormatError { text: text.to_owned() }),
        }
    }
}

impl WorksheetFormat {
    /// How files of the format end.
    pub const fn file_ending(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Html => "html",
            Self::Csv => "csv",
        }
    }
}

/// The worksheet of a switch.
#[derive(Debug)]
pub struct Worksheet<'a> {
    name: &'a str,
    model: &'a str,
    settings: &'a SwitchSettings,
    /// Each port that is used, what is set on it, and what is plugged in.
    columns: Vec<Column<'a>>,
    /// Ports that are to be shut.
    unused: Vec<PortNumber>,
}

#[derive(Debug)]
struct Column<'a> {
    port: PortNumber,
    settings: &'a PortSettings,
    peer: String,
}

/// The worksheet of a switch.
pub fn worksheet<'a>(
    wiring: &'a Wiring,
    configuration: &'a Configuration,
    switch: SwitchId,
) -> Worksheet<'a> {
    let own = &wiring.switches[switch.place()];
    let settings = &configuration.switches[switch.place()];
    let plugged = cables(wiring, switch);
    let peer = |port: PortNumber| {
        let cable = plugged.iter().find(|cable| cable.port == port);
        cable.map_or_else(String::new, |cable| match cable.to {
            CableEnd::Host(host) => wiring.hosts[host.place()].name.clone(),
            CableEnd::Switch { switch, port, .. } => {
                format!("{} port {port}", wiring.switches[switch.place()].name)
            }
        })
    };
    let mut columns: Vec<Column<'a>> = settings
        .ports
        .iter()
        .flat_map(|settings| settings.ports.iter().map(move |port| (*port, settings)))
        .map(|(port, settings)| Column { port, settings, peer: peer(port) })
        .collect();
    columns.sort_by_key(|column| column.port);
    let is_used = |port: &PortNumber| columns.iter().any(|column| column.port == *port);
    let unused = (1..=own.model.ports).map(PortNumber).filter(|port| !is_used(port)).collect();
    Worksheet { name: &own.name, model: &own.model.name, settings, columns, unused }
}

impl Worksheet<'_> {
    /// The worksheet in a format.
    pub fn render(&self, format: WorksheetFormat) -> String {
        match format {
            WorksheetFormat::Text => self.text(),
            WorksheetFormat::Html => self.html(),
            WorksheetFormat::Csv => self.csv(),
        }
    }

    fn vlans(&self) -> impl Iterator<Item = Vlan> + '_ {
        // VLAN 1 cannot be taken away on such switches, so it is there to be clicked empty.
        let others = self.settings.vlans.iter().filter(|vlan| *vlan != Vlan::DEFAULT);
        std::iter::once(Vlan::DEFAULT).chain(others)
    }

    fn member(column: &Column<'_>, vlan: Vlan) -> &'static str {
        if column.settings.untagged.contains(vlan) {
            "U"
        } else if column.settings.tagged.contains(vlan) {
            "T"
        } else {
            "-"
        }
    }

    /// The PVID of a port; where frames without a tag are dropped, that is said instead.
    fn pvid(column: &Column<'_>) -> String {
        column.settings.pvid.map_or_else(|| "none".to_owned(), |vlan| vlan.to_string())
    }

    fn bundle(&self, column: &Column<'_>) -> String {
        let bundles = self.settings.ports.iter().filter(|own| own.bundle.is_some());
        let number = (1..).zip(bundles).find(|(_, own)| std::ptr::eq(*own, column.settings));
        number.map_or_else(|| "-".to_owned(), |(number, _): (usize, _)| number.to_string())
    }

    /// What is set elsewhere than in the tables.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let list = |ports: &[PortNumber]| {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            ports.join(", ")
        };
        let bundles = self.settings.ports.iter().filter(|own| own.bundle.is_some());
        for (number, own) in (1..).zip(bundles) {
            let number: usize = number;
            let how = match own.bundle {
                Some(Bundling::Lacp) => "LACP",
                Some(Bundling::Static) | None => "static",
            };
            notes.push(format!("bundle {number} ({how}): ports {}", list(&own.ports)));
        }
        let drops = self.columns.iter().filter(|column| column.settings.pvid.is_none());
        let drops: Vec<PortNumber> = drops.map(|column| column.port).collect();
        if !drops.is_empty() {
            notes.push(format!(
                "PVID none: the port takes frames with a tag only; where the switch has no such setting, \
                 a VLAN that no port is in: ports {}",
                list(&drops)
            ));
        }
        let pauses: Vec<PortNumber> = self
            .columns
            .iter()
            .filter(|column| column.settings.flow_control)
            .map(|column| column.port)
            .collect();
        notes.push(match (pauses.len(), self.columns.len()) {
            (0, _) => "flow control: off".to_owned(),
            (some, all) if some == all => "flow control: on".to_owned(),
            _ => format!("flow control: on at ports {}, off at the others", list(&pauses)),
        });
        notes.push(match self.settings.ageing {
            None => "ageing of addresses: never".to_owned(),
            Some(span) => format!("ageing of addresses: {} s", span.get() / 1_000_000_000),
        });
        let protocol = if self.settings.spanning_tree { "on" } else { "off" };
        notes.push(format!("spanning tree: {protocol}, as the last thing"));
        if !self.unused.is_empty() {
            notes.push(format!("ports that are shut: {}", list(&self.unused)));
        }
        notes.push(
            "the cables to other switches are plugged in when all of them are set: before that, \
             they would make loops"
                .to_owned(),
        );
        notes
    }

    fn text(&self) -> String {
        let mut text = format!("{} ({})\n\n", self.name, self.model);
        let width =
            |column: &Column<'_>| Self::pvid(column).len().max(column.port.to_string().len());
        let mut line = |head: &str, cell: &dyn Fn(&Column<'_>) -> String| {
            let mut line = format!("{head:<9}");
            for column in &self.columns {
                write!(line, " {:>width$}", cell(column), width = width(column)).expect(TAKES_ALL);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        };
        line("port", &|column| column.port.to_string());
        line("bundle", &|column| self.bundle(column));
        for vlan in self.vlans() {
            line(&format!("VLAN {vlan}"), &|column| Self::member(column, vlan).to_owned());
        }
        line("PVID", &Self::pvid);
        text.push('\n');
        for column in self.columns.iter().filter(|column| !column.peer.is_empty()) {
            writeln!(text, "port {:>4}  {}", column.port.to_string(), column.peer)
                .expect(TAKES_ALL);
        }
        text.push('\n');
        for note in self.notes() {
            writeln!(text, "{note}").expect(TAKES_ALL);
        }
        text
    }

    fn csv(&self) -> String {
        let mut text = String::new();
        let mut line = |head: String, cell: &dyn Fn(&Column<'_>) -> String| {
            let cells = self.columns.iter().map(|column| quoted(&cell(column)));
            let cells: Vec<String> = std::iter::once(quoted(&head)).chain(cells).collect();
            text.push_str(&cells.join(","));
            text.push_str("\r\n");
        };
        line(self.name.to_owned(), &|column| column.port.to_string());
        line("plugged in".to_owned(), &|column| column.peer.clone());
        line("bundle".to_owned(), &|column| self.bundle(column));
        for vlan in self.vlans() {
            line(vlan.to_string(), &|column| Self::member(column, vlan).to_owned());
        }
        line("PVID".to_owned(), &Self::pvid);
        text
    }

    fn html(&self) -> String {
        let name = Escaped(self.name);
        let mut text = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{name}</title>\n\
             <style>\nbody {{ font: 10pt sans-serif }}\ntable {{ border-collapse: collapse }}\n\
             th, td {{ border: 1px solid #999; padding: 1px 4px; text-align: center }}\n\
             .U {{ background: #cde }}\n.T {{ background: #edc }}\n\
             .peer {{ writing-mode: vertical-rl; font-weight: normal }}\n</style></head>\n\
             <body><h1>{name}</h1><p>{}</p>\n<table>\n",
            Escaped(self.model)
        );
        let mut line = |head: &str, class: &str, cell: &dyn Fn(&Column<'_>) -> String| {
            write!(text, "<tr><th scope=\"row\">{}</th>", Escaped(head)).expect(TAKES_ALL);
            for column in &self.columns {
                let cell = cell(column);
                let class = if class.is_empty() { cell.as_str() } else { class };
                write!(text, "<td class=\"{}\">{}</td>", Escaped(class), Escaped(&cell))
                    .expect(TAKES_ALL);
            }
            text.push_str("</tr>\n");
        };
        line("port", "port", &|column| column.port.to_string());
        line("plugged in", "peer", &|column| column.peer.clone());
        line("bundle", "bundle", &|column| self.bundle(column));
        for vlan in self.vlans() {
            line(&format!("VLAN {vlan}"), "", &|column| Self::member(column, vlan).to_owned());
        }
        line("PVID", "pvid", &Self::pvid);
        text.push_str("</table>\n<ul>\n");
        for note in self.notes() {
            writeln!(text, "<li>{}</li>", Escaped(&note)).expect(TAKES_ALL);
        }
        text.push_str("</ul></body></html>\n");
        text
    }
}

/// A cell of CSV: in quotes where it has to be (RFC 4180, section 2).
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// A text between tags.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parts, PlanOptions, SwitchModel, Topology, VlanSet, cable, plan};

    fn planned() -> (Wiring, Configuration) {
        let topology: Topology = "ring 3".parse().unwrap();
        let graph = topology.graph();
        let mut parts = Parts::uniform(&graph, &SwitchModel::named("generic").unwrap(), 2);
        parts.cables_per_link = 2;
        let wiring = cable(&graph, parts).unwrap();
        let plan = plan(&wiring, &PlanOptions::new(Some(topology))).unwrap();
        let configuration = plan.configuration(&wiring);
        (wiring, configuration)
    }

    #[test]
    fn a_person_sees_vlans_by_port() {
        let (wiring, configuration) = planned();
        let sheet = worksheet(&wiring, &configuration, SwitchId::new(1));
        let text = sheet.render(WorksheetFormat::Text);
        let tables: Vec<&str> = text.lines().take(16).collect();
        insta::assert_snapshot!(tables.join("\n"), @r"
        s1 (generic)

        port        1   2   61   62   63   64
        bundle      -   -    1    1    2    2
        VLAN 1      -   -    -    -    -    -
        VLAN 101    U   U    T    T    -    -
        VLAN 102    U   U    T    T    T    T
        VLAN 103    U   U    -    -    T    T
        PVID      102 102 none none none none

        port    1  h2
        port    2  h3
        port   61  s0 port 61
        port   62  s0 port 62
        port   63  s2 port 63
        port   64  s2 port 64
        ");
        assert!(text.contains("bundle 2 (LACP): ports 63, 64\n"), "{text}");
    }

    /// What a program reads in the CSV is what was planned.
    #[test]
    fn the_cells_are_the_settings() {
        let (wiring, configuration) = planned();
        for place in 0..wiring.switches.len() {
            let switch = SwitchId::new(place);
            let text = worksheet(&wiring, &configuration, switch).render(WorksheetFormat::Csv);
            let lines: Vec<Vec<&str>> =
                text.split("\r\n").map(|line| line.split(',').collect()).collect();
            for settings in &configuration.switches[place].ports {
                for port in &settings.ports {
                    let column =
                        lines[0].iter().position(|cell| *cell == port.to_string()).unwrap();
                    let members = |kind: &str| -> VlanSet {
                        let is = |line: &&Vec<&str>| line.get(column) == Some(&kind);
                        lines[3..].iter().filter(is).map(|line| line[0].parse().unwrap()).collect()
                    };
                    assert_eq!(members("U"), settings.untagged);
                    assert_eq!(members("T"), settings.tagged);
                    let pvids = lines.iter().find(|line| line[0] == "PVID").unwrap();
                    let pvid =
                        settings.pvid.map_or_else(|| "none".to_owned(), |vlan| vlan.to_string());
                    assert_eq!(pvids[column], pvid);
                }
            }
        }
    }

    #[test]
    fn a_page_shows_names_as_they_are() {
        let (mut wiring, configuration) = planned();
        wiring.switches[0].name = "<a & b>".into();
        let page = worksheet(&wiring, &configuration, SwitchId::new(0));
        let page = page.render(WorksheetFormat::Html);
        assert!(page.contains("<h1>&lt;a &amp; b&gt;</h1>"), "{page}");
        assert_eq!(page.matches("<td").count(), page.matches("</td>").count());
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
