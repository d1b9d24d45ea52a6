//! A drawing of a fabric as SVG: switches where the topology puts them, trunks coloured by VLAN.
//!
//! A VLAN is selected by its number in the list at the right: a link to its own place in the file,
//! which styles show (`:target`). No script runs, so the drawing can be mailed, printed and put into a
//! page as it is. Where switches stand depends on the wiring alone.

mod places;

use std::collections::BTreeMap;

use crate::{Configuration, HostSettings, Layout, Switch, Trunk, Vlan, Wiring};

/// Pixels between neighbours.
const STEP: f64 = 120.0;
/// Pixels around everything, and the width of the list of VLANs.
const MARGIN: f64 = 70.0;
const LIST_WIDTH: f64 = 150.0;
const LINE_HEIGHT: f64 = 18.0;
/// Pixels between the lines of two VLANs on one trunk.
const APART: f64 = 3.0;

const STYLE: &str = "\
text{font:12px sans-serif;fill:#222}\
.switch{fill:#fff;stroke:#444;stroke-width:1.5}\
.hosts{fill:#777;font-size:10px}\
.trunk{stroke:#ccc;stroke-width:8;stroke-linecap:round}\
.lines path{fill:none;stroke-width:2}\
.vlan{display:none}\
.vlan:target{display:inline}\
.vlan path{fill:none;stroke-width:5;stroke-linecap:round}\
.vlan circle{stroke-width:3;fill:none}\
svg:has(.vlan:target) .lines{opacity:.12}\
a text{text-decoration:underline;cursor:pointer}";

/// The drawing; `layout` says how the switches are arranged, if the topology is known.
///
/// Its size is linear in trunks times VLANs.
///
/// # Panics
/// Never: there are 4094 VLANs at most.
pub fn draw(wiring: &Wiring, configuration: &Configuration, layout: Option<&Layout>) -> String {
    let at = scaled(&places::places(wiring, layout));
    let vlans = vlans(wiring, configuration);
    let edge = |axis: fn(&(f64, f64)) -> f64| at.iter().map(axis).fold(0.0, f64::max) + MARGIN;
    let (right, bottom) = (edge(|place| place.0), edge(|place| place.1));
    let lines = u32::try_from(vlans.len() + 2).expect("there are 4094 VLANs");
    let (width, height) = (right + LIST_WIDTH, bottom.max(f64::from(lines) * LINE_HEIGHT));
    let parts = [
        trunks(wiring, &at),
        overview(wiring, &at, &vlans),
        selectable(wiring, &at, &vlans),
        switches(wiring, &at),
        list(&vlans, right),
    ];
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <style>{STYLE}</style>\n{}</svg>\n",
        parts.concat()
    )
}

/// Where switches stand: to the right and downward, neighbours about 1 apart.
pub fn positions(wiring: &Wiring, layout: Option<&Layout>) -> Vec<(f64, f64)> {
    places::places(wiring, layout)
}

fn trunks(wiring: &Wiring, at: &[(f64, f64)]) -> String {
    let line = |trunk: &Trunk| {
        let [one, other] = trunk.ends.each_ref().map(|end| end.switch.place());
        let ((x1, y1), (x2, y2)) = (at[one], at[other]);
        let name = |switch: usize| escaped(&wiring.switches[switch].name);
        let (one, other, cables) = (name(one), name(other), trunk.cables());
        format!(
            "<line class=\"trunk\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\">\
             <title>{one} to {other}, cables: {cables}</title></line>\n"
        )
    };
    wiring.trunks.iter().map(line).collect()
}

/// All VLANs at once, side by side on their trunks.
fn overview(wiring: &Wiring, at: &[(f64, f64)], vlans: &BTreeMap<Vlan, Drawn>) -> String {
    let path = |own: &Drawn| {
        let (colour, path) = (colour(own.place), path(wiring, at, &own.trunks));
        format!("<path stroke=\"{colour}\" d=\"{path}\"/>\n")
    };
    format!("<g class=\"lines\">\n{}</g>\n", vlans.values().map(path).collect::<String>())
}

/// Each VLAN by itself, with the switches that send in it; shown when it is selected.
fn selectable(wiring: &Wiring, at: &[(f64, f64)], vlans: &BTreeMap<Vlan, Drawn>) -> String {
    let group = |(vlan, own): (&Vlan, &Drawn)| {
        let centred: Vec<(usize, f64)> =
            own.trunks.iter().map(|(trunk, _)| (*trunk, 0.0)).collect();
        let (path, colour) = (path(wiring, at, &centred), colour(own.place));
        let circle = |source: &usize| {
            let (x, y) = at[*source];
            format!("<circle stroke=\"{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"24\"/>")
        };
        let sources: String = own.sources.iter().map(circle).collect();
        format!(
            "<g class=\"vlan\" id=\"vlan-{vlan}\"><path stroke=\"{colour}\" d=\"{path}\"/>\
             {sources}</g>\n"
        )
    };
    vlans.iter().map(group).collect()
}

fn switches(wiring: &Wiring, at: &[(f64, f64)]) -> String {
    let mut hosts: Vec<Vec<String>> = vec![Vec::new(); at.len()];
    for host in &wiring.hosts {
        hosts[host.switch.place()].push(host.name.clone());
    }
    let switch = |((own, hosts), (x, y)): ((&Switch, &Vec<String>), &(f64, f64))| {
        let (middle, below) = (y + 4.0, y + 32.0);
        let (title, name) = (escaped(&meikyo_cluster::fold(hosts)), escaped(&own.name));
        let count = match hosts.len() {
            0 => String::new(),
            count => format!(
                "<text class=\"hosts\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{below:.1}\">\
                 {count} hosts</text>"
            ),
        };
        format!(
            "<g><title>{title}</title><circle class=\"switch\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"18\"/>\
             <text text-anchor=\"middle\" x=\"{x:.1}\" y=\"{middle:.1}\">{name}</text>{count}</g>\n"
        )
    };
    wiring.switches.iter().zip(&hosts).zip(at).map(switch).collect()
}

/// The list in which VLANs are selected.
fn list(vlans: &BTreeMap<Vlan, Drawn>, left: f64) -> String {
    let all = format!(
        "<a href=\"#all\"><text x=\"{left:.0}\" y=\"{LINE_HEIGHT}\">all VLANs</text></a>\n"
    );
    let line = |(vlan, own): (&Vlan, &Drawn)| {
        let number = u32::try_from(own.place + 2).expect("there are 4094 VLANs");
        let (y, colour) = (f64::from(number) * LINE_HEIGHT, colour(own.place));
        format!(
            "<a href=\"#vlan-{vlan}\"><text x=\"{left:.0}\" y=\"{y:.0}\" style=\"fill:{colour}\">\
             VLAN {vlan}</text></a>\n"
        )
    };
    all + &vlans.iter().map(line).collect::<String>()
}

/// A VLAN as it is drawn.
#[derive(Debug, Default)]
struct Drawn {
    /// Its number in the list.
    place: usize,
    /// Its trunks, and how far beside the middle of each its line goes.
    trunks: Vec<(usize, f64)>,
    /// The switches whose hosts send in it.
    sources: Vec<usize>,
}

fn vlans(wiring: &Wiring, configuration: &Configuration) -> BTreeMap<Vlan, Drawn> {
    let mut vlans: BTreeMap<Vlan, Drawn> = BTreeMap::new();
    for (place, trunk) in wiring.trunks.iter().enumerate() {
        let mut both = trunk.ends.iter().map(|end| {
            let ports = &configuration.switches[end.switch.place()].ports;
            ports.iter().find(|port| port.ports.contains(&end.ports[0])).map(|port| port.members())
        });
        let (Some(Some(one)), Some(Some(other))) = (both.next(), both.next()) else { continue };
        let members: Vec<Vlan> = one.intersection(&other).iter().collect();
        let count = u32::try_from(members.len()).expect("there are 4094 VLANs");
        let middle = f64::from(count.saturating_sub(1)) / 2.0;
        for (number, vlan) in (0_u32..).zip(members) {
            let beside = (f64::from(number) - middle) * APART;
            vlans.entry(vlan).or_default().trunks.push((place, beside));
        }
    }
    for (place, host) in wiring.hosts.iter().enumerate() {
        let ports = &configuration.switches[host.switch.place()].ports;
        let port = ports.iter().find(|port| port.ports.contains(&host.ports[0]));
        let tagged: Vec<Vlan> = match &configuration.hosts[place] {
            HostSettings::Untagged => Vec::new(),
            HostSettings::Tagged(tags) => tags.values().copied().collect(),
        };
        for vlan in port.and_then(|port| port.pvid).into_iter().chain(tagged) {
            let sources = &mut vlans.entry(vlan).or_default().sources;
            if !sources.contains(&host.switch.place()) {
                sources.push(host.switch.place());
            }
        }
    }
    vlans.values_mut().enumerate().for_each(|(place, own)| own.place = place);
    vlans
}

/// Lines along trunks, each beside the middle by some pixels.
fn path(wiring: &Wiring, at: &[(f64, f64)], trunks: &[(usize, f64)]) -> String {
    let mut path = String::new();
    for (trunk, beside) in trunks {
        let [one, other] = &wiring.trunks[*trunk].ends;
        let ((x1, y1), (x2, y2)) = (at[one.switch.place()], at[other.switch.place()]);
        let length = (x2 - x1).hypot(y2 - y1).max(1.0);
        let (dx, dy) = ((y1 - y2) / length * beside, (x2 - x1) / length * beside);
        let [x1, x2, y1, y2] = [x1 + dx, x2 + dx, y1 + dy, y2 + dy];
        path += &format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
    }
    path
}

/// Hues far from those of neighbours in the list.
fn colour(place: usize) -> String {
    let (hue, light) = (place * 137 % 360, 38 + place % 3 * 8);
    format!("hsl({hue} 75% {light}%)")
}

/// Places in pixels, from the margin on.
fn scaled(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let least =
        |axis: fn(&(f64, f64)) -> f64| places.iter().map(axis).fold(f64::INFINITY, f64::min);
    let (left, top) = (least(|place| place.0), least(|place| place.1));
    let scale = |value: f64, least: f64| (value - least) * STEP + MARGIN;
    places.iter().map(|(x, y)| (scale(*x, left), scale(*y, top))).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanOptions, SwitchModel, Topology, cable_uniform, plan};

    fn drawn(topology: &str) -> (Wiring, Configuration, String) {
        let topology: Topology = topology.parse().unwrap();
        let model = SwitchModel::named("powerconnect-6248").unwrap();
        let wiring = cable_uniform(&topology, &model, 2).unwrap();
        let layout = topology.layout();
        let options = PlanOptions::new(Some(topology));
        let configuration = plan(&wiring, &options).unwrap().configuration(&wiring);
        let svg = draw(&wiring, &configuration, Some(&layout));
        (wiring, configuration, svg)
    }

    #[test]
    fn every_vlan_has_a_link_and_a_place_and_draws_its_trunks() {
        for topology in
            ["ring 4", "torus 4x2", "leaf-spine 4+2", "tree 8", "complete 6", "mesh 2x2x2"]
        {
            let (wiring, configuration, svg) = drawn(topology);
            for vlan in configuration.switches[0].vlans.iter() {
                assert!(svg.contains(&format!("href=\"#vlan-{vlan}\"")), "{topology} {vlan}");
                let start = svg.find(&format!("id=\"vlan-{vlan}\"")).unwrap();
                let end = svg[start..].find("</g>").unwrap();
                let drawn = svg[start..start + end].matches('M').count();
                let carried = wiring.trunks.iter().filter(|trunk| {
                    let end = &trunk.ends[0];
                    let ports = configuration.switches[end.switch.place()].ports.iter();
                    ports.filter(|port| port.ports == end.ports).any(|port| port.is_member(vlan))
                });
                assert_eq!(drawn, carried.count(), "{topology} {vlan}");
            }
            assert_eq!(svg.matches("class=\"trunk\"").count(), wiring.trunks.len());
            assert_eq!(svg.matches("class=\"switch\"").count(), wiring.switches.len());
            assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
        }
    }

    #[test]
    fn no_two_switches_stand_at_one_place() {
        for topology in [
            "ring 9",
            "mesh 4x3",
            "torus 3x3x3",
            "hypercube 5",
            "complete 7",
            "leaf-spine 6+3",
            "fat-tree 4",
            "tree 8",
            "tree 3,4",
            "star 6",
            "dragonfly 5x2 global 2",
            "random-regular 16 degree 4 seed 1",
            "hyperx 4x4",
        ] {
            let topology: Topology = topology.parse().unwrap();
            let mut model = SwitchModel::named("powerconnect-6248").unwrap();
            model.ports = 64;
            let wiring = cable_uniform(&topology, &model, 1).unwrap();
            for layout in [Some(topology.layout()), None] {
                let places = places::places(&wiring, layout.as_ref());
                for (place, one) in places.iter().enumerate() {
                    for other in &places[..place] {
                        let apart = (one.0 - other.0).hypot(one.1 - other.1);
                        assert!(apart > 0.3, "{topology}: {one:?} {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn names_are_text_and_nothing_else() {
        assert_eq!(escaped("<a&\"b\">"), "&lt;a&amp;&quot;b&quot;&gt;");
    }
}
