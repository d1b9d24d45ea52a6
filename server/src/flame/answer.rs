//! Flame graphs over HTTP.

use std::collections::BTreeMap;

use meikyo_live::{Opened, Span};
use meikyo_profile::flame::{
    Counted, Flame, FlameError, FlameOptions, Frame, FrameKind, Grouped, Shape, Side,
};
use meikyo_profile::tables::{off_cpu, samples};
use meikyo_profile::wanted::Wanted;
use meikyo_recording::Recording;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Flames, NoFlame};
use crate::errors::ApiError;
use crate::parameters::{Parameters, micros};

/// Samples of one answer at most, of both sides of a comparison together.
const SAMPLES_MAX: u64 = 20_000_000;

/// Samples of one answer at most where stacks follow each other in time: of more nobody sees any.
const SAMPLES_IN_TIME_MAX: u64 = 50_000;

/// Nodes of one answer, where nobody says how many.
const NODES: u32 = 20_000;

/// Nodes of one answer at most.
const NODES_MAX: u32 = 100_000;

/// Samples as a tree of callers, or the time that threads were off the CPU. Nodes are columns: the root is the first
/// of each.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FlameBody {
    /// What nodes count: `samples`, or `off_cpu_ns`; that takes the place of samples in all of this then.
    pub(crate) counted: &'static str,
    /// The samples that were asked for, and those that they are compared with if any.
    pub(crate) sides: Vec<SideBody>,
    /// The functions that nodes name by their position here.
    pub(crate) frames: Vec<FrameBody>,
    /// The position of the node that called each node, which is before it; the root names itself.
    pub(crate) parent: Vec<u32>,
    /// The function of each node; the root's means nothing.
    pub(crate) frame: Vec<u32>,
    /// Samples in each node itself.
    pub(crate) own: Vec<u64>,
    /// Samples in each node and all that it called, also in nodes that were left out.
    pub(crate) total: Vec<u64>,
    /// As `own`, of the samples that are compared with; empty where nothing is.
    pub(crate) than_own: Vec<u64>,
    /// As `total`, of the samples that are compared with; empty where nothing is.
    pub(crate) than_total: Vec<u64>,
    /// Nodes that were left out since there were more than `nodes`: those with the fewest samples.
    pub(crate) left_out: u64,
    /// Samples whose own address has no name, by reason.
    pub(crate) unnamed: BTreeMap<String, u64>,
    /// Files of the recording that could not be read: samples in them are missing.
    pub(crate) problems: u64,
}

/// Samples that a tree is made of.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SideBody {
    /// From when on was asked.
    pub(crate) from_us: i64,
    /// Until when was asked.
    pub(crate) to_us: i64,
    /// Samples in that time.
    pub(crate) samples: u64,
    /// How often threads left their CPU in that time; only with `of=off_cpu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) off_cpu_spans: Option<u64>,
    /// How many of the ns others ran in the place of threads that could have run; only with `of=off_cpu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preempted_ns: Option<u64>,
    /// Those of them that are known as sums of their second only: without callers, by place of code.
    pub(crate) summed_up: u64,
    /// When the first of them was taken.
    pub(crate) first_us: Option<i64>,
    /// When the last of them was taken.
    pub(crate) last_us: Option<i64>,
    /// What was lost in that time, as the table `losses` counts it.
    pub(crate) losses: BTreeMap<String, u64>,
}

/// A function.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FrameBody {
    /// Its name, or that of the thread, process, CPU, host or job that samples are grouped by.
    pub(crate) name: String,
    /// The file that it is in; of a group its host; empty where there is none.
    pub(crate) file: String,
    /// `group`, `kernel`, `made` (by a compiler at run time), `code` or `unnamed`.
    pub(crate) kind: &'static str,
}

impl From<Frame> for FrameBody {
    fn from(Frame { name, file, kind }: Frame) -> Self {
        let kind = match kind {
            FrameKind::Group => "group",
            FrameKind::Kernel => "kernel",
            FrameKind::Made => "made",
            FrameKind::Code => "code",
            FrameKind::Unnamed => "unnamed",
        };
        Self { name, file, kind }
    }
}

/// Answers a request for a flame graph, of the jobs and users that are `visible` (everybody's when there are
/// none). Blocks while files are read.
pub(crate) fn tree(
    flames: &Flames,
    opened: &Opened,
    query: Option<&str>,
    visible: Vec<String>,
) -> Result<FlameBody, ApiError> {
    let recording = &opened.recording;
    let options = options_of(recording, Parameters::parse(query)?, visible)?;
    let mut asked = vec![span_of(&options.wanted)];
    if let Shape::Merged { than: Some(than) } = &options.shape {
        asked.push(span_of(than));
    }
    let (in_time, of) = (options.shape == Shape::InTime, options.of);
    let flame = flames.tree(recording, options).map_err(|error| match error {
        NoFlame::Flame(FlameError::Read(error)) => error.into(),
        NoFlame::Flame(FlameError::TooMany { .. }) => {
            let what = if in_time { ", in their order in time" } else { "" };
            ApiError::bad(format!("{error}{what}: ask for less time or fewer hosts"), "from")
        }
        NoFlame::Flame(FlameError::NoOrder) => {
            ApiError::bad(format!("{error}: leave `order` out"), "order")
        }
        NoFlame::Thread(_) | NoFlame::Ended => ApiError::internal(&error),
    })?;
    Ok(body(flame, of, &asked))
}

fn body(flame: Flame, of: Counted, asked: &[(i64, i64)]) -> FlameBody {
    let side = |(side, &(from_us, to_us)): (Side, &(i64, i64))| SideBody {
        from_us,
        to_us,
        samples: side.samples,
        off_cpu_spans: side.off_cpu.map(|sums| sums.spans),
        preempted_ns: side.off_cpu.map(|sums| sums.preempted_ns),
        summed_up: side.summed_up,
        first_us: side.span.map(|span| micros(span.0)),
        last_us: side.span.map(|span| micros(span.1)),
        losses: side.losses.into_iter().map(|loss| (loss.what, loss.count)).collect(),
    };
    let compared = if flame.sides.len() > 1 { flame.nodes.as_slice() } else { &[] };
    let nodes = &flame.nodes;
    let unnamed = flame.unnamed.iter();
    FlameBody {
        counted: match of {
            Counted::Samples => "samples",
            Counted::OffCpu => "off_cpu_ns",
        },
        parent: nodes.iter().map(|node| node.parent).collect(),
        frame: nodes.iter().map(|node| node.frame).collect(),
        own: nodes.iter().map(|node| node.own[0]).collect(),
        total: nodes.iter().map(|node| node.total[0]).collect(),
        than_own: compared.iter().map(|node| node.own[1]).collect(),
        than_total: compared.iter().map(|node| node.total[1]).collect(),
        left_out: flame.left_out as u64,
        unnamed: unnamed.map(|(why, count)| (why.word().to_owned(), *count)).collect(),
        problems: flame.problems.len() as u64,
        sides: flame.sides.into_iter().zip(asked).map(side).collect(),
        frames: flame.frames.into_iter().map(FrameBody::from).collect(),
    }
}

/// The span that was asked for.
fn span_of(wanted: &Wanted) -> (i64, i64) {
    let us = |time: Option<_>| micros(time.expect("a request always has both ends"));
    (us(wanted.from), us(wanted.until))
}

fn options_of(
    recording: &Recording,
    mut parameters: Parameters,
    visible: Vec<String>,
) -> Result<FlameOptions, ApiError> {
    let of = parameters.optional("of").unwrap_or_else(|| Counted::Samples.word().to_owned());
    let of = Counted::ALL.into_iter().find(|one| one.word() == of).ok_or_else(|| {
        ApiError::bad(
            format!("`{of}` is not {}", Counted::ALL.map(Counted::word).join(" and not ")),
            "of",
        )
    })?;
    let there = match of {
        Counted::Samples => recording.span(samples::NAME)?.ok_or_else(|| {
            ApiError::unknown("the recording has no samples: `meikyo profile record`", "id")
        }),
        // Those of earlier programs have no such table.
        Counted::OffCpu => recording.span(off_cpu::NAME).ok().flatten().ok_or_else(|| {
            let text = "the recording has no time off the CPU: `meikyo profile record --off-cpu`";
            ApiError::unknown(text, "of")
        }),
    }?;
    // The last of them is in the whole.
    let there = Span { from: there.0, now: there.1 + meikyo_units::Nanos::from_micros(1) };
    let (from, until) = parameters.span(there)?;
    let wanted = Wanted {
        from: Some(from),
        until: Some(until),
        hosts: parameters.take_all("host"),
        cpus: parameters.take_numbers("cpu")?.into_iter().collect(),
        pids: parameters.take_numbers("pid")?.into_iter().collect(),
        processes: parameters.take_all("process"),
        threads: parameters.take_all("thread"),
        jobs: parameters.take_all("job"),
        visible,
    };
    let than = than(&wanted, &mut parameters)?;
    let words = Grouped::ALL.map(Grouped::word);
    let grouped = parameters.optional("by").unwrap_or_else(|| words[0].to_owned());
    let grouped = Grouped::ALL.into_iter().find(|by| by.word() == grouped).ok_or_else(|| {
        ApiError::bad(format!("`{grouped}` is not one of {}", words.join(", ")), "by")
    })?;
    let in_time = match parameters.optional("order").as_deref() {
        None | Some("merged") => false,
        Some("time") => true,
        Some(other) => {
            return Err(ApiError::bad(format!("`{other}` is not merged and not time"), "order"));
        }
    };
    if in_time && than.is_some() {
        return Err(ApiError::bad("only merged stacks can be compared", "order"));
    }
    let nodes_max = parameters.number("nodes", NODES, 1..=NODES_MAX)?;
    parameters.finish()?;
    Ok(FlameOptions {
        of,
        wanted,
        grouped,
        shape: if in_time { Shape::InTime } else { Shape::Merged { than } },
        samples_max: if in_time { SAMPLES_IN_TIME_MAX } else { SAMPLES_MAX },
        nodes_max: usize::try_from(nodes_max).expect("it is at most 100,000"),
    })
}

/// What the samples are compared with; what is not said of it is as it is for the samples themselves.
fn than(wanted: &Wanted, parameters: &mut Parameters) -> Result<Option<Wanted>, ApiError> {
    let hosts = parameters.take_all("than_host");
    let is_span = parameters.has("than_from") || parameters.has("than_to");
    if hosts.is_empty() && !is_span {
        return Ok(None);
    }
    let hosts = if hosts.is_empty() { wanted.hosts.clone() } else { hosts };
    let same = wanted.from.zip(wanted.until).expect("a request always has both ends");
    let same = Span { from: same.0, now: same.1 };
    let (from, until) = parameters.span_named(same, ["than_from", "than_to"])?;
    Ok(Some(Wanted { from: Some(from), until: Some(until), hosts, ..wanted.clone() }))
}
