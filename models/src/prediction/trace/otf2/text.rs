//! The lines of a rank, when all is known.

use std::collections::BTreeMap;

use super::{Call, Comm, Imported, Message, Rank, place_of};

impl Imported {
    /// The lines of each rank.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.events.ranks.iter().enumerate().map(|(own, rank)| self.text(own, rank))
    }

    fn text(&self, own: usize, rank: &Rank) -> String {
        let mut lines = vec![format!("{own} init")];
        if own == 0 {
            lines.push(format!("0 comm_size {}", self.events.world.len()));
        }
        let mut used: Vec<u64> = rank.calls.iter().filter_map(Call::comm).collect();
        used.sort_unstable();
        used.dedup();
        for comm in used {
            let Comm { members, number } = &self.events.comms[&comm];
            if *number > 0 {
                let words: Vec<String> = members.iter().map(u32::to_string).collect();
                let (count, words) = (words.len(), words.join(" "));
                lines.push(format!("{own} comm_split {count} @{number} {words}"));
            }
        }
        // Who records the ends of requests records all of them.
        let untold_waits = rank.open > 0 && !self.events.defined.sums_all;
        let mut operations = BTreeMap::new();
        for call in &rank.calls {
            lines.extend(self.line_of(own, untold_waits, &mut operations, call));
        }
        lines.push(format!("{own} finalize\n"));
        lines.join("\n")
    }

    /// The line of a call, if it is anything that takes time. `operations` counts those of each communicator.
    fn line_of(
        &self,
        own: usize,
        untold_waits: bool,
        operations: &mut BTreeMap<u64, usize>,
        call: &Call,
    ) -> Option<String> {
        let words = match call {
            Call::Compute(span) => format!("compute {span}"),
            Call::Message { sends, blocks, message: Message { other, tag, octets, .. } } => {
                let verb = match (sends, blocks) {
                    (true, true) => "send",
                    (true, false) => "isend",
                    (false, true) => "recv",
                    (false, false) => "irecv",
                };
                format!("{verb} {other} {tag} {octets}")
            }
            Call::Wait { sends: true, message: Message { other, tag, .. } } => {
                format!("wait {own} {other} {tag}")
            }
            Call::Wait { sends: false, message: Message { other, tag, .. } } => {
                format!("wait {other} {own} {tag}")
            }
            Call::Collective { comm, operation, root, .. } => {
                let at = operations.entry(*comm).or_default();
                let all = &self.all[comm][*at];
                *at += 1;
                all.words(*operation, *root, place_of(own, &self.events.comms[comm].members))
            }
            Call::UntoldWait if untold_waits => "waitall".to_owned(),
            Call::Open { .. } => {
                return Some("# something was begun here whose end is not told".to_owned());
            }
            Call::UntoldWait | Call::Nothing => return None,
        };
        let number = call.comm().map_or(0, |comm| self.events.comms[&comm].number);
        let through = if number > 0 { format!(" @{number}") } else { String::new() };
        Some(format!("{own} {words}{through}"))
    }
}
