//! What clients do: the sequence of their operations.

use std::num::NonZeroU16;

use meikyo_metadata::{Command, InodeNumber, Key, Name, ServerList};
use meikyo_sim::Context;
use meikyo_undo::{Cell, fields};

use crate::digest::Digest;
use crate::metadata_service::{Event, Metadata};

/// What each client does, beside making its directory and removing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Make files, and nothing else.
    Create,
    /// Make files, then stat each, then remove each, as mdtest does; a client does not wait for the
    /// others in between. In an own directory, it then removes that.
    Mdtest,
    /// Operations drawn by their weights.
    Mix(Mix),
}

/// How often an operation is drawn, against the sum of all.
///
/// Files that are looked at are drawn from those the client made; the oldest is removed. As long as
/// it has none, it makes one instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Weight of creating a file.
    pub create: u32,
    /// Weight of reading a file's metadata.
    pub stat: u32,
    /// Weight of looking a file's number up.
    pub lookup: u32,
    /// Weight of removing the oldest file.
    pub unlink: u32,
    /// Weight of listing the first 100 entries of the directory.
    pub list: u32,
}

/// Entries that are listed at once.
pub(crate) const PAGE: NonZeroU16 = NonZeroU16::new(100).expect("100 is not 0");

/// The directories in which clients work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directories {
    /// All in the root, which is spread over all servers.
    One,
    /// Each in a directory of its own.
    Own {
        /// Servers that each is spread over, at most all.
        width: NonZeroU16,
    },
}

/// A kind of operation, which has a series and a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Action {
    Create,
    Stat,
    Lookup,
    Unlink,
    List,
    MakeDirectory,
    RemoveDirectory,
}

impl Action {
    /// All kinds, in the order of their series.
    pub const ALL: [Self; 7] = [
        Self::Create,
        Self::Stat,
        Self::Lookup,
        Self::Unlink,
        Self::List,
        Self::MakeDirectory,
        Self::RemoveDirectory,
    ];

    /// Its place in [`Action::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Create => 0,
            Self::Stat => 1,
            Self::Lookup => 2,
            Self::Unlink => 3,
            Self::List => 4,
            Self::MakeDirectory => 5,
            Self::RemoveDirectory => 6,
        }
    }

    /// Whether its answer leaves only when the storage has what it changes.
    pub(crate) const fn is_change(self) -> bool {
        match self {
            Self::Create | Self::Unlink | Self::MakeDirectory | Self::RemoveDirectory => true,
            Self::Stat | Self::Lookup | Self::List => false,
        }
    }

    /// The series of its response times.
    pub const fn series_name(self) -> &'static str {
        [
            "create_response_us",
            "stat_response_us",
            "lookup_response_us",
            "unlink_response_us",
            "list_response_us",
            "mkdir_response_us",
            "rmdir_response_us",
        ][self.index()]
    }

    /// The figure that says how many there are a second.
    pub const fn rate_name(self) -> &'static str {
        [
            "creates_per_s",
            "stats_per_s",
            "lookups_per_s",
            "unlinks_per_s",
            "lists_per_s",
            "mkdirs_per_s",
            "rmdirs_per_s",
        ][self.index()]
    }
}

/// How far a client is in its work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Work {
    /// Operations begun, of those that [`Work::total`] counts.
    begun: Cell<u32>,
    /// Files made so far; their numbers are counted from 0.
    made: Cell<u32>,
    /// Files removed so far, the oldest first.
    removed: Cell<u32>,
    /// The directory it works in.
    directory: Cell<u64>,
}
fields!(Work { begun, made, removed, directory });

impl Work {
    pub(crate) fn new() -> Self {
        Self {
            begun: Cell::default(),
            made: Cell::default(),
            removed: Cell::default(),
            directory: Cell::new(InodeNumber::ROOT.get()),
        }
    }

    pub(crate) fn add_to(&self, digest: &mut Digest) {
        for count in [&self.begun, &self.made, &self.removed] {
            digest.word(u64::from(count.get()));
        }
        digest.word(self.directory.get());
    }

    /// How many operations the client begins altogether.
    pub(crate) fn total(metadata: &Metadata) -> u64 {
        let own = u64::from(metadata.directories != Directories::One);
        let operations = u64::from(metadata.operations);
        match metadata.workload {
            Workload::Create | Workload::Mix(_) => own + operations,
            Workload::Mdtest => own + 3 * operations + own,
        }
    }

    /// The phase of its work in which a client does `action`: `mdtest` does all of one kind before the
    /// next, everything else mixes the kinds.
    pub(crate) fn phase(metadata: &Metadata, action: Action) -> usize {
        match action {
            Action::MakeDirectory => 0,
            _ if metadata.workload != Workload::Mdtest => 1,
            Action::Create => 1,
            Action::Stat | Action::Lookup | Action::List => 2,
            Action::Unlink => 3,
            Action::RemoveDirectory => 4,
        }
    }

    /// Whether there is more to begin.
    pub(crate) fn is_left(&self, metadata: &Metadata) -> bool {
        u64::from(self.begun.get()) < Self::total(metadata)
    }

    /// Leaves the next operation out.
    pub(crate) fn skip(&mut self, context: &mut impl Context<Event>) {
        self.begun.add(context, 1);
    }

    /// Works in `directory` from now on.
    pub(crate) fn enter(&mut self, directory: InodeNumber, context: &mut impl Context<Event>) {
        self.directory.set(context, directory.get());
    }

    /// What `client` does next; nothing when it has done everything.
    pub(crate) fn next(
        &mut self,
        metadata: &Metadata,
        client: u32,
        context: &mut impl Context<Event>,
    ) -> Option<(Action, Command)> {
        if !self.is_left(metadata) {
            return None;
        }
        let begun = self.begun.get();
        self.begun.set(context, begun + 1);
        let Directories::Own { width } = metadata.directories else {
            return Some(self.on_files(metadata, begun, client, context));
        };
        let own = || Key::new(InodeNumber::ROOT, name(format_args!("dir.{client}")));
        if begun == 0 {
            let key = own();
            let servers = ServerList::spread(metadata.servers, width, &key);
            return Some((Action::MakeDirectory, Command::MakeDirectory { key, servers }));
        }
        let at = begun - 1;
        if metadata.workload == Workload::Mdtest && at == 3 * metadata.operations {
            return Some((Action::RemoveDirectory, Command::RemoveDirectory(own())));
        }
        Some(self.on_files(metadata, at, client, context))
    }

    /// The operation at `at` of those on files.
    fn on_files(
        &mut self,
        metadata: &Metadata,
        at: u32,
        client: u32,
        context: &mut impl Context<Event>,
    ) -> (Action, Command) {
        let (action, file) = match metadata.workload {
            Workload::Create => (Action::Create, at),
            Workload::Mdtest => {
                let each = metadata.operations;
                let phase = [Action::Create, Action::Stat, Action::Unlink];
                (phase[(at / each) as usize], at % each)
            }
            Workload::Mix(mix) => self.drawn(mix, context),
        };
        (action, self.command(action, client, file))
    }

    fn drawn(&mut self, mix: Mix, context: &mut impl Context<Event>) -> (Action, u32) {
        let Mix { create, stat, lookup, unlink, list } = mix;
        let weights = [
            (Action::Create, create),
            (Action::Stat, stat),
            (Action::Lookup, lookup),
            (Action::Unlink, unlink),
            (Action::List, list),
        ];
        let mut rest = context.below(weights.iter().map(|(_, weight)| weight).sum());
        let drawn = weights.into_iter().find(|(_, weight)| {
            let here = rest < *weight;
            rest = rest.saturating_sub(*weight);
            here
        });
        // Weights that are all 0 are refused before a run; without a file, every operation makes one.
        let action = drawn.map_or(Action::Create, |(action, _)| action);
        let (made, removed) = (self.made.get(), self.removed.get());
        match action {
            Action::List => (Action::List, 0),
            Action::Unlink if removed < made => {
                self.removed.set(context, removed + 1);
                (action, removed)
            }
            Action::Stat | Action::Lookup if removed < made => {
                (action, removed + context.below(made - removed))
            }
            Action::Create
            | Action::Unlink
            | Action::Stat
            | Action::Lookup
            | Action::MakeDirectory
            | Action::RemoveDirectory => {
                self.made.set(context, made + 1);
                (Action::Create, made)
            }
        }
    }

    fn command(&self, action: Action, client: u32, file: u32) -> Command {
        let directory = InodeNumber::from_u64(self.directory.get());
        let key = || Key::new(directory, name(format_args!("f.{client}.{file}")));
        match action {
            Action::Stat => Command::Stat(key()),
            Action::Lookup => Command::Lookup(key()),
            Action::Unlink => Command::Unlink(key()),
            Action::List => Command::ReadDirectory { directory, after: None, limit: PAGE },
            Action::Create | Action::MakeDirectory | Action::RemoveDirectory => {
                Command::Create(key())
            }
        }
    }
}

/// `f.4294967295.4294967295` has 23 bytes: only beyond a hundred million of both is there one more
/// than stands in a name without an allocation.
fn name(text: std::fmt::Arguments<'_>) -> Name {
    Name::format(text).expect("letters, digits and dots are a name")
}
