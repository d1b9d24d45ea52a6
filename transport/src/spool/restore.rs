//! What earlier lives of the sender left in the files.

use std::collections::BTreeMap;
use std::io;

use meikyo_recording::Source;

use super::{
    Entry, FILE_VERSION, FileState, Files, Place, Span, Spool, file_name, file_number, vouched_life,
};
use crate::wire::{
    Gap, Message, Reason, SpoolHead, TIME_UNKNOWN, begins_gap, is_cut_frame, message_at, next_frame,
};

/// What is known of one earlier life.
#[derive(Debug)]
struct Life {
    /// Whether the machine has been up ever since.
    same_machine: bool,
    /// Whether the last file of it ends with octets that are no frames.
    is_torn: bool,
    /// Whether that file ends within a frame, as it does where the sender was killed while it wrote it.
    is_cut: bool,
    /// Whether nothing of it was in memory only.
    is_vouched: bool,
    /// Of each stream, the next number, and the greatest time of what was found.
    next: BTreeMap<String, (u64, Option<i64>)>,
}

impl<F: Files> Spool<F> {
    /// Reads all files; what is to be told to the receiver of them. What is torn is left where it is.
    pub(super) fn restore(&mut self) -> io::Result<Vec<(Source, Gap)>> {
        let Some(files) = &mut self.files else { return Ok(Vec::new()) };
        let names = files.names()?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| file_number(name)).collect();
        numbers.sort_unstable();
        let mut lives: BTreeMap<u64, Life> = BTreeMap::new();
        let mut told = Vec::new();
        for number in numbers {
            self.next_file = self.next_file.max(number + 1);
            self.restore_file(number, &mut lives, &mut told)?;
        }
        self.leave_out_what_gaps_tell();
        for (boot, mut life) in lives {
            life.is_vouched = names.iter().any(|name| vouched_life(name) == Some(boot));
            self.end_life(boot, &life, &mut told);
        }
        Ok(told)
    }

    fn restore_file(
        &mut self,
        number: u64,
        lives: &mut BTreeMap<u64, Life>,
        told: &mut Vec<(Source, Gap)>,
    ) -> io::Result<()> {
        let name = file_name(number);
        let Some(files) = &mut self.files else { return Ok(()) };
        let octets = files.read(&name)?;
        let mut at = 0;
        let boot = match message_at(&octets) {
            Some((Message::SpoolHead(head), length)) => {
                check_version(&name, &head)?;
                at = length;
                let life = lives.entry(head.boot);
                let life = life.or_insert_with(|| Life::of(&head, &self.head.machine));
                for (stream, gap) in life.note_head(&head) {
                    let source = Source { sender: self.sender.clone(), boot: head.boot, stream };
                    told.push((source, gap));
                }
                Some(head.boot)
            }
            // Begun and not finished: nothing was in it.
            _ if next_frame(&octets, 0).is_none() => return files.remove(&name),
            // The head is damaged; what is behind it says itself whose it is.
            _ => None,
        };
        let (bytes, is_broken) = (octets.len() as u64, true);
        let mut state = FileState { number, bytes, needed: 0, is_broken };
        let (mut is_damaged, mut is_cut) = (boot.is_none(), false);
        let mut of_life = boot;
        while at < octets.len() {
            let Some((message, length)) = message_at(&octets[at..]) else {
                let Some(next) = next_frame(&octets, at + 1) else {
                    let rest = &octets[at..];
                    // A life begins with gaps of earlier ones, which are told again. A gap that it tells later may
                    // have numbers that stand nowhere else.
                    let life = of_life.and_then(|boot| lives.get(&boot));
                    let is_own_gap = begins_gap(rest) && life.is_some_and(Life::has_blocks);
                    is_cut = is_cut_frame(rest) && !is_own_gap;
                    is_damaged |= !is_cut;
                    break;
                };
                // Whole frames behind the damage are as good as before it.
                is_damaged = true;
                at = next;
                continue;
            };
            let place = Place::File { file: number, at: at as u64, len: length };
            at += length;
            let Some(entry) = entry_of(message, place, &self.sender) else { continue };
            let of_entry = entry.source.boot;
            if entry.reason.is_none() {
                lives.entry(of_entry).or_insert_with(Life::unknown).is_torn |= is_damaged;
                of_life = Some(of_entry);
            }
            // Numbers of a gap are as good as those of a block, but for what tells that a life was over.
            let life = lives.get_mut(&of_entry).filter(|_| entry.last < u64::MAX);
            let missing = life.and_then(|life| life.note(&entry));
            told.extend(missing.map(|gap| (entry.source.clone(), gap)));
            state.needed += 1;
            self.insert(entry);
        }
        if let Some(life) = of_life.and_then(|boot| lives.get_mut(&boot)) {
            life.is_torn |= is_damaged;
            life.is_cut |= is_cut;
        }
        self.order.push_back(state);
        Ok(())
    }

    /// A sender that was killed while it dropped a file, or joined two gaps, had told of it already.
    fn leave_out_what_gaps_tell(&mut self) {
        let wide = |&ordinal: &u64| {
            let entry = &self.entries[&ordinal];
            (ordinal, entry.source.clone(), entry.first, entry.last)
        };
        let gaps: Vec<_> = self.gaps.iter().map(wide).collect();
        let is_told = |(at, entry): (&u64, &Entry)| {
            gaps.iter().any(|(gap, source, first, last)| {
                // Of two that say the same the later one stays.
                let is_other = gap > at
                    || entry.reason.is_none()
                    || entry.first > *first
                    || entry.last < *last;
                is_other
                    && gap != at
                    && *source == entry.source
                    && *first <= entry.first
                    && entry.last <= *last
            })
        };
        let told: Vec<u64> =
            self.entries.iter().filter(|&of| is_told(of)).map(|(&at, _)| at).collect();
        for ordinal in told {
            self.forget(ordinal);
        }
    }

    /// Tells how a life ended: everything that it numbered beyond what was found is gone.
    fn end_life(&self, boot: u64, life: &Life, told: &mut Vec<(Source, Gap)>) {
        for (stream, &(next, until)) in &life.next {
            let source = Source { sender: self.sender.clone(), boot, stream: stream.clone() };
            let is_told = self.entries.values().any(|entry| {
                entry.source == source && entry.last == u64::MAX && entry.reason.is_some()
            });
            if is_told {
                continue;
            }
            // What was being written when the sender was killed it had not accepted.
            let whole = life.same_machine && life.is_vouched && !life.is_torn;
            let reason = if whole { Reason::Ended } else { Reason::Restarted };
            let gap = Gap {
                boot,
                stream: stream.clone(),
                first: next,
                last: u64::MAX,
                rows: whole.then_some(0),
                from_ns: until.unwrap_or(TIME_UNKNOWN),
                until_ns: until.unwrap_or(TIME_UNKNOWN),
                reason,
            };
            told.push((source, gap));
        }
    }
}

impl Life {
    fn of(head: &SpoolHead, machine: &str) -> Self {
        let same_machine = head.machine == machine;
        let (is_torn, is_cut, is_vouched) = (false, false, false);
        Self { same_machine, is_torn, is_cut, is_vouched, next: BTreeMap::new() }
    }

    /// A life whose files have lost their heads.
    fn unknown() -> Self {
        let (same_machine, is_torn, is_cut, is_vouched) = (false, true, false, false);
        Self { same_machine, is_torn, is_cut, is_vouched, next: BTreeMap::new() }
    }

    /// Whether it numbered any block.
    fn has_blocks(&self) -> bool {
        self.next.values().any(|(next, _)| *next > 1)
    }

    /// Takes the head of the next file; what is missing where the file before it is damaged.
    fn note_head(&mut self, head: &SpoolHead) -> Vec<(String, Gap)> {
        // This life went on after the cut: it was no kill that made it.
        let is_damaged = std::mem::take(&mut self.is_torn) | std::mem::take(&mut self.is_cut);
        let mut missing = Vec::new();
        for (stream, number) in &head.next {
            let known = self.next.entry(stream.clone()).or_insert((*number, None));
            if is_damaged && known.0 < *number {
                let (boot, from_ns) = (head.boot, known.1.unwrap_or(TIME_UNKNOWN));
                let (first, last, reason) = (known.0, number - 1, Reason::SpoolDamaged);
                let (of, rows, until_ns) = (stream.clone(), None, from_ns);
                let gap = Gap { boot, stream: of, first, last, rows, from_ns, until_ns, reason };
                missing.push((stream.clone(), gap));
            }
            known.0 = known.0.max(*number);
        }
        missing
    }

    /// Takes a block or a gap that was found; what is missing before it, behind damage.
    fn note(&mut self, entry: &Entry) -> Option<Gap> {
        let stream = &entry.source.stream;
        let known = self.next.entry(stream.clone()).or_insert((1, None));
        let gap = (self.is_torn && known.0 < entry.first).then(|| Gap {
            boot: entry.source.boot,
            stream: stream.clone(),
            first: known.0,
            last: entry.first - 1,
            rows: None,
            from_ns: known.1.map_or(entry.span.from_ns, |newest| newest.min(entry.span.from_ns)),
            until_ns: entry.span.from_ns,
            reason: Reason::SpoolDamaged,
        });
        known.0 = known.0.max(entry.last + 1);
        known.1 = known.1.max(Some(entry.span.until_ns));
        gap
    }
}

/// Whether this program understands a file.
fn check_version(name: &str, head: &SpoolHead) -> io::Result<()> {
    if head.version <= FILE_VERSION {
        return Ok(());
    }
    let text =
        format!("`{name}` has version {}, and this program reads {FILE_VERSION}", head.version);
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

/// A frame of a file as an entry; `None` for what is nothing of this sender's.
fn entry_of(message: Message, place: Place, sender: &str) -> Option<Entry> {
    let (source, [first, last], span, reason) = match message {
        Message::Block(rows) => {
            let origin = rows.origin()?.clone();
            let (from_ns, until_ns) = rows.times();
            let span = Span { rows: Some(rows.rows() as u64), from_ns, until_ns };
            (origin.source, [origin.first, origin.last], span, None)
        }
        Message::Gap(gap) => {
            let source = Source { sender: sender.into(), boot: gap.boot, stream: gap.stream };
            let span = Span { rows: gap.rows, from_ns: gap.from_ns, until_ns: gap.until_ns };
            (source, [gap.first, gap.last], span, Some(gap.reason))
        }
        _ => return None,
    };
    // It may have been sent: it stays as it is.
    let (accepted, was_sent, refused_reads) = (None, true, 0);
    let entry =
        Entry { source, first, last, span, reason, place, accepted, was_sent, refused_reads };
    (entry.source.sender == sender).then_some(entry)
}
