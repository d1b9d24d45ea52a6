//! A page of a directory, merged from all its servers.
//!
//! Every server is asked for its share of the page. Names up to the least of the last names of those
//! servers that have more are complete: beyond, a server that was not asked so far might have one in
//! between. So a page of `limit` names costs each server about its share instead of a whole page, and
//! nothing is kept from one page to the next.

use std::num::NonZeroU16;

use crate::message::{DirectoryEntry, Errno, Page, Reply, Request, Response};
use crate::name::Name;
use crate::number::InodeNumber;
use crate::operation::{Operation, State, Step, refusal};
use crate::placement::ServerList;

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Reading {
    directory: InodeNumber,
    after: Option<Name>,
    limit: usize,
    share: NonZeroU16,
    servers: ServerList,
    /// The server that is asked, by its place in the list.
    at: usize,
    entries: Vec<DirectoryEntry>,
    /// Up to which name the servers that have more were read.
    complete_to: Option<Name>,
}

impl Reading {
    pub(super) fn begin(
        directory: InodeNumber,
        after: Option<Name>,
        limit: NonZeroU16,
        servers: &ServerList,
    ) -> Step {
        let parts =
            u16::try_from(servers.as_slice().len()).expect("servers are numbered with 16 bits");
        let share = NonZeroU16::new(limit.get().div_ceil(parts)).unwrap_or(NonZeroU16::MIN);
        let reading = Self {
            directory,
            after,
            limit: usize::from(limit.get()),
            share,
            servers: servers.clone(),
            at: 0,
            entries: Vec::new(),
            complete_to: None,
        };
        Box::new(reading).ask(0)
    }

    pub(super) fn next(mut self: Box<Self>, response: &Response) -> Step {
        match response {
            Ok(Reply::Page(page)) if page.more && page.entries.is_empty() => {
                return Step::Done(Err(Errno::Protocol));
            }
            Ok(Reply::Page(page)) => self.accept(page),
            // An `rmdir` found this part empty and removed it; the home's goes last.
            Err(Errno::NotFound) if self.at > 0 => {}
            other => return Step::Done(Err(refusal(other))),
        }
        match self.at + 1 {
            end if end == self.servers.as_slice().len() => {
                Step::Done(Ok(Reply::Page(self.merged())))
            }
            at => self.ask(at),
        }
    }

    fn ask(mut self: Box<Self>, at: usize) -> Step {
        self.at = at;
        let request = Request::ReadPage {
            directory: self.directory,
            after: self.after.clone(),
            limit: self.share,
        };
        let server = self.servers.as_slice()[at];
        Step::Send { server, request, then: Operation(State::Reading(self)) }
    }

    fn accept(&mut self, page: &Page) {
        self.entries.extend_from_slice(&page.entries);
        let read_to = page.entries.last().filter(|_| page.more).map(|entry| &entry.name);
        self.complete_to = self.complete_to.iter().chain(read_to).min().cloned();
    }

    fn merged(mut self) -> Page {
        // Each server's entries are sorted already; the stable sort merges such runs.
        self.entries.sort_by(|one, other| one.name.cmp(&other.name));
        let complete = self.complete_to.as_ref().map_or(self.entries.len(), |last| {
            self.entries.partition_point(|entry| entry.name <= *last)
        });
        let shown = complete.min(self.limit);
        let more = self.complete_to.is_some() || shown < self.entries.len();
        self.entries.truncate(shown);
        Page { entries: self.entries.into(), more }
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;

    use super::*;
    use crate::cache::Cache;
    use crate::inode::Kind;
    use crate::operation::Command;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn page(names: &str, more: bool) -> Response {
        let number = InodeNumber::from_u64(9);
        let entry = |text| DirectoryEntry { name: name(text), number, kind: Kind::File };
        Ok(Reply::Page(Page { entries: names.split_whitespace().map(entry).collect(), more }))
    }

    /// What a directory on three servers gives when they answer so.
    fn merged(limit: u16, answers: [(&str, bool); 3]) -> (String, bool) {
        let mut cache = Cache::new(NonZeroU16::MIN);
        let servers = ServerList::all(NonZeroU16::new(3).unwrap());
        cache.insert(InodeNumber::ROOT, servers, &mut Forget);
        let limit = NonZeroU16::new(limit).unwrap();
        let command = Command::ReadDirectory { directory: InodeNumber::ROOT, after: None, limit };
        let mut step = Operation::begin(command, &cache);
        for (names, more) in answers {
            let Step::Send { then, .. } = step else { panic!("every server is asked") };
            step = then.next(&page(names, more), &mut cache, &mut Forget);
        }
        let Step::Done(Ok(Reply::Page(page))) = step else { panic!("not a page: {step:?}") };
        let names: Vec<_> = page.entries.iter().map(|entry| entry.name.to_string()).collect();
        (names.join(" "), page.more)
    }

    #[test]
    fn a_page_ends_where_a_server_was_not_read_further() {
        assert_eq!(
            merged(6, [("a f", false), ("b c", true), ("d e", true)]),
            ("a b c".into(), true)
        );
        assert_eq!(
            merged(6, [("a f", false), ("b", false), ("d e", false)]),
            ("a b d e f".into(), false)
        );
        assert_eq!(merged(2, [("a", false), ("b", false), ("c", false)]), ("a b".into(), true));
        assert_eq!(merged(3, [("c", true), ("", false), ("", false)]), ("c".into(), true));
        assert_eq!(merged(3, [("", false), ("", false), ("", false)]), (String::new(), false));
    }
}
