//! What a receiver says of lives of senders that are over.

use meikyo_recording::origin::Ranges;
use meikyo_transport::wire::{Code, Gap, Hello, Message, Numbers, Reason, TIME_UNKNOWN};
use meikyo_transport::{OnDisk, Output, Permit, Place, Receiver};

use crate::{at, block, greeted, hear, hello, say};

#[test]
fn a_number_that_was_only_given_up_is_not_acknowledged_before_it_came() {
    let mut receiver = greeted(1, "node001");
    let first = say(&mut receiver, 1, &[block("node001", 1)]);
    receiver.synced(&Place::new(None, "s"), first.stored[0]);
    receiver.disconnected(1);
    // A later life of that name knows nothing of it.
    receiver.connected(at(1), 2, Permit::anybody());
    let later = Hello { boot: 8, ..hello("node001") };
    let heard = say(&mut receiver, 2, &[Message::Hello(later.clone())]);
    receiver.synced(&Place::new(None, "s"), *heard.stored.last().unwrap());
    // Nobody is told that these numbers need not be kept.
    assert!(hear(&mut receiver).said.is_empty());
    // What the earlier one had stored is acknowledged at once; what nobody knew of is stored, since a file of
    // its spool has come back.
    let known = say(&mut receiver, 2, &[block("node001", 1)]);
    assert!(matches!(known.said[..], [Message::Ack(_)]), "{known:?}");
    let unknown = say(&mut receiver, 2, &[block("node001", 2)]);
    assert_eq!((unknown.closed.len(), unknown.stored.len(), unknown.said.len()), (0, 1, 0));
    receiver.synced(&Place::new(None, "s"), unknown.stored[0]);
    let synced = hear(&mut receiver).said;
    assert!(matches!(&synced[..], [Message::Ack(numbers)] if numbers[0].boot == 7), "{synced:?}");
    // The earlier life itself does not go on.
    receiver.connected(at(1), 3, Permit::anybody());
    let back = say(&mut receiver, 3, &[Message::Hello(hello("node001"))]);
    assert_eq!(back.closed, [(3, Code::Duplicate)]);
    assert!(back.refusal().text.contains("Give each a name of its own"), "{:?}", back.refusal());
}

#[test]
fn rows_that_a_killed_sender_had_not_numbered_are_a_gap_up_to_its_next_life() {
    let mut receiver = greeted(1, "node001");
    say(&mut receiver, 1, &[block("node001", 1)]);
    receiver.disconnected(1);
    receiver.connected(at(1), 2, Permit::anybody());
    let next = Hello { boot: 8, begun_ns: Some(9), ..hello("node001") };
    let heard = say(&mut receiver, 2, &[Message::Hello(next)]);
    // The rows of the block are of instant 5.
    assert_eq!(heard.gaps, [("restarted".to_owned(), 5, 9)]);
    // One that ends in peace leaves no such gap.
    let at_end = Gap {
        boot: 8,
        stream: "s".into(),
        first: 1,
        last: u64::MAX,
        rows: Some(0),
        from_ns: 20,
        until_ns: 20,
        reason: Reason::Ended,
    };
    let heard = say(&mut receiver, 2, &[Message::Gap(at_end)]);
    assert_eq!(heard.gaps, [("ended".to_owned(), 20, 20)]);
    receiver.disconnected(2);
    receiver.connected(at(1), 3, Permit::anybody());
    let next = Hello { boot: 9, begun_ns: Some(30), ..hello("node001") };
    assert_eq!(say(&mut receiver, 3, &[Message::Hello(next)]).gaps, []);
}

#[test]
fn a_sender_that_has_forgotten_what_was_acknowledged_is_told_so() {
    let mut receiver = greeted(1, "node001");
    let blocks = [1, 2, 4].map(|number| block("node001", number));
    let stored = say(&mut receiver, 1, &blocks).stored;
    receiver.synced(&Place::new(None, "s"), stored[2]);
    hear(&mut receiver);
    receiver.disconnected(1);
    receiver.connected(at(1), 2, Permit::anybody());
    let (boot, stream, last) = (7, "s".to_owned(), u64::MAX);
    let ranges = vec![(2, last)];
    let holds = vec![Numbers { boot, stream: stream.clone(), ranges }];
    let next = Hello { boot: 8, holds, ..hello("node001") };
    assert_eq!(say(&mut receiver, 2, &[Message::Hello(next)]).gaps, []);
    // Its machine lost power: it knows of block 1, and of no time.
    let (first, rows, from_ns, until_ns) = (2, None, 0, 0);
    let reason = Reason::Restarted;
    let gap = Gap { boot, stream, first, last, rows, from_ns, until_ns, reason };
    let heard = say(&mut receiver, 2, &[Message::Gap(gap)]);
    // The rows of the blocks are of instant 5.
    let told = ("restarted".to_owned(), 5, 5);
    assert_eq!((heard.numbers, heard.gaps), (vec![(3, 3), (5, last)], vec![told.clone(), told]));
    receiver.synced(&Place::new(None, "s"), heard.stored[1]);
    let known = [heard.said, hear(&mut receiver).said].concat();
    let known = known.iter().flat_map(|said| match said {
        Message::Ack(numbers) => numbers.iter().flat_map(|of| of.ranges.clone()).collect(),
        _ => Vec::new(),
    });
    let mut ranges = Ranges::default();
    known.for_each(|(first, last)| ranges.add(first, last));
    assert_eq!(ranges.missing(2, last), 0, "{ranges:?}");
}

#[test]
fn what_a_sender_knows_of_the_time_of_a_gap_stays() {
    // The recording has rows of others that are newer.
    let on_disk = OnDisk { newest_ns: Some(99), ..OnDisk::default() };
    for (from_ns, found) in [(3, 3), (TIME_UNKNOWN, 99)] {
        let mut receiver = Receiver::new();
        receiver.connected(at(1), 1, Permit::anybody());
        receiver.handle(at(1), 1, &Message::Hello(hello("node001")).encoded());
        let Some(Output::Open { place, tables, after }) = receiver.poll_output() else { panic!() };
        receiver.opened(at(1), (&place, &tables), after, &on_disk);
        let (boot, stream, rows, reason) = (6, "s".to_owned(), None, Reason::Restarted);
        let (first, last, until_ns) = (2, u64::MAX, from_ns);
        let gap = Gap { boot, stream, first, last, rows, from_ns, until_ns, reason };
        let heard = say(&mut receiver, 1, &[Message::Gap(gap)]);
        assert_eq!(heard.gaps, [("restarted".to_owned(), found, found)]);
    }
}
