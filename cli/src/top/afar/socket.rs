//! A table of a recording, watched over a web socket.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use arrow::array::{Array as _, AsArray as _, PrimitiveArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{ArrowPrimitiveType, Float32Type, UInt8Type, UInt32Type};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use meikyo_live::{Event, Frame, Interval, Step};
use meikyo_transport::shell::{ConnectError, Target, Upgraded, web_socket};
use meikyo_units::{Nanos, WallTime, in_one_line};
use serde::Deserialize;
use serde_json::json;
use tungstenite::handshake::client::generate_key;
use tungstenite::protocol::{Role, WebSocket, WebSocketConfig};
use tungstenite::{Error, Message};

use super::{CATCHES, News};
use crate::top::clusters::remote::{AskError, said};

/// How long is waited before a connection is tried again.
const RETRY: Nanos = Nanos::from_secs(2);

/// How often the thread looks whether anybody still watches.
const LOOK: Nanos = Nanos::from_millis(500);

/// A server pings every 20 s; one of which nothing was heard for so long is gone.
const SILENCE_MAX: Nanos = Nanos::from_secs(60);

/// The longest message: a row of each of some 500,000 series.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// What is watched of a table.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) target: Target,
    /// Id of the recording at the server.
    pub(super) recording: String,
    pub(super) table: &'static str,
    pub(super) columns: Vec<String>,
    /// The columns that name a series, in their order.
    pub(super) labels: Vec<String>,
    /// The least time between two messages; every row comes when `None`.
    pub(super) every: Option<Nanos>,
    /// All sockets tell of intervals and events: it is heard from one.
    pub(super) tells_of_intervals: bool,
}

/// What a server says as text: one of these, or something that is passed over. Steps that it left out are missing in the
/// charts, and the newest values came behind them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    subscribed: Option<SubscribedSaid>,
    health: Option<HealthSaid>,
    event: Option<EventSaid>,
    refused: Option<RefusedSaid>,
    ended: bool,
}

#[derive(Debug, Deserialize)]
struct SubscribedSaid {
    epoch_us: i64,
    series: Vec<SeriesSaid>,
}

#[derive(Debug, Deserialize)]
struct SeriesSaid {
    ordinal: u32,
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct HealthSaid {
    time_us: i64,
    ok: u64,
    late: u64,
    missed: u64,
    error: u64,
    skipped: u64,
    received_us: Option<i64>,
    sent_us: i64,
}

impl HealthSaid {
    fn interval(&self) -> Interval {
        Interval {
            time: instant(self.time_us).as_nanos(),
            ok: self.ok,
            late: self.late,
            missed: self.missed,
            errors: self.error,
            skipped: self.skipped,
            complete_us: self.received_us.map(|at| at.saturating_sub(self.time_us)),
        }
    }
}

/// An instant as servers say it, in µs since the epoch.
fn instant(us: i64) -> WallTime {
    WallTime::from_nanos(us.saturating_mul(1_000))
}

#[derive(Debug, Deserialize)]
struct EventSaid {
    time_us: i64,
    device: Option<String>,
    event: String,
    object: Option<String>,
    text: Option<String>,
    count: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct RefusedSaid {
    error: String,
}

/// Why nothing comes of a table.
#[derive(Debug, thiserror::Error)]
enum WatchError {
    /// The server cannot be reached, or does not begin.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It does not say what the series are.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The connection was lost.
    #[error("the connection was lost")]
    Socket(#[from] Box<Error>),
    /// Nothing was heard of the server for too long.
    #[error("nothing was heard of the server for {SILENCE_MAX}")]
    Silent,
    /// The server does not show this table.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// What comes is not what a server sends.
    #[error("what the server sends of its table `{0}` cannot be understood")]
    Message(&'static str),
    /// Nobody watches any more.
    #[error("nobody watches")]
    Over,
}

impl From<Error> for WatchError {
    fn from(error: Error) -> Self {
        Self::Socket(Box::new(error))
    }
}

impl Watched {
    /// Watches in a thread of its own until nobody wants to know.
    pub(super) fn start(self, tell: SyncSender<News>, is_over: Arc<AtomicBool>) -> io::Result<()> {
        std::thread::Builder::new().name(format!("{CATCHES}{}", self.table)).spawn(move || {
            meikyo_recording::lower_priority();
            while !is_over.load(Ordering::Relaxed) {
                let Err(error) = self.watch(&tell, &is_over) else { return };
                if matches!(error, WatchError::Over)
                    || tell.send(News::Trouble(self.table, Some(in_one_line(&error)))).is_err()
                {
                    return;
                }
                std::thread::park_timeout(RETRY.to_std());
            }
        })?;
        Ok(())
    }

    /// Watches until the connection is lost; it ends well where the recording has ended.
    fn watch(&self, tell: &SyncSender<News>, is_over: &AtomicBool) -> Result<(), WatchError> {
        let path = format!("recordings/{}/live", self.recording);
        let (stream, first) = web_socket(&self.target, &path, &generate_key())?;
        let limited = stream.wait_at_most(LOOK);
        limited.map_err(|error| WatchError::from(Error::Io(error)))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let mut socket = WebSocket::from_partially_read(stream, first, Role::Client, Some(config));
        let every_us = self.every.map(Nanos::as_micros);
        let (table, columns) = (self.table, &self.columns);
        let wish = json!({"subscribe": {"table": table, "columns": columns, "every_us": every_us}});
        socket.send(Message::text(wish.to_string()))?;
        let mut reader = Reader::new(self);
        let mut heard = WallTime::now();
        while !reader.is_over {
            if is_over.load(Ordering::Relaxed) {
                return Err(WatchError::Over);
            }
            match next(&mut socket)? {
                Some(message) => {
                    heard = WallTime::now();
                    for news in reader.take(&message)? {
                        tell.send(news).map_err(|_| WatchError::Over)?;
                    }
                }
                None if WallTime::now().since(heard) > SILENCE_MAX => {
                    return Err(WatchError::Silent);
                }
                None => {}
            }
            if reader.lacks_series() {
                let path = format!("recordings/{}/series?table={table}", self.recording);
                let series: Vec<SeriesSaid> = said(&self.target, &path)?;
                tell.send(reader.learn(series)).map_err(|_| WatchError::Over)?;
            }
        }
        Ok(())
    }
}

/// The next message; `None` when none came for a while.
fn next(socket: &mut WebSocket<Upgraded>) -> Result<Option<Message>, Error> {
    match socket.read() {
        Ok(message) => Ok(Some(message)),
        Err(Error::Io(error))
            if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Turns messages of one socket into news.
struct Reader<'a> {
    watched: &'a Watched,
    columns: Arc<[String]>,
    decoder: StreamDecoder,
    epoch_us: Option<i64>,
    /// How many series are known, and the greatest number among those of which rows came.
    known: usize,
    greatest: Option<u32>,
    /// Series that were asked for and of which the server did not know either.
    missed: Option<u32>,
    is_over: bool,
}

impl<'a> Reader<'a> {
    fn new(watched: &'a Watched) -> Self {
        Self {
            watched,
            columns: watched.columns.clone().into(),
            decoder: StreamDecoder::new(),
            epoch_us: None,
            known: 0,
            greatest: None,
            missed: None,
            is_over: false,
        }
    }

    /// Whether rows came of series of which nothing is known.
    fn lacks_series(&self) -> bool {
        let new = self.greatest.filter(|&series| series as usize >= self.known);
        new.is_some() && new != self.missed
    }

    /// Takes all series of the table.
    fn learn(&mut self, series: Vec<SeriesSaid>) -> News {
        let mut all: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for SeriesSaid { ordinal, mut labels } in series {
            let names = &self.watched.labels;
            let texts = names.iter().map(|name| labels.remove(name).unwrap_or_default());
            all.insert(ordinal as usize, texts.collect());
        }
        // Numbers count up from zero; what a server left out is of no device.
        let count = all.last_key_value().map_or(0, |(last, _)| last + 1).min(2 * all.len());
        self.known = count;
        self.missed = self.greatest;
        News::Series(
            self.watched.table,
            (0..count).map(|number| all.remove(&number).unwrap_or_default()).collect(),
        )
    }

    fn take(&mut self, message: &Message) -> Result<Vec<News>, WatchError> {
        match message {
            Message::Text(text) => {
                let said = serde_json::from_str(text);
                self.hear(said.map_err(|_| self.misunderstood())?)
            }
            Message::Binary(octets) => {
                let rows = self.rows(Buffer::from(octets.to_vec()));
                let rows = rows.ok_or_else(|| self.misunderstood())?;
                let epoch_us = self.epoch_us.ok_or_else(|| self.misunderstood())?;
                let mut news = Vec::new();
                for batch in rows {
                    let frame = self.frame(&batch, epoch_us).ok_or_else(|| self.misunderstood())?;
                    self.greatest = self.greatest.max(frame.series.iter().max().copied());
                    let newest = frame.times.iter().max().copied().unwrap_or_default();
                    news.push(News::Step(Step { newest, frames: vec![frame], ..Step::default() }));
                }
                Ok(news)
            }
            Message::Close(_) => Err(Error::ConnectionClosed.into()),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(Vec::new()),
        }
    }

    fn misunderstood(&self) -> WatchError {
        WatchError::Message(self.watched.table)
    }

    fn hear(&mut self, said: Said) -> Result<Vec<News>, WatchError> {
        if let Some(RefusedSaid { error }) = said.refused {
            return Err(WatchError::Refused(error));
        }
        self.is_over |= said.ended;
        let mut news = Vec::new();
        if let Some(SubscribedSaid { epoch_us, series }) = said.subscribed {
            self.epoch_us = Some(epoch_us);
            news.extend([self.learn(series), News::Trouble(self.watched.table, None)]);
        }
        if self.watched.tells_of_intervals {
            if let Some(health) = said.health {
                news.push(News::Clock(instant(health.sent_us)));
                let intervals = vec![health.interval()];
                let newest = instant(health.time_us).as_nanos();
                news.push(News::Step(Step { newest, intervals, ..Step::default() }));
            }
            if let Some(EventSaid { time_us, device, event, object, text, count }) = said.event {
                let time = instant(time_us).as_nanos();
                let events = vec![Event { time, device, event, object, text, count }];
                news.push(News::Step(Step { newest: time, events, ..Step::default() }));
            }
        }
        Ok(news)
    }

    /// The rows of a message; `None` when it is none. Arrow's decoder panics on some octets that no server sends; it is
    /// not used again then.
    fn rows(&mut self, mut octets: Buffer) -> Option<Vec<RecordBatch>> {
        let mut decode = || {
            let mut rows = Vec::new();
            while !octets.is_empty() {
                rows.extend(self.decoder.decode(&mut octets)?);
            }
            Ok::<_, ArrowError>(rows)
        };
        catch_unwind(AssertUnwindSafe(&mut decode)).ok()?.ok()
    }

    /// Rows as those of a recording; `None` where columns are missing.
    fn frame(&self, batch: &RecordBatch, epoch_us: i64) -> Option<Frame> {
        let time = |&ms: &u32| epoch_us.saturating_add(i64::from(ms) * 1_000).saturating_mul(1_000);
        let reals = |name: &String| Some(column::<Float32Type>(batch, name)?.to_vec());
        Some(Frame {
            table: self.watched.table.into(),
            columns: Arc::clone(&self.columns),
            times: column::<UInt32Type>(batch, "offset_ms")?.iter().map(time).collect(),
            series: column::<UInt32Type>(batch, "series")?.to_vec(),
            values: self.columns.iter().map(reals).collect::<Option<_>>()?,
            states: column::<UInt8Type>(batch, "state")?.to_vec(),
            ages_ms: column::<Float32Type>(batch, "age_ms")?.to_vec(),
        })
    }
}

/// The values of a column; `None` where there is none of that kind, or some are missing.
fn column<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &str,
) -> Option<&'a [T::Native]> {
    let column: &PrimitiveArray<T> = batch.column_by_name(name)?.as_primitive_opt()?;
    (column.null_count() == 0).then_some(&**column.values())
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Float32Array, UInt8Array, UInt32Array};
    use arrow::ipc::writer::StreamWriter;
    use proptest::prelude::*;

    use super::*;

    fn watched() -> Watched {
        Watched {
            target: Target {
                authority: "localhost:1".into(),
                prefix: String::new(),
                roots: None,
                token: None,
            },
            recording: "west".into(),
            table: "load",
            columns: vec!["load_1min".into()],
            labels: vec!["device".into()],
            every: None,
            tells_of_intervals: true,
        }
    }

    /// The schema and a batch of two rows, as a server sends them.
    fn messages() -> [Vec<u8>; 2] {
        let rows = RecordBatch::try_from_iter([
            ("offset_ms", Arc::new(UInt32Array::from(vec![100, 200])) as ArrayRef),
            ("series", Arc::new(UInt32Array::from(vec![0, 2]))),
            ("load_1min", Arc::new(Float32Array::from(vec![0.5, f32::NAN]))),
            ("state", Arc::new(UInt8Array::from(vec![0, 4]))),
            ("age_ms", Arc::new(Float32Array::from(vec![0.0, 3.0]))),
        ])
        .unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema()).unwrap();
        let schema = std::mem::take(writer.get_mut());
        writer.write(&rows).unwrap();
        [schema, std::mem::take(writer.get_mut())]
    }

    fn text(text: &str) -> Message {
        Message::text(text.to_owned())
    }

    const SUBSCRIBED: &str = r#"{"subscribed": {"epoch_us": 1700000000000000, "running": true, "columns": [],
        "series": [{"ordinal": 0, "labels": {"device": "node001"}},
                   {"ordinal": 1, "labels": {"device": "node002"}}]}}"#;

    #[test]
    fn messages_become_rows_with_their_times_and_intervals() {
        let watched = watched();
        let mut reader = Reader::new(&watched);
        let news = reader.take(&text(SUBSCRIBED)).unwrap();
        let [News::Series("load", series), News::Trouble("load", None)] = &news[..] else {
            panic!("{news:?}")
        };
        assert_eq!(*series, [["node001"], ["node002"]]);
        let [schema, rows] = messages();
        assert!(reader.take(&Message::binary(schema)).unwrap().is_empty());
        let news = reader.take(&Message::binary(rows.clone())).unwrap();
        let [News::Step(step)] = &news[..] else { panic!("{news:?}") };
        let frame = &step.frames[0];
        assert_eq!(frame.times, [1_700_000_000_100_000_000, 1_700_000_000_200_000_000]);
        assert_eq!((&frame.series[..], &frame.states[..]), (&[0, 2][..], &[0, 4][..]));
        assert!(frame.values[0][1].is_nan() && step.newest == frame.times[1]);
        // Rows of a third series, which is asked for once.
        assert!(reader.lacks_series());
        let _ = reader.learn(Vec::new());
        assert!(!reader.lacks_series());
        let health = r#"{"health": {"time_us": 1700000000100000, "ok": 2, "late": 1, "missed": 0, "error": 0,
            "skipped": 0, "newest_us": 1700000000100000, "received_us": 1700000000100900, "sent_us": 1700000000200000}}"#;
        let news = reader.take(&text(health)).unwrap();
        let [News::Clock(clock), News::Step(step)] = &news[..] else { panic!("{news:?}") };
        assert_eq!(clock.as_nanos(), 1_700_000_000_200_000_000);
        let interval = step.intervals[0];
        assert_eq!((interval.ok, interval.late, interval.complete_us), (2, 1, Some(900)));
        let refused = reader.take(&text(r#"{"refused": {"error": "no such table"}}"#)).unwrap_err();
        assert_eq!(refused.to_string(), "the server refuses: no such table");
        assert!(reader.take(&text(r#"{"dropped": 3}"#)).unwrap().is_empty());
        assert!(reader.take(&text("3")).is_err() && !reader.is_over);
        assert!(reader.take(&text(r#"{"ended": true}"#)).unwrap().is_empty() && reader.is_over);
    }

    proptest! {
        #[test]
        fn nothing_that_a_server_sends_breaks_it(
            at in any::<prop::sample::Index>(), octet: u8, cut in any::<prop::sample::Index>(),
            said in "\\PC{0,40}",
        ) {
            let watched = watched();
            for which in 0..2 {
                let mut reader = Reader::new(&watched);
                reader.take(&text(SUBSCRIBED)).unwrap();
                let mut sent = messages();
                let at = at.index(sent[which].len());
                sent[which][at] = octet;
                let cut = cut.index(sent[which].len());
                for message in sent {
                    drop(reader.take(&Message::binary(message)));
                }
                drop(reader.take(&Message::binary(messages()[which][..cut].to_vec())));
                drop(reader.take(&text(&said)));
            }
        }
    }
}
