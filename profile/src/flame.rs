//! Samples as a tree of callers: what a flame graph shows.
//!
//! Each node is a function as it was called by those above it, with the samples in it and in all that it
//! called. Samples are counted by stack first and named afterwards, so that the work of a sample does not
//! grow with its stack, and each address is looked up once.
//!
//! The same is done with the time that threads were off the CPU: ns take the place of samples then.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use meikyo_recording::read::Problem;
use meikyo_recording::{ReadError, Recording};
use meikyo_units::WallTime;

use crate::kernel::KERNEL;
use crate::reading::alike::{Apart, Passed};
use crate::reading::stacks::{Callers, Numbered, Stacks, index};
use crate::reading::{Alike, Name, Reading, Seen};
use crate::report::{Loss, OffCpuSums, losses, walls, wider};
use crate::symbols::{Symbols, Unnamed};
use crate::wanted::Wanted;

/// What stands below everything, or that nothing does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouped {
    /// All stacks are one tree.
    Together,
    /// Each thread has a tree.
    Thread,
    /// Each process has a tree.
    Process,
    /// Each CPU has a tree.
    Cpu,
    /// Each host has a tree.
    Host,
    /// Each job has a tree.
    Job,
}

impl Grouped {
    /// Every way to group.
    pub const ALL: [Self; 6] =
        [Self::Together, Self::Thread, Self::Process, Self::Cpu, Self::Host, Self::Job];

    /// What samples of a group have in common, whatever their threads and times are; `None` where those decide.
    const fn apart(self) -> Option<Apart> {
        match self {
            Self::Together | Self::Host => Some(Apart::Hosts),
            Self::Cpu => Some(Apart::Cpus),
            Self::Thread | Self::Process | Self::Job => None,
        }
    }

    /// One word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Cpu => "cpu",
            Self::Host => "host",
            Self::Job => "job",
        }
    }
}

/// What a tree counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// What was sampled: what the CPUs did.
    Samples,
    /// How long threads were off the CPU, ns, by where they left it outside of the kernel.
    OffCpu,
}

impl Counted {
    /// Everything that can be counted.
    pub const ALL: [Self; 2] = [Self::Samples, Self::OffCpu];

    /// One word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::OffCpu => "off_cpu",
        }
    }
}

/// In which order stacks are put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Equal stacks are one, whenever they were sampled; beside samples that they are compared with.
    Merged {
        /// The samples to compare with.
        than: Option<Wanted>,
    },
    /// Stacks follow each other as they were sampled; only equal neighbours are one.
    InTime,
}

/// What is wanted of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameOptions {
    /// Samples, or the time off the CPU.
    pub of: Counted,
    /// Which samples.
    pub wanted: Wanted,
    /// What stands below everything.
    pub grouped: Grouped,
    /// In which order.
    pub shape: Shape,
    /// Samples that are read at most.
    pub samples_max: u64,
    /// Nodes at most; those with the fewest samples are left out, with all that they called.
    pub nodes_max: usize,
}

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub enum FlameError {
    /// The recording has no samples or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There are more samples than are read at once.
    #[error("there are more than {limit} samples, the maximum for one answer")]
    TooMany {
        /// How many are read at most.
        limit: u64,
    },
    /// Time off the CPU is summed up by second: it has no order within one.
    #[error("time off the CPU is summed up by second and has no order in time")]
    NoOrder,
}

/// What a frame is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// What samples are grouped by.
    Group,
    /// The kernel that ran there, with its modules.
    Kernel,
    /// Code that a compiler made at run time.
    Made,
    /// A program or library.
    Code,
    /// An address without a name.
    Unnamed,
}

/// A function, or what samples are grouped by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// How it is called where it is shown.
    pub name: String,
    /// The file that it is in; the host of a group; empty where there is none.
    pub file: String,
    /// What it is a part of.
    pub kind: FrameKind,
}

/// A function as it was called. Both numbers of a pair are samples, or ns off the CPU: of those that are wanted
/// and of those that they are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Which node called it; the first one is the root, which names itself.
    pub parent: u32,
    /// Which function it is; of the root, 0 without a meaning.
    pub frame: u32,
    /// Samples in itself.
    pub own: [u64; 2],
    /// Samples in itself and in all that it called, also in what was left out.
    pub total: [u64; 2],
}

/// Samples that a tree is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// How many there are, or how many ns off the CPU.
    pub samples: u64,
    /// More about the time off the CPU, where that is counted.
    pub off_cpu: Option<OffCpuSums>,
    /// Those of them that are known as sums of their second only: without callers, by place of code.
    pub summed_up: u64,
    /// The time of the first and the last one.
    pub span: Option<(WallTime, WallTime)>,
    /// What was lost in the time that is wanted.
    pub losses: Vec<Loss>,
}

/// A tree of callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flame {
    /// What is wanted, and what it is compared with if anything.
    pub sides: Vec<Side>,
    /// The functions that nodes name by number.
    pub frames: Vec<Frame>,
    /// The root first, each node behind the one that called it; callees of one node with most samples
    /// first, or in the order of time.
    pub nodes: Vec<Node>,
    /// Nodes that were left out.
    pub left_out: usize,
    /// Samples whose own address has no name, or ns off the CPU, by reason.
    pub unnamed: Vec<(Unnamed, u64)>,
    /// What is wrong with the recording.
    pub problems: Vec<Problem>,
}

/// The tree of the wanted samples.
///
/// # Errors
/// When the recording has no samples, cannot be read, or has more than are read at once.
pub fn flame(
    recording: &Recording,
    symbols: &mut Symbols,
    options: &FlameOptions,
) -> Result<Flame, FlameError> {
    if options.of == Counted::OffCpu && options.shape == Shape::InTime {
        return Err(FlameError::NoOrder);
    }
    let sides: Vec<&Wanted> = match &options.shape {
        Shape::Merged { than } => std::iter::once(&options.wanted).chain(than).collect(),
        Shape::InTime => vec![&options.wanted],
    };
    let all_of = sides.iter().any(|side| side.hosts.is_empty());
    let hosts = sides.iter().filter(|_| !all_of).flat_map(|side| side.hosts.clone());
    let mut reading = Reading::new(recording, symbols, &hosts.collect::<Vec<_>>())?;
    let mut met = Met::new(options);
    let mut read = Vec::new();
    for (side, wanted) in sides.into_iter().enumerate() {
        read.push(match options.of {
            Counted::Samples => met.read(&mut reading, (wanted, side))?,
            Counted::OffCpu => met.read_off_cpu(&mut reading, (wanted, side))?,
        });
    }
    reading.look_up(met.stacks.places().iter())?;
    let unnamed = met.unnamed(&reading);
    let tree = met.tree(&reading);
    let (nodes, left_out) = tree.in_order(&options.shape, options.nodes_max);
    let frames = tree.frames.all().iter().zip(&tree.kinds);
    let frames = frames.map(|((name, file), &kind)| Frame {
        name: name.to_string(),
        file: file.to_string(),
        kind,
    });
    let frames = frames.collect();
    Ok(Flame { sides: read, frames, nodes, left_out, unnamed, problems: reading.problems })
}

/// What is wanted of one side, and which of both it is.
type Part<'a> = (&'a Wanted, usize);

/// What samples have in common: the number of their group, and that of their stack.
type Same = (u32, u32);

/// Samples as they were met.
struct Met<'a> {
    options: &'a FlameOptions,
    stacks: Stacks,
    groups: Numbered<(Name, Name)>,
    counts: HashMap<Same, [u64; 2]>,
    /// Group, time and stack of each sample, where their order is wanted.
    in_time: Vec<(u32, i64, u32)>,
    /// Samples that were read, or rows of time off the CPU.
    samples: u64,
}

impl<'a> Met<'a> {
    fn new(options: &'a FlameOptions) -> Self {
        Self {
            options,
            stacks: Stacks::new(Callers::Kept),
            groups: Numbered::new(),
            counts: HashMap::new(),
            in_time: Vec::new(),
            samples: 0,
        }
    }

    /// Reads the samples of a side.
    fn read(&mut self, reading: &mut Reading<'_>, of: Part<'_>) -> Result<Side, FlameError> {
        let (wanted, side) = of;
        let before = self.samples;
        let limit = self.options.samples_max;
        let left = limit.saturating_sub(before);
        let mut passed = Passed::default();
        let mut take = |reading: &mut Reading<'_>, alike: &Alike<'_>| {
            let Alike { seen, count, .. } = alike;
            let group = group_of(reading, seen, self.options.grouped);
            let group = group.map_or(0, |group| self.groups.number(&group));
            let stack = self.stacks.number_of_alike(reading, alike);
            self.counts.entry((group, stack)).or_default()[side] += count;
            if self.options.shape == Shape::InTime {
                self.in_time.push((group, seen.time, stack));
            }
        };
        match self.options.grouped.apart() {
            Some(apart) if self.options.shape != Shape::InTime => {
                reading.alike(wanted, apart, left, &mut passed, take)?;
            }
            _ => reading.samples(wanted, |reading, seen| {
                take(reading, &Alike::one(*seen));
                passed.note(seen, left)
            })?,
        }
        let Passed { samples: sampled, mut span, seconds } = passed;
        if sampled > left {
            return Err(FlameError::TooMany { limit });
        }
        self.samples += sampled;
        if self.options.shape != Shape::InTime && reading.has_summaries() {
            reading.summaries(wanted, |reading, seen, samples| {
                if samples > 0 && !seconds.has(seen) {
                    self.samples += samples;
                    span = wider(span, seen.time);
                    self.count(reading, seen, side, samples);
                }
            })?;
        }
        let samples = self.samples - before;
        let summed_up = samples - sampled;
        let losses = losses(reading, wanted)?;
        Ok(Side { samples, summed_up, off_cpu: None, span: span.map(walls), losses })
    }

    /// Reads the time off the CPU of a side.
    fn read_off_cpu(
        &mut self,
        reading: &mut Reading<'_>,
        of: Part<'_>,
    ) -> Result<Side, FlameError> {
        let ((wanted, side), limit) = (of, self.options.samples_max);
        let (mut samples, mut sums, mut span) = (0, OffCpuSums::default(), None);
        reading.off_cpu(wanted, |reading, seen, of| {
            self.samples += 1;
            if self.samples > limit {
                return;
            }
            self.count(reading, seen, side, of.ns);
            samples += of.ns;
            sums.add(&of);
            span = wider(span, seen.time);
        })?;
        if self.samples > limit {
            return Err(FlameError::TooMany { limit });
        }
        let losses = losses(reading, wanted)?;
        Ok(Side { samples, summed_up: 0, off_cpu: Some(sums), span: span.map(walls), losses })
    }

    /// Counts so many samples, or ns, where a sample stands.
    fn count(&mut self, reading: &mut Reading<'_>, seen: &Seen<'_>, side: usize, amount: u64) {
        let group = group_of(reading, seen, self.options.grouped);
        let group = group.map_or(0, |group| self.groups.number(&group));
        let stack = self.stacks.number_of(reading, seen);
        self.counts.entry((group, stack)).or_default()[side] += amount;
    }

    /// Samples whose own address has no name, of all sides.
    fn unnamed(&self, reading: &Reading<'_>) -> Vec<(Unnamed, u64)> {
        let mut unnamed: BTreeMap<Unnamed, u64> = BTreeMap::new();
        for ((_, stack), counts) in &self.counts {
            let own = self.stacks.stack(*stack).first().copied();
            let own = &self.stacks.places()[index(own.expect("a stack has an address"))];
            if let Some(reason) = reading.reason(own) {
                *unnamed.entry(reason).or_default() += counts.iter().sum::<u64>();
            }
        }
        unnamed.into_iter().collect()
    }

    fn tree(&mut self, reading: &Reading<'_>) -> Tree {
        let mut tree = Tree::new();
        let groups: Vec<u32> = self.groups.all().iter().map(|group| tree.group(group)).collect();
        let frame = |place| {
            let (name, file) = reading.frame(place);
            let kind = if reading.reason(place).is_some() {
                FrameKind::Unnamed
            } else if &*file == KERNEL {
                FrameKind::Kernel
            } else if file.starts_with('[') {
                FrameKind::Made
            } else {
                FrameKind::Code
            };
            tree.frame(&(name, file), kind)
        };
        let frames: Vec<u32> = self.stacks.places().iter().map(frame).collect();
        let path = |stacks: &Stacks, (group, stack): Same| -> Vec<u32> {
            let callers = stacks.stack(stack).iter().rev().map(|&place| frames[index(place)]);
            groups.get(index(group)).copied().into_iter().chain(callers).collect()
        };
        if self.options.shape == Shape::InTime {
            self.in_time.sort_unstable();
            for &(group, _, stack) in &self.in_time {
                tree.add(&path(&self.stacks, (group, stack)), [1, 0], Siblings::Last);
            }
        } else {
            for (&same, &counts) in &self.counts {
                tree.add(&path(&self.stacks, same), counts, Siblings::Any);
            }
        }
        tree
    }
}

/// What a sample stands under: a name, and the host that it is on.
fn group_of(reading: &mut Reading<'_>, seen: &Seen<'_>, grouped: Grouped) -> Option<(Name, Name)> {
    let host = reading.host_name(seen.host);
    let name = match grouped {
        Grouped::Together => return None,
        Grouped::Thread => {
            let called = reading.called(seen.time, seen.thread());
            reading.word(&format!("{called} {}", seen.tid))
        }
        Grouped::Process => {
            let called = reading.called(seen.time, seen.process());
            reading.word(&format!("{called} {}", seen.pid))
        }
        Grouped::Cpu => reading.word(&format!("CPU {}", seen.cpu)),
        Grouped::Host => return Some((host, reading.word(""))),
        Grouped::Job => {
            let job = reading.job(seen).unwrap_or_else(|| reading.word("no job"));
            return Some((job, reading.word("")));
        }
    };
    Some((name, host))
}

/// Which callee of a node a function is the same as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Siblings {
    /// Any of the same name.
    Any,
    /// The one that was added last, if it has the same name.
    Last,
}

/// A tree while it is made.
struct Tree {
    frames: Numbered<(Name, Name)>,
    kinds: Vec<FrameKind>,
    nodes: Vec<Node>,
    /// By node and function, the callee.
    callees: HashMap<(u32, u32), u32>,
    /// The callee of each node that was added last.
    last: Vec<Option<u32>>,
}

impl Tree {
    fn new() -> Self {
        let root = Node { parent: 0, frame: 0, own: [0; 2], total: [0; 2] };
        Self {
            frames: Numbered::new(),
            kinds: Vec::new(),
            nodes: vec![root],
            callees: HashMap::new(),
            last: vec![None],
        }
    }

    fn frame(&mut self, frame: &(Name, Name), kind: FrameKind) -> u32 {
        let number = self.frames.number(frame);
        if index(number) == self.kinds.len() {
            self.kinds.push(kind);
        }
        number
    }

    fn group(&mut self, group: &(Name, Name)) -> u32 {
        self.frame(group, FrameKind::Group)
    }

    /// Adds samples of a stack, whose outermost function comes first.
    fn add(&mut self, path: &[u32], counts: [u64; 2], siblings: Siblings) {
        let mut at = 0;
        for &frame in path {
            let node = &mut self.nodes[index(at)];
            (0..2).for_each(|side| node.total[side] += counts[side]);
            let found = match siblings {
                Siblings::Any => self.callees.get(&(at, frame)).copied(),
                Siblings::Last => {
                    self.last[index(at)].filter(|&last| self.nodes[index(last)].frame == frame)
                }
            };
            at = found.unwrap_or_else(|| {
                let new =
                    u32::try_from(self.nodes.len()).expect("fewer nodes than samples' frames");
                self.nodes.push(Node { parent: at, frame, own: [0; 2], total: [0; 2] });
                self.last.push(None);
                self.last[index(at)] = Some(new);
                if siblings == Siblings::Any {
                    self.callees.insert((at, frame), new);
                }
                new
            });
        }
        let node = &mut self.nodes[index(at)];
        for (side, count) in counts.into_iter().enumerate() {
            node.own[side] += count;
            node.total[side] += count;
        }
    }

    /// The nodes with the most samples, callers before callees, and how many are left out.
    fn in_order(&self, shape: &Shape, nodes_max: usize) -> (Vec<Node>, usize) {
        let weight = |node: &Node| node.total.iter().sum::<u64>();
        let mut weights: Vec<u64> = self.nodes.iter().map(weight).collect();
        // Whoever is left out has no more samples than the first that has no room; so has what it called.
        let least = if weights.len() > nodes_max {
            weights.sort_unstable_by(|one, other| other.cmp(one));
            weights[nodes_max] + 1
        } else {
            0
        };
        let mut callees: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            if weight(node) >= least {
                let at = u32::try_from(at).expect("nodes are numbered so");
                callees[index(node.parent)].push(at);
            }
        }
        if *shape != Shape::InTime {
            let name = |at: u32| &self.frames.all()[index(self.nodes[index(at)].frame)];
            for of_node in &mut callees {
                of_node.sort_by(|&one, &other| {
                    let [a, b] = [one, other].map(|at| weight(&self.nodes[index(at)]));
                    b.cmp(&a).then_with(|| name(one).cmp(name(other)))
                });
            }
        }
        let mut nodes: Vec<Node> = Vec::new();
        let mut open = vec![(0_u32, 0_u32)];
        while let Some((at, parent)) = open.pop() {
            let number = u32::try_from(nodes.len()).expect("nodes are numbered so");
            nodes.push(Node { parent, ..self.nodes[index(at)] });
            open.extend(callees[index(at)].iter().rev().map(|&callee| (callee, number)));
        }
        let left_out = self.nodes.len() - nodes.len();
        (nodes, left_out)
    }
}
