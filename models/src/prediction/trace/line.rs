//! One line of a trace.

/// A line, not yet understood.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) rank: u32,
    pub(super) verb: &'a str,
    pub(super) arguments: Vec<&'a str>,
    /// The number after `@`, with which it ends.
    pub(super) group: Option<u64>,
}

/// The members that a line is about, and which of them it is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) place: usize,
    pub(super) size: u32,
    pub(super) own: u32,
}

/// What a rank calls, in octets and ranks of the world.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    /// Works by itself, in the trace's unit.
    Compute(f64),
    Send {
        to: u32,
        tag: u32,
        bytes: u64,
        blocks: bool,
    },
    Receive {
        from: u32,
        tag: u32,
        blocks: bool,
    },
    /// Waits for the oldest message of this name that was not waited for.
    Wait {
        sends: bool,
        other: u32,
        tag: u32,
    },
    /// Waits for what was begun last.
    WaitLast,
    /// Waits for all that was begun.
    WaitAll,
    Collective {
        group: usize,
        own: u32,
        operation: Operation,
    },
}

/// What all members of a group do together; roots by their place among the members.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operation {
    Barrier,
    Broadcast {
        bytes: u64,
        root: u32,
    },
    Reduce {
        bytes: u64,
        root: u32,
    },
    AllReduce {
        bytes: u64,
    },
    /// Each to each, as much to each.
    AllToAll {
        bytes: u64,
    },
    /// To and from each member.
    AllToAllUneven {
        out: Vec<u64>,
        into: Vec<u64>,
    },
    Gather {
        bytes: u64,
        root: u32,
    },
    Scatter {
        bytes: u64,
        root: u32,
    },
    /// What each member has.
    GatherUneven {
        each: Vec<u64>,
        root: u32,
    },
    ScatterUneven {
        each: Vec<u64>,
        root: u32,
    },
    AllGather {
        bytes: u64,
    },
    AllGatherUneven {
        each: Vec<u64>,
    },
    ReduceScatter {
        each: Vec<u64>,
    },
    Scan {
        bytes: u64,
    },
}

impl Operation {
    /// What lines call it, `scan` for both kinds of it.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast { .. } => "bcast",
            Self::Reduce { .. } => "reduce",
            Self::AllReduce { .. } => "allreduce",
            Self::AllToAll { .. } => "alltoall",
            Self::AllToAllUneven { .. } => "alltoallv",
            Self::Gather { .. } => "gather",
            Self::Scatter { .. } => "scatter",
            Self::GatherUneven { .. } => "gatherv",
            Self::ScatterUneven { .. } => "scatterv",
            Self::AllGather { .. } => "allgather",
            Self::AllGatherUneven { .. } => "allgatherv",
            Self::ReduceScatter { .. } => "reducescatter",
            Self::Scan { .. } => "scan",
        }
    }
}

/// All verbs that say anything, for who wrote another one.
const VERBS: &str = "init, finalize, comm_size, comm_split, comm_dup, compute, sleep, send, isend, recv, irecv, \
    wait, waitall, test, barrier, bcast, reduce, allreduce, alltoall, alltoallv, gather, gatherv, scatter, \
    scatterv, allgather, allgatherv, reducescatter, scan, exscan, location";

/// Sizes up to this are exact as floating point numbers, which SMPI writes them as.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl<'a> Line<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let group = match words.last().and_then(|word| word.strip_prefix('@')) {
            Some(id) => {
                words.pop();
                Some(whole(id)?)
            }
            None => None,
        };
        let [rank, verb, arguments @ ..] = words.as_slice() else {
            return Err("a line is written `RANK VERB ARGUMENT...`".to_owned());
        };
        let rank = rank.trim_start_matches('p').parse();
        let rank = rank.ok().filter(|rank| *rank < 1 << 24);
        let rank = rank.ok_or("a line begins with the number of its rank")?;
        Ok(Self { rank, verb, arguments: arguments.to_vec(), group })
    }

    /// The number and the members of a group, if the line defines one.
    pub(super) fn defines(&self) -> Result<Option<(u64, Vec<u32>)>, String> {
        if self.verb != "comm_split" {
            return Ok(None);
        }
        let Some(at) = self.arguments.iter().position(|word| word.starts_with('@')) else {
            return Ok(None);
        };
        let id = whole(&self.arguments[at][1..])?;
        let members: Vec<u32> =
            self.arguments[at + 1..].iter().map(|word| narrow(word)).collect::<Result<_, _>>()?;
        let mut sorted = members.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if id == 0 || members.is_empty() || sorted.len() < members.len() {
            return Err(
                "a group is written `comm_split SIZE @ID MEMBER...`, with an ID above 0".into()
            );
        }
        Ok(Some((id, members)))
    }

    /// What the line calls. `unit` are the octets of a size without a type, `tag` finds what a tag is called.
    pub(super) fn call(
        &self,
        unit: u64,
        ranks: u32,
        group: Group,
        tag: &mut impl FnMut(i64) -> Result<u32, String>,
    ) -> Result<Option<Call>, String> {
        let arguments = Arguments { line: self, unit };
        let partner = |at| arguments.rank(at, ranks);
        let call = match self.verb {
            "compute" => Call::Compute(arguments.amount(0)?),
            "send" | "isend" => Call::Send {
                to: partner(0)?,
                tag: tag(arguments.tag(1)?)?,
                bytes: arguments.size(2, 3)?,
                blocks: self.verb == "send",
            },
            "recv" | "irecv" => Call::Receive {
                from: partner(0)?,
                tag: tag(arguments.tag(1)?)?,
                blocks: self.verb == "recv",
            },
            "wait" if self.arguments.is_empty() => Call::WaitLast,
            "wait" => {
                let (from, to) = (partner(0)?, partner(1)?);
                let sends = from == self.rank;
                if !sends && to != self.rank {
                    return Err(format!("rank {} waits for a message of others", self.rank));
                }
                let other = if sends { to } else { from };
                Call::Wait { sends, other, tag: tag(arguments.tag(2)?)? }
            }
            "waitall" => Call::WaitAll,
            "finalize" | "comm_size" | "comm_split" | "comm_dup" | "test" | "sleep"
            | "location" => {
                return Ok(None);
            }
            _ => {
                let operation = arguments.operation(group)?;
                Call::Collective { group: group.place, own: group.own, operation }
            }
        };
        Ok(Some(call))
    }
}

/// The arguments of a line.
struct Arguments<'a> {
    line: &'a Line<'a>,
    unit: u64,
}

impl Arguments<'_> {
    fn word(&self, at: usize) -> Result<&str, String> {
        let word = self.line.arguments.get(at).copied();
        word.ok_or_else(|| {
            let (verb, there) = (self.line.verb, self.line.arguments.len());
            format!("`{verb}` needs at least {} arguments and has {there}", at + 1)
        })
    }

    fn amount(&self, at: usize) -> Result<f64, String> {
        let word = self.word(at)?;
        let amount = word.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
        amount.ok_or_else(|| format!("`{word}` is no amount"))
    }

    fn rank(&self, at: usize, ranks: u32) -> Result<u32, String> {
        let word = self.word(at)?;
        if word == "-1" {
            return Err("a receive from anybody was never finished: record the program anew".into());
        }
        let rank: u32 = narrow(word)?;
        if rank < ranks {
            Ok(rank)
        } else {
            Err(format!("rank {rank} does not exist: there are {ranks}"))
        }
    }

    fn root(&self, at: usize, group: Group) -> Result<u32, String> {
        if self.line.arguments.len() <= at { Ok(0) } else { self.rank(at, group.size) }
    }

    fn tag(&self, at: usize) -> Result<i64, String> {
        let word = self.word(at)?;
        word.parse().map_err(|_| format!("`{word}` is no tag"))
    }

    /// A size in octets; its type is another argument, if that is there.
    fn size(&self, at: usize, kind: usize) -> Result<u64, String> {
        let unit = match self.line.arguments.get(kind).copied() {
            None => self.unit,
            Some("0" | "4") => 8,
            Some("1" | "5") => 4,
            Some("2" | "6") => 1,
            Some("3") => 2,
            Some(other) => {
                return Err(format!(
                    "`{other}` is no type: 0 to 6 stand for double, int, char, short, long, \
                     float and byte"
                ));
            }
        };
        let size = whole(self.word(at)?)?;
        size.checked_mul(unit).ok_or_else(|| format!("{size} is too large"))
    }

    /// One size for each member; their type is another argument, if that is there.
    fn sizes(&self, at: usize, group: Group, kind: usize) -> Result<Vec<u64>, String> {
        let members = usize::try_from(group.size).expect("32 bits are a count");
        (at..at + members).map(|each| self.size(each, kind)).collect()
    }

    fn operation(&self, group: Group) -> Result<Operation, String> {
        let members = usize::try_from(group.size).expect("32 bits are a count");
        Ok(match self.line.verb {
            "barrier" => Operation::Barrier,
            "bcast" => Operation::Broadcast { bytes: self.size(0, 2)?, root: self.root(1, group)? },
            "reduce" => Operation::Reduce { bytes: self.size(0, 3)?, root: self.root(2, group)? },
            "allreduce" => Operation::AllReduce { bytes: self.size(0, 2)? },
            "scan" | "exscan" => Operation::Scan { bytes: self.size(0, 2)? },
            "alltoall" => Operation::AllToAll { bytes: self.size(0, 2)? },
            "allgather" => Operation::AllGather { bytes: self.size(0, 2)? },
            "gather" => Operation::Gather { bytes: self.size(0, 3)?, root: self.root(2, group)? },
            "scatter" => Operation::Scatter { bytes: self.size(0, 3)?, root: self.root(2, group)? },
            "alltoallv" => {
                let kind = 2 * members + 2;
                let out = self.sizes(1, group, kind)?;
                let into = self.sizes(members + 2, group, kind + 1)?;
                Operation::AllToAllUneven { out, into }
            }
            "gatherv" | "scatterv" => {
                let scatters = self.line.verb == "scatterv";
                let at = usize::from(!scatters);
                let root = self.root(members + 1, group)?;
                let each = self.sizes(at, group, members + if scatters { 2 } else { 3 })?;
                if scatters {
                    Operation::ScatterUneven { each, root }
                } else {
                    Operation::GatherUneven { each, root }
                }
            }
            "allgatherv" => Operation::AllGatherUneven { each: self.sizes(1, group, members + 2)? },
            "reducescatter" => {
                Operation::ReduceScatter { each: self.sizes(0, group, members + 1)? }
            }
            other => return Err(format!("unknown verb `{other}`; known are {VERBS}")),
        })
    }
}

/// A whole number, which SMPI may have written with a fraction of 0 or an exponent.
fn whole(word: &str) -> Result<u64, String> {
    if let Ok(number) = word.parse() {
        return Ok(number);
    }
    let number: Option<f64> = word.parse().ok();
    let number = number.filter(|number| (0.0..=EXACT).contains(number) && number.fract() == 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not below 0 and exact"
    )]
    number.map(|number| number as u64).ok_or_else(|| format!("`{word}` is no whole number"))
}

fn narrow(word: &str) -> Result<u32, String> {
    u32::try_from(whole(word)?).map_err(|_| format!("`{word}` is no rank"))
}
