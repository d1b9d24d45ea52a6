//! Clusters whose recordings are on this machine: what these say of who sends them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use meikyo_live::health::{self, HealthCache};
use meikyo_live::{Catalog, Opened};
use meikyo_recording::{ReadError, Selection};
use meikyo_server::clusters_below;
use meikyo_transport::gaps::{transport_clocks, transport_gaps, transport_turns};
use meikyo_units::{Nanos, WallTime, in_one_line};

use super::{Cluster, Location, Sender};

/// What counts of the devices: the last so many seconds of a recording.
const LOOK_BACK: Nanos = Nanos::from_secs(10);

/// A sender tells of its clock every 2 s; who has not for so long is not among those that send.
const CLOCKS_BACK: Nanos = Nanos::from_secs(600);

/// Reasons of gaps with which nothing was lost.
const HARMLESS: [&str; 2] = ["ended", "spare"];

/// The recordings of clusters below a directory.
#[derive(Debug)]
pub(in crate::top) struct Local {
    dir: PathBuf,
    catalog: Catalog,
    health: HealthCache,
}

impl Local {
    pub(super) fn new(dir: &Path) -> Self {
        let catalog = Catalog::open(&[]).expect("nothing is opened");
        Self { dir: dir.to_owned(), catalog, health: HealthCache::default() }
    }

    /// What is known of all of them at an instant; an error is for people.
    pub(super) fn look(&mut self, now: WallTime) -> Result<Vec<Cluster>, String> {
        let found = clusters_below(&self.dir).map_err(|error| in_one_line(&error))?;
        for dir in &found {
            self.catalog.add(dir).map_err(|error| in_one_line(&error))?;
        }
        let is_there = |of: &Arc<Opened>| found.iter().any(|dir| dir == of.recording.dir());
        let known = self.catalog.all().into_iter().filter(is_there);
        let mut clusters: Vec<_> = known.map(|opened| self.cluster(&opened, now)).collect();
        clusters.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(clusters)
    }

    fn cluster(&self, opened: &Opened, now: WallTime) -> Cluster {
        let mut cluster = Cluster {
            name: opened.name(),
            location: Some(Location::Here(opened.recording.dir().to_owned())),
            running: opened.is_running(),
            ..Cluster::default()
        };
        if let Err(error) = self.fill(&mut cluster, opened, now) {
            cluster.trouble = Some(in_one_line(&error));
        }
        cluster
    }

    fn fill(&self, cluster: &mut Cluster, opened: &Opened, now: WallTime) -> Result<(), ReadError> {
        cluster.devices = opened.devices()?.into_iter().map(|device| device.name).collect();
        // The tables of the receiver have other times than rows.
        let tables = opened.tables()?;
        let answers = tables.values().filter(|table| !table.name.starts_with("transport_"));
        let mut newest = None;
        for table in answers {
            newest = newest.max(opened.recording.span(&table.name)?.map(|(_, newest)| newest));
        }
        let Some(newest) = newest else { return Ok(()) };
        let span = (newest.before(LOOK_BACK), newest + Nanos::new(1));
        let found = health::read(opened, &self.health, span, 1)?;
        let [ok, late, missed, errors, skipped] = found.totals.states;
        (cluster.ok, cluster.late, cluster.missing) = (ok, late, missed + errors + skipped);
        cluster.silent = found.silent;
        cluster.oldest_value = found.stalest.map(|stalest| stalest.age);
        cluster.senders = senders(opened, now.since(newest))?;
        Ok(())
    }
}

/// Who sends the rows of a cluster, of which the newest is so old by this machine's clock.
fn senders(opened: &Opened, age: Nanos) -> Result<Vec<Sender>, ReadError> {
    let mut senders: BTreeMap<String, Sender> = BTreeMap::new();
    let mut ahead_ns = BTreeMap::new();
    let mut last = None;
    for rows in &scanned(opened, transport_clocks::NAME, Some(CLOCKS_BACK))? {
        let (Some(names), Some(offsets), Some(errors)) = (
            transport_clocks::SENDER.values_in(rows),
            transport_clocks::OFFSET_NS.values_in(rows),
            transport_clocks::ERROR_NS.values_in(rows),
        ) else {
            continue;
        };
        for row in 0..rows.num_rows() {
            let (Some(name), Some(error)) = (names.get(row), errors.get(row)) else { continue };
            let round_trip = Some(Nanos::new(error.saturating_mul(2)));
            let sender = Sender { name: name.to_owned(), round_trip, ..Sender::default() };
            senders.insert(name.to_owned(), sender);
            ahead_ns.insert(name.to_owned(), offsets.get(row).unwrap_or(0));
            last = Some(name.to_owned());
        }
    }
    for rows in &scanned(opened, transport_turns::NAME, None)? {
        let Some(active) = transport_turns::ACTIVE.values_in(rows) else { continue };
        let named = (0..rows.num_rows()).filter_map(|row| active.get(row)).next_back();
        last = named.map(str::to_owned).or(last);
    }
    for rows in &scanned(opened, transport_gaps::NAME, None)? {
        let (Some(names), Some(reasons), Some(counts)) = (
            transport_gaps::SENDER.values_in(rows),
            transport_gaps::REASON.values_in(rows),
            transport_gaps::ROWS.values_in(rows),
        ) else {
            continue;
        };
        for row in 0..rows.num_rows() {
            let is_loss = reasons.get(row).is_some_and(|reason| !HARMLESS.contains(&reason));
            let sender = names.get(row).and_then(|name| senders.get_mut(name));
            if let Some(sender) = sender.filter(|_| is_loss) {
                sender.gaps += 1;
                sender.missing_rows += counts.get(row).unwrap_or(0);
            }
        }
    }
    if let Some(active) = last.and_then(|name| senders.get_mut(&name)) {
        active.active = true;
        // Rows have the sender's times; how far this machine's clock is ahead of it is no age.
        let ahead = ahead_ns.get(&active.name).copied().unwrap_or(0);
        let age = i128::from(age.get()) - i128::from(ahead);
        // Saturates: such an age is that of no row.
        active.lag = Some(Nanos::new(u64::try_from(age.max(0)).unwrap_or(u64::MAX)));
    }
    let mut senders: Vec<_> = senders.into_values().collect();
    senders.sort_by_key(|sender| !sender.active);
    Ok(senders)
}

/// The rows of a table of the receiver's, all of them or the last ones; none where it has no rows.
fn scanned(
    opened: &Opened,
    table: &str,
    back: Option<Nanos>,
) -> Result<Vec<arrow::array::RecordBatch>, ReadError> {
    let Some((_, newest)) = opened.recording.span(table)? else { return Ok(Vec::new()) };
    let from = back.map(|back| newest.before(back));
    let selection = Selection { from, ..Selection::all(table) };
    opened.recording.scan(&selection)?.collect()
}
