//! Random operations against a plain file tree.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use meikyo_metadata::{Command, Errno, Inode, InodeNumber, Kind, Reply, ServerList};
use meikyo_undo::{Log, Mark, UndoLog};
use meikyo_units::{Nanos, WallTime};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::tree::Tree;
use crate::world::{World, key};

/// Few enough that they meet; one begins like another, some need an allocation.
const NAMES: [&str; 7] = [
    "a",
    "b",
    "ab",
    "a b",
    "\u{e9}",
    "a name of more than 22 bytes",
    "a name of more than 22 bytes, too",
];

#[derive(Clone, Copy, Debug)]
enum Verb {
    Create,
    Lookup,
    Stat,
    Unlink,
    List { limit: NonZeroU16 },
    MakeDirectory { width: NonZeroU16 },
    RemoveDirectory,
}

/// What a step showed, in words that the tree knows, too.
#[derive(Debug, PartialEq)]
enum Seen {
    Made(InodeNumber),
    Found(InodeNumber, Kind),
    Inode(Inode),
    Removed,
    Listed(Vec<(String, InodeNumber, Kind)>),
}

fn small(range: std::ops::Range<u16>) -> impl Strategy<Value = NonZeroU16> {
    range.prop_map(|number| NonZeroU16::new(number).expect("the range begins at 1"))
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        4 => Just(Verb::Create),
        1 => Just(Verb::Lookup),
        2 => Just(Verb::Stat),
        2 => Just(Verb::Unlink),
        2 => small(1..9).prop_map(|limit| Verb::List { limit }),
        3 => small(1..7).prop_map(|width| Verb::MakeDirectory { width }),
        3 => Just(Verb::RemoveDirectory),
    ]
}

fn path() -> impl Strategy<Value = Vec<&'static str>> {
    let name = || prop::sample::select(&NAMES[..]);
    prop_oneof![4 => vec(name(), 1), 4 => vec(name(), 2), 2 => vec(name(), 3), 1 => vec(name(), 4)]
}

/// The directory that `path` leads to.
fn walk(
    world: &mut World,
    now: WallTime,
    path: &[&str],
    log: &mut impl Log,
) -> Result<InodeNumber, Errno> {
    path.iter().try_fold(InodeNumber::ROOT, |directory, name| {
        let lookup = Command::Lookup(key(directory, name));
        match world.run(now, lookup, log)? {
            Reply::Found { number, kind: Kind::Directory } => Ok(number),
            _ => Err(Errno::NotADirectory),
        }
    })
}

/// Does a step on the servers.
fn on_servers(
    world: &mut World,
    now: WallTime,
    verb: Verb,
    path: &[&str],
    log: &mut impl Log,
) -> Result<Seen, Errno> {
    let (name, parents) = path.split_last().expect("a path has a name");
    if let Verb::List { limit } = verb {
        let directory = walk(world, now, parents, log)?;
        return list(world, now, directory, limit, log).map(Seen::Listed);
    }
    let key = key(walk(world, now, parents, log)?, name);
    let command = match verb {
        Verb::Create => Command::Create(key),
        Verb::Lookup => Command::Lookup(key),
        Verb::Stat => Command::Stat(key),
        Verb::Unlink => Command::Unlink(key),
        Verb::MakeDirectory { width } => {
            Command::MakeDirectory { servers: ServerList::spread(world.count, width, &key), key }
        }
        Verb::List { .. } | Verb::RemoveDirectory => Command::RemoveDirectory(key),
    };
    world.run(now, command, log).map(|reply| match reply {
        Reply::Number(number) => Seen::Made(number),
        Reply::Found { number, kind } => Seen::Found(number, kind),
        Reply::Inode(inode) => Seen::Inode(inode),
        Reply::Done => Seen::Removed,
        other => panic!("{other:?} ends no operation on an entry"),
    })
}

/// All pages of a directory.
fn list(
    world: &mut World,
    now: WallTime,
    directory: InodeNumber,
    limit: NonZeroU16,
    log: &mut impl Log,
) -> Result<Vec<(String, InodeNumber, Kind)>, Errno> {
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let command = Command::ReadDirectory { directory, after, limit };
        let Reply::Page(page) = world.run(now, command, log)? else { panic!("no page") };
        assert!(page.entries.len() <= usize::from(limit.get()));
        assert!(!page.more || !page.entries.is_empty());
        after = page.entries.last().map(|entry| entry.name.clone());
        let entries = page.entries.into_iter();
        listed.extend(entries.map(|entry| (entry.name.to_string(), entry.number, entry.kind)));
        if !page.more {
            return Ok(listed);
        }
    }
}

/// Does a step on the tree, which takes the number of what is made from the servers' answer.
fn on_tree(
    tree: &mut Tree,
    now: WallTime,
    verb: Verb,
    path: &[&str],
    answer: &Result<Seen, Errno>,
) -> Result<Seen, Errno> {
    let whole: String = path.iter().flat_map(|name| ["/", name]).collect();
    let made = |kind| {
        let number = if let Ok(Seen::Made(number)) = answer { *number } else { InodeNumber::ROOT };
        Inode { number, kind, changed: now }
    };
    match verb {
        Verb::Create => tree.make(&whole, made(Kind::File)).map(Seen::Made),
        Verb::MakeDirectory { .. } => tree.make(&whole, made(Kind::Directory)).map(Seen::Made),
        Verb::Lookup => tree.stat(&whole).map(|inode| Seen::Found(inode.number, inode.kind)),
        Verb::Stat => tree.stat(&whole).map(Seen::Inode),
        Verb::Unlink => tree.unlink(&whole).map(|()| Seen::Removed),
        Verb::List { .. } => {
            let end = whole.rfind('/').expect("a path has a name");
            tree.list(&whole[..end]).map(Seen::Listed)
        }
        Verb::RemoveDirectory => tree.remove_directory(&whole).map(|()| Seen::Removed),
    }
}

/// The servers keep what the tree has and nothing else.
fn check(world: &World, tree: &Tree) {
    world.check();
    assert_eq!(world.entries().count(), tree.len());
    let mut expected: BTreeSet<_> = tree.directories().collect();
    expected.insert(InodeNumber::ROOT);
    let kept: BTreeSet<_> = world.parts().map(|(_, directory, _)| directory).collect();
    assert_eq!(kept, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_operations_show_what_a_plain_tree_shows_and_can_be_taken_back(
        servers in small(1..6),
        cached in small(1..4),
        steps in vec((verb(), path()), 1..250),
    ) {
        let mut world = World::new(servers, cached);
        let mut tree = Tree::default();
        let empty = world.clone();
        let mut whole_log = UndoLog::new();
        let mut numbers = BTreeSet::from([InodeNumber::ROOT]);
        let mut now = WallTime::from_nanos(0);
        for (verb, path) in &steps {
            now = now + Nanos::SECOND;
            let before = world.clone();
            let mut log = UndoLog::new();
            let first = on_servers(&mut world, now, *verb, path, &mut log);
            log.revert(Mark::default(), log.mark(), &mut world).unwrap();
            prop_assert_eq!(&world, &before, "{:?} {:?} is not taken back", verb, path);

            let answer = on_servers(&mut world, now, *verb, path, &mut whole_log);
            prop_assert_eq!(&answer, &first, "{:?} {:?} the second time", verb, path);
            if let Ok(Seen::Made(number)) = &answer {
                prop_assert!(numbers.insert(*number), "{} was given twice", number);
            }
            let expected = on_tree(&mut tree, now, *verb, path, &answer);
            prop_assert_eq!(answer, expected, "{:?} {:?}", verb, path);
            check(&world, &tree);
        }
        whole_log.revert(Mark::default(), whole_log.mark(), &mut world).unwrap();
        prop_assert_eq!(world, empty);
    }
}
