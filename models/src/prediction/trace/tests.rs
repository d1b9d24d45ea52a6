use super::*;
use crate::prediction::collective::{AllReduce, AllToAll, Library};
use crate::prediction::ranks::Op;
use proptest::prelude::*;

const COLLECTIVES: Collectives = Collectives {
    library: Library::OpenMpi13,
    all_to_all: AllToAll::Library,
    all_reduce: AllReduce::Library,
};

fn trace(text: &str) -> Result<Trace, TraceError> {
    Trace::parse(&[TraceFile { name: "all.txt".into(), text: text.into() }])
}

fn refused(text: &str) -> String {
    trace(text).unwrap_err().to_string()
}

/// What each rank does, without waiting.
fn program(text: &str) -> Vec<Vec<Op>> {
    let program = trace(text).unwrap().program(1e9, &COLLECTIVES);
    (0..program.ranks()).map(|rank| program.script(rank).ops().collect()).collect()
}

#[test]
fn calls_become_steps() {
    let ops = program(
        "0 init\n0 compute 1500\n0 isend 1 7 100\n0 irecv 1 7 8\n0 send 1 8 20\n0 wait 1 0 7\n0 wait 0 1 7\n\
         0 finalize\n1 init 1\n1 recv 0 7 13 6\n1 recv 0 8 20 6\n1 send 0 7 1\n1 finalize\n",
    );
    let wait = |begun, what| Op::WaitFor { begun, what };
    let compute = Op::Compute { span: meikyo_units::Nanos::new(1500), what: "compute" };
    assert_eq!(
        ops[0],
        [
            compute,
            Op::Send { to: 1, tag: 0, bytes: 100 },
            Op::Receive { from: 1, tag: 0 },
            Op::Send { to: 1, tag: 1, bytes: 20 },
            wait(2, "send"),
            // The receive was begun second.
            wait(1, "wait"),
            wait(0, "wait"),
        ]
    );
    // A word after `init`: sizes without a type count doubles.
    let last = [Op::Send { to: 0, tag: 0, bytes: 8 }, wait(2, "send")];
    assert_eq!(ops[1][4..], last);
}

#[test]
fn of_messages_of_one_name_the_oldest_is_waited_for() {
    let ops = program(
        "0 isend 1 7 1\n0 isend 1 7 2\n0 isend 1 8 3\n0 wait 0 1 7\n0 wait\n0 wait 0 1 7\n\
         1 recv 0 7 1\n1 recv 0 7 2\n1 recv 0 8 3\n",
    );
    // A wait that names nothing is for what was begun last.
    assert_eq!(ops[0][3..], [0, 2, 1].map(|begun| Op::WaitFor { begun, what: "wait" }));
}

#[test]
fn groups_have_their_own_ranks_and_tags() {
    let ops = program(
        "0 comm_split 2 @5 2 0\n0 bcast 1000 0 @5\n0 send 2 1 8 @5\n0 send 2 1 9\n\
         1 compute 1\n\
         2 comm_split 2 @5 2 0\n2 bcast 1000 0 @5\n2 recv 0 1 8 @5\n2 recv 0 1 9\n",
    );
    // Rank 2 is the first member, and so the root.
    let sends: Vec<_> = ops[2]
        .iter()
        .filter_map(
            |op| if let Op::Send { to, bytes, .. } = op { Some((*to, *bytes)) } else { None },
        )
        .collect();
    assert_eq!(sends, [(0, 1000)]);
    let tags = |rank: usize| -> Vec<u32> {
        let tag = |op: &Op| match op {
            Op::Send { tag, .. } | Op::Receive { tag, .. } => Some(*tag),
            _ => None,
        };
        ops[rank].iter().filter_map(tag).collect()
    };
    assert_eq!(tags(0), tags(2));
    assert_ne!(tags(0)[1], tags(0)[2], "a tag means another message in another group");
}

/// Who sends how much to whom, of operations of all ranks.
fn sent(ops: &[Vec<Op>]) -> Vec<u64> {
    let of = |ops: &Vec<Op>| {
        ops.iter().map(|op| if let Op::Send { bytes, .. } = op { *bytes } else { 0 }).sum()
    };
    ops.iter().map(of).collect()
}

#[test]
fn collective_operations_carry_what_they_must() {
    let all = |line: &str| -> Vec<Vec<Op>> {
        let text: String = (0..5).map(|rank| format!("{rank} {line}\n")).collect();
        program(&text)
    };
    assert_eq!(sent(&all("barrier")), [0; 5]);
    // Trees: all but the root get or give it once.
    assert_eq!(sent(&all("bcast 100 3")).iter().sum::<u64>(), 400);
    assert_eq!(sent(&all("reduce 100 0 3")).iter().sum::<u64>(), 400);
    assert_eq!(sent(&all("reduce 100 0 3"))[3], 0);
    assert_eq!(sent(&all("alltoall 5000 5000")), [20_000; 5]);
    assert_eq!(sent(&all("allgather 7000 7000")), [28_000; 5]);
    // Around the ring, each block but that of the next one.
    assert_eq!(sent(&all("allgatherv 1 1 2 3 4 5")), [13, 12, 11, 10, 14]);
    assert_eq!(sent(&all("gatherv 1 1 2 3 4 5 2")), [1, 2, 0, 4, 5]);
    assert_eq!(sent(&all("scatterv 1 2 3 4 5 9 2")), [0, 0, 12, 0, 0]);
    // From the root, through the others, as far as they stand for others.
    assert_eq!(sent(&all("scatter 10 10 0")), [40, 0, 10, 0, 0]);
    assert_eq!(sent(&all("gather 10 10 0")), [0, 10, 20, 10, 10]);
}

#[test]
fn every_mistake_is_told_with_its_line_and_what_helps() {
    insta::assert_snapshot!(refused(""), @"the trace is empty; `meikyo trace -- mpirun ...` records one");
    insta::assert_snapshot!(refused("0 init\n2 init\n"), @"rank 1 of 3 is missing: name its file in the list of files, or record the program anew");
    insta::assert_snapshot!(refused("0 comm_size 4\n"), @"rank 1 of 4 is missing: name its file in the list of files, or record the program anew");
    insta::assert_snapshot!(refused("0 send 1 3 8\n0 send 1 3 8\n1 recv 0 3 8\n"), @"all.txt, line 2: 2 messages from rank 0 to rank 1 with this tag are sent and 1 received: a trace of a program that was ended early has to be recorded anew");
    insta::assert_snapshot!(refused("0 barrier\n1 bcast 1 0\n"), @"all.txt, line 2: `bcast`, where line 1 of all.txt says `barrier`: all members of a communicator call the same operations in the same order");
    insta::assert_snapshot!(refused("0 barrier\n1 init\n"), @"all.txt, line 1: `barrier` is never called by rank 1: a trace of a program that was ended early has to be recorded anew");
    insta::assert_snapshot!(refused("0 irecv -1 3 8\n"), @"all.txt, line 1: a receive from anybody was never finished: record the program anew");
    insta::assert_snapshot!(refused("0 send 1\n"), @"all.txt, line 1: rank 1 does not exist: there are 1");
    insta::assert_snapshot!(refused("0 barrier @3\n"), @"all.txt, line 1: `@3` is not defined: a line `comm_split SIZE @3 MEMBER...` does that");
    insta::assert_snapshot!(refused("zero init\n"), @"all.txt, line 1: a line begins with the number of its rank");
    let unknown = refused("0 init\n\n0 sing 3\n");
    assert!(
        unknown.starts_with("all.txt, line 3: unknown verb `sing`; known are init,"),
        "{unknown}"
    );
}

proptest! {
    /// Whatever a line says, it is read or refused.
    #[test]
    fn no_text_is_too_strange(text in "([0-2] (init|send|isend|recv|wait|waitall|alltoallv|gatherv|comm_split|bcast|compute|reducescatter)( (@?[0-9]{1,3}|1e[0-9]{1,3}|-1|[^ ]))*\n){0,8}") {
        let read = trace(&text);
        if let Ok(read) = read {
            let program = read.program(1e9, &COLLECTIVES);
            prop_assert_eq!(program.ranks(), read.ranks());
        }
    }

    /// Messages that all ranks exchange by any calls are those of the program.
    #[test]
    fn messages_are_those_of_the_lines(
        messages in prop::collection::vec((0..3_u32, 1..3_u32, 0..4_i64, 0..10_000_u64), 1..30)
    ) {
        let mut lines = vec![String::new(); 3];
        for (from, by, tag, bytes) in &messages {
            let to = (from + by) % 3;
            lines[*from as usize] += &format!("{from} isend {to} {tag} {bytes}\n");
            lines[to as usize] += &format!("{to} irecv {from} {tag} {bytes}\n");
        }
        let end: String = (0..3).map(|rank| format!("{rank} waitall 1\n")).collect();
        let ops = program(&(lines.concat() + &end));
        for rank in 0..3_u32 {
            let wanted: Vec<(u32, u64)> = messages
                .iter()
                .filter(|(from, ..)| *from == rank)
                .map(|(from, by, _, bytes)| ((from + by) % 3, *bytes))
                .collect();
            let sent = |op: &Op| {
                if let Op::Send { to, bytes, .. } = op { Some((*to, *bytes)) } else { None }
            };
            let told: Vec<_> = ops[rank as usize].iter().filter_map(sent).collect();
            prop_assert_eq!(told, wanted);
        }
    }
}
