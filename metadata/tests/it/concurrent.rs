//! Two clients at once in every order of their requests, and clients that die on the way.

use std::num::NonZeroU16;

use meikyo_metadata::{
    Cache, Command, Errno, InodeNumber, Operation, Reply, Response, ServerList, Step,
};
use meikyo_undo::Forget;
use meikyo_units::WallTime;

use crate::world::{World, key};

const NOW: WallTime = WallTime::from_nanos(0);
const SERVERS: NonZeroU16 = NonZeroU16::new(3).unwrap();

#[derive(Clone)]
struct Client {
    cache: Cache,
    step: Step,
}

impl Client {
    fn new(command: &Command, cache: &Cache) -> Self {
        Self { cache: cache.clone(), step: Operation::begin(command.clone(), cache) }
    }

    /// Does one request; whether there was one.
    fn advance(&mut self, world: &mut World) -> bool {
        let Step::Send { server, request, then } = self.step.clone() else { return false };
        let response = world.servers[server.index()].handle(NOW, &request, &mut Forget);
        self.step = then.next(&response, &mut self.cache, &mut Forget);
        true
    }
}

/// Hands `check` the end of every interleaving of two clients' requests; how many there are.
fn interleavings(
    world: &World,
    clients: &[Client; 2],
    check: &mut impl FnMut(World, [&Response; 2]),
) -> u32 {
    if let [Step::Done(one), Step::Done(other)] = clients.each_ref().map(|client| &client.step) {
        check(world.clone(), [one, other]);
        return 1;
    }
    [0, 1]
        .into_iter()
        .map(|turn| {
            let (mut world, mut clients) = (world.clone(), clients.clone());
            match clients[turn].advance(&mut world) {
                true => interleavings(&world, &clients, check),
                false => 0,
            }
        })
        .sum()
}

fn mkdir(name: &str) -> Command {
    let key = key(InodeNumber::ROOT, name);
    Command::MakeDirectory { servers: ServerList::spread(SERVERS, SERVERS, &key), key }
}

fn rmdir(name: &str) -> Command {
    Command::RemoveDirectory(key(InodeNumber::ROOT, name))
}

fn empty() -> World {
    World::new(SERVERS, NonZeroU16::MAX)
}

/// A world with the directory `d` on all servers, and its number.
fn with_directory() -> (World, InodeNumber) {
    let mut world = empty();
    let made = world.run(NOW, mkdir("d"), &mut Forget);
    let Ok(Reply::Number(number)) = made else { panic!("{made:?}") };
    (world, number)
}

/// Runs two commands in every order; with a warm and with a cold cache.
fn race(world: &World, commands: [&Command; 2], mut check: impl FnMut(World, [&Response; 2])) {
    for cache in [&world.cache, &Cache::new(NonZeroU16::MAX)] {
        let clients = commands.map(|command| Client::new(command, cache));
        assert!(interleavings(world, &clients, &mut check) > 1);
    }
}

fn winners(ends: [&Response; 2], loss: Errno) -> usize {
    assert!(ends.iter().all(|end| end.is_ok() || **end == Err(loss)), "{ends:?}");
    ends.iter().filter(|end| end.is_ok()).count()
}

#[test]
fn of_two_that_make_the_same_file_one_does() {
    let create = Command::Create(key(InodeNumber::ROOT, "f"));
    race(&empty(), [&create, &create], |world, ends| {
        assert_eq!(winners(ends, Errno::Exists), 1);
        world.check();
    });
}

#[test]
fn of_two_that_make_the_same_directory_one_does_and_nothing_is_left_of_the_other() {
    race(&empty(), [&mkdir("d"), &mkdir("d")], |world, ends| {
        assert_eq!(winners(ends, Errno::Exists), 1);
        assert_eq!((world.entries().count(), world.parts().count()), (1, 6));
        world.check();
    });
}

#[test]
fn of_two_that_remove_the_same_directory_one_does() {
    let (world, _) = with_directory();
    race(&world, [&rmdir("d"), &rmdir("d")], |world, ends| {
        assert_eq!(winners(ends, Errno::NotFound), 1);
        assert_eq!((world.entries().count(), world.parts().count()), (0, 3));
    });
}

#[test]
fn a_file_is_never_made_in_a_directory_that_goes() {
    let (world, directory) = with_directory();
    for name in ["a", "b", "c", "d", "e", "f"] {
        let create = Command::Create(key(directory, name));
        race(&world, [&create, &rmdir("d")], |world, ends| {
            match ends {
                [Ok(_), removed] => assert_eq!(removed, &Err(Errno::NotEmpty)),
                [made, removed] => {
                    assert_eq!((made, removed), (&Err(Errno::NotFound), &Ok(Reply::Done)));
                }
            }
            world.check();
        });
    }
}

#[test]
fn an_entry_that_stays_is_listed_while_others_come_and_go() {
    let (mut world, directory) = with_directory();
    world.run(NOW, Command::Create(key(directory, "stays")), &mut Forget).unwrap();
    let limit = NonZeroU16::new(9).unwrap();
    let list = Command::ReadDirectory { directory, after: None, limit };
    for other in [Command::Create(key(directory, "comes")), rmdir("d")] {
        race(&world, [&list, &other], |_, ends| {
            let Ok(Reply::Page(page)) = ends[0] else { panic!("{ends:?}") };
            let stays = page.entries.iter().filter(|entry| entry.name.as_bytes() == b"stays");
            assert_eq!((stays.count(), page.more), (1, false));
        });
    }
}

#[test]
fn an_empty_directory_is_listed_as_empty_or_as_gone_while_it_goes() {
    let (world, directory) = with_directory();
    let list = Command::ReadDirectory { directory, after: None, limit: SERVERS };
    race(&world, [&list, &rmdir("d")], |_, ends| match ends[0] {
        Ok(Reply::Page(page)) => assert!(page.entries.is_empty() && !page.more),
        other => assert_eq!(other, &Err(Errno::NotFound)),
    });
}

/// `command` abandoned after each number of requests, and what the world is then.
fn abandoned(world: &World, command: &Command) -> Vec<World> {
    let (mut world, mut client) = (world.clone(), Client::new(command, &world.cache));
    let mut worlds = vec![world.clone()];
    while client.advance(&mut world) {
        worlds.push(world.clone());
    }
    worlds
}

#[test]
fn a_directory_that_was_abandoned_in_the_making_is_absent_or_whole() {
    let worlds = abandoned(&empty(), &mkdir("d"));
    // The server list, the name, three parts, the name.
    assert_eq!(worlds.len(), 1 + 1 + 1 + 3 + 1);
    for mut world in worlds {
        let made = world.run(NOW, mkdir("d"), &mut Forget);
        assert!(matches!(made, Ok(Reply::Number(_)) | Err(Errno::Exists)), "{made:?}");
        let lookup = Command::Lookup(key(InodeNumber::ROOT, "d"));
        let Ok(Reply::Found { number, .. }) = world.run(NOW, lookup, &mut Forget) else {
            panic!("the directory is there")
        };
        for name in ["a", "b", "c", "d", "e", "f"] {
            world.run(NOW, Command::Create(key(number, name)), &mut Forget).unwrap();
        }
    }
}

#[test]
fn a_removal_that_was_abandoned_is_finished_by_the_next() {
    let (world, _) = with_directory();
    let worlds = abandoned(&world, &rmdir("d"));
    // The name, three parts twice, the name.
    assert_eq!(worlds.len(), 1 + 1 + 6 + 1);
    for mut world in worlds {
        world.cache = Cache::new(NonZeroU16::MAX);
        let removed = world.run(NOW, rmdir("d"), &mut Forget);
        assert!(matches!(removed, Ok(Reply::Done) | Err(Errno::NotFound)), "{removed:?}");
        assert_eq!((world.entries().count(), world.parts().count()), (0, 3));
        world.check();
    }
}
