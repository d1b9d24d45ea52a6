//! What happens to checkpoints, as rows: into a recording on this host, or to a server.

use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_checkpoint::daemon::{Happened, Observer, What};
use meikyo_console::failure::Failure;
use meikyo_console::output;
use meikyo_recording::schema::Unit;
use meikyo_recording::tables::events;
use meikyo_recording::{
    Kind, PackedRows, Packer, StreamOptions, StreamWriter, TableSchema, layout,
};
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::Uplink;
use meikyo_transport::wire::Declared;
use meikyo_units::{Nanos, WallTime};
use serde::{Deserialize, Serialize};

use crate::receiver;
use crate::this_host::ROOTS;

/// The stream at a server, which has one of this name from every host.
const STREAM: &str = "checkpoints";

meikyo_recording::table! {
    /// A row for each thing that happened to a generation, on the host that it concerned.
    pub checkpoints: Context, "checkpoints", "what happened to checkpoints of parallel programs",
        titled("Checkpoints"), timed("when it happened");
    HOST: Symbol, Label, "host", "name of the host in the job's file";
    EVENT: Symbol, Label, "event",
        "checkpoint_ and opened, prepared, committed, aborted, host_lost, rebuilt, damaged, lost, stalled, drained, not_drained, freed, replaced, ready or runs_again; the last three with the host `run`";
    GENERATION: u64, Detail, "generation", "number of the checkpoint; null where it concerns none";
    RUN: u64, Detail, "run", "which start of the program; null where it is not known";
    STEP: u64, Detail, "step", "the program's own number of what it had reached; null where it is not known";
    MADE_OF: u64, Detail, "made_of", "the generation that it was made of by what changed; null where it was written whole";
    BYTES: u64, Detail, "bytes", "the host's image", in_unit(Unit::Bytes);
    CHANGED_BYTES: u64, Detail, "changed_bytes", "blocks that changed in it", in_unit(Unit::Bytes);
    SENT_BYTES: u64, Detail, "sent_bytes", "what went to other hosts", in_unit(Unit::Bytes);
    RECEIVED_BYTES: u64, Detail, "received_bytes", "what came from other hosts", in_unit(Unit::Bytes);
    STOP_NS: u64, Detail, "stop_ns", "how long the program stood still on this host; null where it is not known",
        in_unit(Unit::Nanoseconds);
    DURATION_NS: u64, Detail, "duration_ns",
        "from begin to end of the whole group for committed and aborted, this host's own work for prepared and rebuilt, since the loss of a host was noticed for replaced, ready and runs_again",
        in_unit(Unit::Nanoseconds);
    TEXT: Text, Gauge, "text", "for people";
}

/// Where events of checkpoints go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
pub(crate) struct RecordedArgs {
    /// Write what happens to checkpoints into this recording on this host; an existing one is continued
    #[arg(long = "out", value_name = "DIR", conflicts_with = "server")]
    recording: Option<PathBuf>,
    /// Send what happens to checkpoints to the server that runs `meikyo serve --ingest`; `http` on loopback only
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// File with a token of role `ingest`
    #[arg(long, value_name = "FILE", requires = "server")]
    token_file: Option<PathBuf>,
    /// The trusted certificate authorities, in PEM
    #[arg(long, value_name = "FILE", default_value = ROOTS, requires = "server")]
    tls_roots: PathBuf,
}

/// Who takes the rows. Neither of them is waited for.
enum Sink {
    Here(Box<StreamWriter>),
    Afar(Uplink),
}

impl Sink {
    fn take(&mut self, rows: PackedRows) {
        let is_known = match self {
            Self::Here(writer) => writer.packed(rows).is_ok(),
            Self::Afar(uplink) => uplink.offer(STREAM, rows).is_ok(),
        };
        assert!(is_known, "both tables are declared");
    }
}

fn tables() -> Vec<TableSchema> {
    vec![events::schema(), checkpoints::schema()]
}

impl RecordedArgs {
    /// Whether rows go to a server.
    pub(super) const fn is_afar(&self) -> bool {
        self.server.is_some()
    }

    /// The same for daemons that run in other directories.
    pub(super) fn absolute(&self) -> Result<Self, Failure> {
        let absolute = |path: &PathBuf| std::path::absolute(path);
        Ok(Self {
            recording: self.recording.as_ref().map(absolute).transpose()?,
            token_file: self.token_file.as_ref().map(absolute).transpose()?,
            ..self.clone()
        })
    }

    /// As they are given to a daemon.
    pub(super) fn arguments(&self) -> Vec<String> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let named = [
            ("--out", self.recording.as_ref().map(text)),
            ("--server", self.server.clone()),
            ("--token-file", self.token_file.as_ref().map(text)),
            ("--tls-roots", self.server.as_ref().map(|_| text(&self.tls_roots))),
        ];
        let given = named.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }

    /// Who is told of what happens on this host; nobody where nothing was asked for.
    pub(super) fn observer(&self, host: &str) -> Result<Observer, Failure> {
        let mut sink = match (&self.recording, &self.server) {
            (Some(recording), _) => Sink::Here(Box::new(writer(recording, host)?)),
            (None, Some(server)) => Sink::Afar(self.uplink(server, host)?),
            (None, None) => return Ok(Box::new(|_| {})),
        };
        let (mut events, mut rows) =
            (Packer::new(events::schema()), Packer::new(checkpoints::schema()));
        let host = host.to_owned();
        Ok(Box::new(move |happened| {
            let now = WallTime::now().as_nanos();
            // What is of one host only would crowd the bar of time, and stands in the other table.
            if happened.what != What::Prepared {
                put_event(&mut events, now, &host, &happened);
                sink.take(events.pack().expect("one row is packed"));
            }
            put_row(&mut rows, now, &host, &happened);
            sink.take(rows.pack().expect("one row is packed"));
        }))
    }

    fn uplink(&self, server: &str, host: &str) -> Result<Uplink, Failure> {
        let token = receiver::token(self.token_file.as_deref())?;
        let target = receiver::target("--server", server, &self.tls_roots, token)?;
        let options = SenderOptions {
            name: host.to_owned(),
            cluster: None,
            identity: None,
            boot: WallTime::now().as_nanos().cast_unsigned(),
            machine: receiver::machine()?,
            streams: vec![Declared { stream: STREAM.to_owned(), tables: tables() }],
            spool: SpoolLimits::STANDARD,
            catch_up: None,
        };
        Ok(Uplink::start(target, options, None)?)
    }
}

fn writer(recording: &Path, host: &str) -> Result<StreamWriter, Failure> {
    let stream = format!("{STREAM}-{host}");
    if !layout::is_name(&stream) {
        return Err(Failure::new(format!("`{host}` cannot be part of the name of a stream"))
            .hint("letters, digits, `_`, `-` and `.` can, at most 80 of them"));
    }
    StreamWriter::open(recording, Kind::Measured, &stream, tables(), StreamOptions::COLLECTOR)
        .map_err(|error| Failure::new(error).hint("name another directory with `--out`"))
}

fn put_event(packer: &mut Packer, now: i64, host: &str, happened: &Happened) {
    let (device, event) = (packer.symbol(host), packer.symbol(happened.what.name()));
    let batch = packer.batch();
    batch.begin_row(now);
    batch.put(events::DEVICE, device);
    batch.put(events::EVENT, event);
    batch.put(events::TEXT, &text_of(happened));
    if let Some(generation) = happened.generation {
        batch.put(events::COUNT, generation.0);
    }
}

/// What happened, with its figures, for a person.
fn text_of(happened: &Happened) -> String {
    let mut text = match happened.generation {
        Some(generation) => format!("checkpoint {}: {}", generation.0, happened.text),
        None => happened.text.clone(),
    };
    if let (What::Committed, Some(cost)) = (happened.what, &happened.cost) {
        let sent = output::bytes_text(cost.sent_bytes);
        text += &format!("; {} a host, {sent} sent", output::bytes_text(cost.bytes));
        if let Some(stop) = cost.stop_seconds {
            text += &format!(", stood still for {:.1} ms", stop * 1e3);
        }
    }
    if let Some(span) = happened.span {
        text += &format!(", took {:.2} s", span.as_secs_f64());
    }
    text
}

fn put_row(packer: &mut Packer, now: i64, host: &str, happened: &Happened) {
    let (host, event) = (packer.symbol(host), packer.symbol(happened.what.name()));
    let batch = packer.batch();
    batch.begin_row(now);
    batch.put(checkpoints::HOST, host);
    batch.put(checkpoints::EVENT, event);
    batch.put(checkpoints::TEXT, &happened.text);
    let cost = happened.cost.as_ref();
    let reached = happened.reached;
    let stop = cost.and_then(|cost| cost.stop_seconds).map(Nanos::from_secs_f64);
    for (column, value) in [
        (checkpoints::GENERATION, happened.generation.map(|generation| generation.0)),
        (checkpoints::RUN, reached.map(|reached| reached.run)),
        (checkpoints::STEP, reached.map(|reached| reached.step)),
        (checkpoints::MADE_OF, cost.and_then(|cost| cost.made_of)),
        (checkpoints::BYTES, cost.map(|cost| cost.bytes)),
        (checkpoints::CHANGED_BYTES, cost.map(|cost| cost.changed_bytes)),
        (checkpoints::SENT_BYTES, cost.map(|cost| cost.sent_bytes)),
        (checkpoints::RECEIVED_BYTES, cost.map(|cost| cost.received_bytes)),
        (checkpoints::STOP_NS, stop.map(Nanos::get)),
        (checkpoints::DURATION_NS, happened.span.map(Nanos::get)),
    ] {
        if let Some(value) = value {
            batch.put(column, value);
        }
    }
}
