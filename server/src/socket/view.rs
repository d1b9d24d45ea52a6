//! What one viewer sees: how it begins, and what of each step he gets.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket};
use meikyo_live::replay::{self, Replay, SPEED_MAX};
use meikyo_live::{Opened, Queue, Step, Wish, drawable, label_names};
use meikyo_recording::schema::Role;
use meikyo_units::{Nanos, WallTime};
use tokio::time::Instant;

use super::audience::Audience;
use super::encode::Encoder;
use super::encoded::Shape;
use super::messages::{
    EventBody, LiveHealthBody, LiveReply, ReplayRequest, SubscribeRequest, Subscription,
};
use super::pace::Pace;
use crate::errors::ApiError;
use crate::parameters::micros;
use crate::room::Seat;
use crate::state::{Server, Shared};

/// Least span between two messages with rows: what a screen can show.
pub(super) const GAP: Duration = Duration::from_millis(30);
/// Most columns of a view.
const COLUMNS_MAX: usize = 32;
/// Longest span between two messages that a viewer can ask for, µs.
const EVERY_US_MAX: u64 = 3_600_000_000;
/// What offsets of live rows count from is whole hours, so that viewers have messages in common.
const EPOCHS: Nanos = Nanos::from_secs(3_600);

/// What one viewer sees.
pub(super) struct View {
    wish: Wish,
    labels: Vec<(String, Vec<String>)>,
    queue: Arc<Queue>,
    encoder: Encoder,
    /// What his messages have in common with those of others; `None` in a replay, which is his own.
    shape: Option<Arc<Shape>>,
    every: Option<Duration>,
    /// Whether each series is seen, by number; those beyond are looked up when they appear.
    seen: Vec<bool>,
    /// When the next message may be sent, if the line takes it.
    next: Instant,
    pace: Pace,
    /// Whether something had to wait for the line.
    held: bool,
    ended: bool,
    /// Steps that were taken out of the queue and are being sent.
    in_hand: u64,
}

/// The viewer is gone.
pub(super) enum Gone {
    /// He has left, or his connection was lost.
    Left,
    /// He read nothing for too long.
    Unread,
}

/// Waits until there is something to send and it may be sent.
pub(super) async fn ready(view: Option<&mut View>) {
    let Some(view) = view.filter(|view| !view.ended) else { return std::future::pending().await };
    poll_fn(|context| view.queue.poll_arrived(context)).await;
    tokio::time::sleep_until(view.next).await;
    if !view.pace.is_free(Instant::now()) {
        view.held = true;
        // An answer to a ping comes as a message, after which this begins anew.
        std::future::pending::<()>().await;
    }
}

pub(super) async fn subscribe(
    server: &Shared,
    audience: &Arc<Audience>,
    text: &str,
    (seat, view): (&Seat, &mut Option<View>),
    socket: &mut WebSocket,
) -> Result<(), Gone> {
    let begun = match serde_json::from_str::<SubscribeRequest>(text) {
        Ok(request) => {
            let audience = Arc::clone(audience);
            server.blocking(move |_| begin(&audience, request.subscribe)).await
        }
        Err(error) => {
            let text = format!("the request is not understood: {error}");
            Err(ApiError::bad(text, "subscribe"))
        }
    };
    match begun {
        Ok((begun, reply)) => {
            let schema = begun.encoder.schema_message();
            *view = Some(begun);
            seat.prove();
            send(socket, &reply).await?;
            send_message(socket, Message::Binary(schema.into())).await
        }
        Err(error) => send(socket, &LiveReply::refused(&error)).await,
    }
}

/// Begins a view. Blocks while files are read.
fn begin(audience: &Audience, request: Subscription) -> Result<(View, LiveReply), ApiError> {
    let opened = audience.opened();
    let table = opened.table(&request.table)?;
    if request.columns.is_empty() || request.columns.len() > COLUMNS_MAX {
        let text = format!("a view has 1 to {COLUMNS_MAX} columns, not {}", request.columns.len());
        return Err(ApiError::bad(text, "columns"));
    }
    let mut columns = Vec::new();
    for name in &request.columns {
        let column = drawable(&table, name)?;
        let position = table.column(&column.name).expect("it was found by this name");
        if !columns.contains(&position) {
            columns.push(position);
        }
    }
    let known = label_names(&table);
    if let Some(unknown) = request.labels.keys().find(|label| !known.contains(label)) {
        let text = format!("`{unknown}` is no label of the table; labels: {}", known.join(", "));
        return Err(ApiError::bad(text, "labels"));
    }
    if request.every_us.is_some_and(|every| every > EVERY_US_MAX) {
        return Err(ApiError::bad(format!("at most {EVERY_US_MAX} µs"), "every_us"));
    }
    let labels: Vec<_> = request.labels.into_iter().collect();
    if let Some(answers) = opened.table_for(Role::Answers)? {
        opened.with_series(&answers, |_| ())?;
    }
    let chosen = opened.with_series(&table, |series| series.chosen(&labels))?;
    let wish = Wish { table, columns };
    let span = opened.span()?;
    let running = opened.is_running();
    let shared = request.replay.is_none();
    let (queue, epoch) = match request.replay {
        Some(wanted) => {
            let replay = checked(&wanted, wish.clone(), span.now)?;
            let epoch = replay.from.floor(Nanos::SECOND);
            let queue = replay::start(opened, replay);
            (queue.map_err(|error| ApiError::internal(&error))?, epoch)
        }
        // Some rows of late answers are older than the newest ones.
        None => {
            let epoch = span.now.before(Nanos::from_secs(60)).floor(EPOCHS);
            (audience.follower.subscribe(wish.clone()), epoch)
        }
    };
    let encoder = Encoder::new(&wish, epoch);
    let reply = LiveReply::subscribed(opened, &wish, &chosen, micros(epoch), running);
    let every = request.every_us.map(Duration::from_micros);
    let shape = shared.then(|| {
        Arc::new(Shape {
            table: wish.table.name.clone(),
            columns: wish.columns.clone(),
            labels: labels.clone(),
            newest_only: every.is_some(),
            epoch,
        })
    });
    let view = View {
        wish,
        labels,
        queue,
        encoder,
        shape,
        every,
        seen: Vec::new(),
        next: Instant::now(),
        pace: Pace::default(),
        held: false,
        ended: false,
        in_hand: 0,
    };
    Ok((view, reply))
}

fn checked(wanted: &ReplayRequest, wish: Wish, end: WallTime) -> Result<Replay, ApiError> {
    if !(wanted.speed > 0.0 && wanted.speed <= SPEED_MAX) {
        let text = format!("`speed` is above 0 and at most {SPEED_MAX}, not {}", wanted.speed);
        return Err(ApiError::bad(text, "replay"));
    }
    let from = wanted.from_us.checked_mul(1_000).map(WallTime::from_nanos);
    let from = from.filter(|from| *from < end).ok_or_else(|| {
        ApiError::bad("`from_us` is not before the end of the recording", "replay")
    })?;
    Ok(Replay { wish, from, to: end, speed: wanted.speed })
}

impl View {
    /// Whether it shows rows as they come.
    pub(super) fn is_live(&self) -> bool {
        self.shape.is_some()
    }

    /// Steps that the viewer would get if he stayed.
    pub(super) fn unsent(&self) -> u64 {
        let (steps, dropped) = self.queue.drain();
        self.in_hand + dropped + steps.len() as u64
    }

    /// Sends what waits.
    pub(super) async fn forward(
        &mut self,
        server: &Server,
        audience: &Audience,
        socket: &mut WebSocket,
    ) -> Result<(), Gone> {
        let opened = audience.opened();
        let ended = self.queue.has_ended();
        let (steps, mut dropped) = self.queue.drain();
        let events: Vec<_> = steps.iter().flat_map(|step| step.events.clone()).collect();
        // Of what waited for the line only the newest is still news.
        let news = if std::mem::take(&mut self.held) { self.newest_of(&steps) } else { 0 };
        dropped += news as u64;
        let steps = &steps[news..];
        self.in_hand = steps.len() as u64;
        server.counts.lose_steps(dropped);
        if dropped > 0 {
            send(socket, &LiveReply::Dropped(dropped)).await?;
        }
        for event in &events {
            send(socket, &LiveReply::Event(EventBody::new(event))).await?;
        }
        let octets = match self.shape.clone() {
            Some(shape) => audience.messages.shared(&shape, steps, || self.encoded(opened, steps)),
            None => self.encoded(opened, steps).map(Bytes::from),
        };
        if let Some(octets) = octets {
            send_message(socket, Message::Binary(octets)).await?;
        }
        if let Some(interval) = steps.iter().flat_map(|step| &step.intervals).next_back() {
            let newest = steps.last().map_or(interval.time, |step| step.newest);
            let health = LiveHealthBody::new(interval, newest, WallTime::now());
            send(socket, &LiveReply::Health(health)).await?;
        }
        let ping = self.pace.ping(Instant::now());
        send_message(socket, Message::Ping(ping.to_vec().into())).await?;
        self.in_hand = 0;
        self.next = Instant::now() + self.every.unwrap_or(GAP).max(GAP);
        if ended {
            self.ended = true;
            return send(socket, &LiveReply::Ended(true)).await;
        }
        Ok(())
    }

    /// The position of the newest step with rows of the view, or of the last one without.
    fn newest_of(&self, steps: &[Arc<Step>]) -> usize {
        let has_rows = |step: &Arc<Step>| {
            step.frames.iter().any(|frame| *frame.table == *self.wish.table.name)
        };
        steps.iter().rposition(has_rows).unwrap_or_else(|| steps.len().saturating_sub(1))
    }

    /// Takes the answer to a ping.
    pub(super) fn pong(&mut self, said: &[u8]) {
        self.pace.pong(said, Instant::now());
    }

    /// The rows of some steps that are seen, as one message; `None` when there are none.
    fn encoded(&mut self, opened: &Opened, steps: &[Arc<Step>]) -> Option<Vec<u8>> {
        let frames = steps.iter().flat_map(|step| &step.frames);
        let frames: Vec<_> = frames.filter(|frame| *frame.table == *self.wish.table.name).collect();
        let most = frames.iter().flat_map(|frame| &frame.series).max().copied()?;
        if self.seen.len() <= most as usize {
            let chosen =
                opened.with_known_series(&self.wish.table, |series| series.chosen(&self.labels));
            self.seen = vec![false; most as usize + 1];
            for series in chosen.into_iter().filter(|series| *series <= most) {
                self.seen[series as usize] = true;
            }
        }
        let mut rows: Vec<(usize, usize)> = Vec::new();
        for (number, frame) in frames.iter().enumerate() {
            let of_frame = frame.series.iter().enumerate();
            let seen = of_frame.filter(|(_, series)| self.seen[**series as usize]);
            rows.extend(seen.map(|(row, _)| (number, row)));
        }
        if self.every.is_some() {
            let newest: BTreeMap<u32, (usize, usize)> = rows
                .iter()
                .map(|&(frame, row)| (frames[frame].series[row], (frame, row)))
                .collect();
            rows = newest.into_values().collect();
        }
        (!rows.is_empty()).then(|| self.encoder.batch_message(&frames, &rows))
    }
}

pub(super) async fn send(socket: &mut WebSocket, reply: &LiveReply) -> Result<(), Gone> {
    let text = serde_json::to_string(reply).expect("texts and numbers can be written as JSON");
    send_message(socket, Message::Text(text.into())).await
}

pub(super) async fn send_message(socket: &mut WebSocket, message: Message) -> Result<(), Gone> {
    socket.send(message).await.map_err(|error| Gone::by(&error))
}

impl Gone {
    /// What an error of a socket says: the stream below gives up who reads nothing.
    pub(super) fn by(error: &axum::Error) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>();
            if io.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
                return Self::Unread;
            }
            cause = error.source();
        }
        Self::Left
    }
}
