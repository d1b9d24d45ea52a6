//! Which channels wait for which when pause frames stop them (IEEE 802.3x), and circles of them.
//!
//! A channel waits for another one if frames between hosts go on from it into the other. What goes to a
//! host is always taken, so only channels between switches count; and only those with pause frames at
//! both ends wait, the others drop.

use super::channels::Channels;
use super::fault::Fault;
use super::report::Findings;

/// Which channels wait for room in which others.
#[derive(Debug)]
pub(super) struct Waits {
    /// For each channel the number of channels that leave the same switch before it.
    rank: Vec<usize>,
    /// For each switch the channels that leave it.
    leaving: Vec<Vec<usize>>,
    /// Where the followers of each channel begin in `vlans`.
    begin: Vec<usize>,
    /// For each channel and each that can follow it: one more than the place of a VLAN in which frames
    /// do; 0 if none do.
    vlans: Vec<u16>,
}

impl Waits {
    pub(super) fn new(channels: &Channels) -> Self {
        let mut leaving = vec![Vec::new(); channels.switches];
        let mut rank = Vec::with_capacity(channels.all.len());
        for (place, channel) in channels.all.iter().enumerate() {
            rank.push(leaving[channel.from].len());
            leaving[channel.from].push(place);
        }
        let mut begin = Vec::with_capacity(channels.all.len());
        let mut end = 0;
        for channel in &channels.all {
            begin.push(end);
            end += leaving[channel.to].len();
        }
        Self { rank, leaving, begin, vlans: vec![0; end] }
    }

    /// Frames go on from a channel into another one in this VLAN.
    pub(super) fn add(&mut self, channel: u32, next: u32, vlan: usize) {
        let at = self.begin[channel as usize] + self.rank[next as usize];
        self.vlans[at] = u16::try_from(vlan + 1).expect("there are 4,094 VLANs");
    }

    /// Notes a circle; false if there is one.
    pub(super) fn check(&self, channels: &Channels, findings: &mut Findings) -> bool {
        let circle = self.circle(channels);
        let is_free = circle.is_none();
        if let Some(circle) = circle {
            let circle = circle.into_iter().map(|(channel, vlan)| {
                let vlan = channels.vlans[usize::from(vlan) - 1];
                (super::channels::switch_id(channels.all[channel].to), vlan)
            });
            findings.note(|| Fault::Waiting { circle: circle.collect() });
        }
        is_free
    }

    /// Each channel of a circle, with the VLAN in which frames go on from it to the next.
    fn circle(&self, channels: &Channels) -> Option<Vec<(usize, u16)>> {
        let count = channels.all.len();
        // 0: not seen; 1: on the way; 2: leads into no circle.
        let mut seen = vec![0_u8; count];
        let mut stack: Vec<(usize, usize)> = Vec::new();
        for start in (0..count).filter(|&channel| channels.all[channel].pauses) {
            if seen[start] == 0 {
                seen[start] = 1;
                stack.push((start, 0));
            }
            while let Some((channel, rank)) = stack.last_mut() {
                let (from, at) = (*channel, *rank);
                let Some(&next) = self.leaving[channels.all[from].to].get(at) else {
                    seen[from] = 2;
                    stack.pop();
                    continue;
                };
                *rank += 1;
                let goes_on = self.vlans[self.begin[from] + at] != 0;
                if !goes_on || !channels.all[next].pauses || seen[next] == 2 {
                    continue;
                }
                if seen[next] == 1 {
                    let first = stack.iter().position(|&(channel, _)| channel == next)?;
                    let vlan = |&(channel, rank): &(usize, usize)| {
                        (channel, self.vlans[self.begin[channel] + rank - 1])
                    };
                    return Some(stack[first..].iter().map(vlan).collect());
                }
                seen[next] = 1;
                stack.push((next, 0));
            }
        }
        None
    }
}
