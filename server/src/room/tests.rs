use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn room(places: usize, per_client: usize, only_for_poorer: bool) -> Arc<Room> {
    Arc::new(Room::new(Rules { places, per_client, only_for_poorer }))
}

fn enter(room: &Arc<Room>, user: u32) -> Option<Arc<Seat>> {
    room.enter(Client::User(user)).map(Arc::new)
}

/// Whether the holder was told to go.
fn is_gone(seat: &Seat) -> bool {
    let mut given_up = pin!(seat.given_up());
    given_up.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

#[test]
fn the_first_of_the_client_who_holds_most_goes_for_a_newcomer() {
    let room = room(5, 5, false);
    let quiet = enter(&room, 1).unwrap();
    let greedy: Vec<_> = (0..4).map(|_| enter(&room, 2).unwrap()).collect();
    let newcomer = enter(&room, 3).unwrap();
    let gone: Vec<_> = greedy.iter().map(|seat| is_gone(seat)).collect();
    assert_eq!(gone, [true, false, false, false]);
    assert!(!is_gone(&quiet) && !is_gone(&newcomer));
    assert_eq!((room.held(), room.displaced(), room.refused()), (5, 1, 0));
}

#[test]
fn who_has_proven_himself_goes_after_all_who_have_not_and_who_is_worked_for_never() {
    let room = room(3, 3, false);
    let [proven, busy, waiting] = [1, 2, 3].map(|user| enter(&room, user).unwrap());
    proven.prove();
    let work = busy.work();
    waiting.progress();
    let first = enter(&room, 4).unwrap();
    assert!(is_gone(&waiting) && !is_gone(&proven));
    first.prove();
    let second = enter(&room, 5).unwrap();
    assert!(is_gone(&proven), "nobody else has done nothing for longer");
    second.prove();
    let working = [first.work(), second.work()];
    assert!(enter(&room, 6).is_none(), "all are worked for");
    assert_eq!(room.refused(), 1);
    drop((work, working));
    assert!(enter(&room, 6).is_some());
    assert!(is_gone(&busy), "it was not proven");
}

#[test]
fn what_went_on_last_keeps_a_proven_place() {
    let room = room(2, 2, false);
    let [first, second] = [1, 1].map(|user| enter(&room, user).unwrap());
    first.prove();
    second.prove();
    first.progress();
    enter(&room, 1).unwrap();
    assert!(is_gone(&second) && !is_gone(&first));
}

#[test]
fn drops_of_a_body_that_never_ends_keep_no_place() {
    let room = room(2, 2, false);
    let [first, second] = [1, 1].map(|user| enter(&room, user).unwrap());
    first.progress();
    enter(&room, 1).unwrap();
    assert!(is_gone(&first) && !is_gone(&second));
}

#[test]
fn a_client_at_its_own_limit_displaces_itself() {
    let room = room(100, 2, false);
    let other = enter(&room, 1).unwrap();
    let own: Vec<_> = (0..3).map(|_| enter(&room, 2).unwrap()).collect();
    assert!(is_gone(&own[0]) && !is_gone(&own[1]) && !is_gone(&other));
    assert_eq!(room.held(), 3);
}

#[test]
fn places_that_are_kept_are_given_up_for_the_poorer_only() {
    let room = room(4, 4, true);
    let rich: Vec<_> = (0..3).map(|_| enter(&room, 1).unwrap()).collect();
    let poor = enter(&room, 2).unwrap();
    rich.iter().chain([&poor]).for_each(|seat| seat.prove());
    assert!(enter(&room, 1).is_none(), "the rich get no more");
    let second = enter(&room, 2).unwrap();
    second.prove();
    assert!(is_gone(&rich[0]));
    assert!(enter(&room, 2).is_none(), "two and two: nobody is poorer");
    let third = enter(&room, 3).unwrap();
    assert!(is_gone(&rich[1]), "of two with as many, the one who did nothing for longest");
    assert!(!is_gone(&third) && !is_gone(&poor));
}

#[test]
fn a_place_is_free_when_its_seat_is_dropped() {
    let room = room(1, 1, false);
    let first = enter(&room, 1).unwrap();
    drop(first);
    assert_eq!(room.held(), 0);
    let second = enter(&room, 1).unwrap();
    assert_eq!(room.displaced(), 0);
    room.shrink();
    assert!(is_gone(&second));
}
