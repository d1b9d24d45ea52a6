//! The lines of a rank, when all is known.

use super::amounts::Operation;
use super::{Call, Comm, Message, Otf2Events, Rank};
use crate::prediction::ranks::rank as rank_of;

impl Otf2Events {
    pub(super) fn text(&self, own: usize, rank: &Rank) -> String {
        let mut lines = vec![format!("{own} init")];
        if own == 0 {
            lines.push(format!("0 comm_size {}", self.world.len()));
        }
        let mut used: Vec<u64> = rank.calls.iter().filter_map(Call::comm).collect();
        used.sort_unstable();
        used.dedup();
        for comm in used {
            let Comm { members, number } = &self.comms[&comm];
            if *number > 0 {
                let words: Vec<String> = members.iter().map(u32::to_string).collect();
                let (count, words) = (words.len(), words.join(" "));
                lines.push(format!("{own} comm_split {count} @{number} {words}"));
            }
        }
        lines.extend(rank.calls.iter().filter_map(|call| self.line_of(own, rank.open, call)));
        lines.push(format!("{own} finalize\n"));
        lines.join("\n")
    }

    /// The line of a call, if it is anything that takes time.
    fn line_of(&self, own: usize, open: u64, call: &Call) -> Option<String> {
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
            Call::Collective { comm, at, operation, root } => {
                let members = &self.comms[comm].members;
                let place = members.iter().position(|member| rank_of(*member) == own);
                let place = place.expect("it was one when it told of this");
                let all = &self.told[comm][*at];
                Operation::of(*operation)?.words(place, *root, all, self.defined.sums_all)
            }
            Call::UntoldWait if open > 0 => "waitall".to_owned(),
            Call::Open { .. } => {
                return Some("# something was begun here whose end is not told".to_owned());
            }
            Call::UntoldWait | Call::Nothing => return None,
        };
        let number = call.comm().map_or(0, |comm| self.comms[&comm].number);
        let through = if number > 0 { format!(" @{number}") } else { String::new() };
        Some(format!("{own} {words}{through}"))
    }
}
