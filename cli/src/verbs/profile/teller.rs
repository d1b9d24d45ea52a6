//! What a running agent tells when the server asks: functions of files that only its host has.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use meikyo_console::failure::Failure;
use meikyo_profile::recorder::MappedAt;
use meikyo_profile::symbols::{functions_of_file, functions_of_kernel, told};
use meikyo_recording::PackedRows;
use meikyo_units::WallTime;

/// Questions that wait at most; the server asks another host, or later.
const WAITING_MAX: usize = 4_096;

/// Blocks that wait for the agent.
const READY_MAX: usize = 16;

/// What stands before the build ID in a question.
const QUESTION: &str = "functions ";

/// The build ID in a question; `None` for what this agent does not understand.
pub(super) fn build_id_in(words: &str) -> Option<&str> {
    let build_id = words.strip_prefix(QUESTION)?;
    let is_one = !build_id.is_empty() && build_id.bytes().all(|octet| octet.is_ascii_hexdigit());
    is_one.then_some(build_id)
}

/// Who reads files for the server, one by one, beside the agent and at low priority.
#[derive(Debug)]
pub(super) struct Teller {
    asked: SyncSender<(String, MappedAt)>,
    ready: Receiver<PackedRows>,
}

impl Teller {
    /// Begins; it ends with the program.
    pub(super) fn start(host: &str) -> Result<Self, Failure> {
        let (asked, questions) = sync_channel::<(String, MappedAt)>(WAITING_MAX);
        let (answer, ready) = sync_channel(READY_MAX);
        let host = host.to_owned();
        std::thread::Builder::new().name("teller".into()).spawn(move || {
            meikyo_recording::lower_priority();
            while let Ok((build_id, MappedAt { path, pid })) = questions.recv() {
                let functions = match pid {
                    Some(pid) => functions_of_file(&build_id, &path, pid),
                    None => functions_of_kernel(&build_id),
                };
                // One that is gone is told by another host, perhaps.
                let Some(functions) = functions else { continue };
                let now = WallTime::now().as_nanos();
                let blocks = told((&host, now), &build_id, &functions).unwrap_or_default();
                for block in blocks {
                    if answer.send(block).is_err() {
                        return;
                    }
                }
            }
        })?;
        Ok(Self { asked, ready })
    }

    /// Has the functions of a file read.
    pub(super) fn tell(&self, build_id: &str, at: MappedAt) {
        // Without room the server asks again.
        drop(self.asked.try_send((build_id.to_owned(), at)));
    }

    /// What has been read, block by block.
    pub(super) fn next(&self) -> Option<PackedRows> {
        self.ready.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_build_ids_are_asked_for() {
        assert_eq!(build_id_in("functions 00abCD"), Some("00abCD"));
        for words in
            ["functions", "functions ", "functions ../etc", "lines 00ab", "functions 00 ab"]
        {
            assert_eq!(build_id_in(words), None, "{words}");
        }
    }
}
