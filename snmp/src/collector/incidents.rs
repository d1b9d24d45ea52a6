//! Incidents of the recording on their way into the recording itself: a disk that refuses rows
//! refuses also the row that says so, so they wait until rows are kept again.

use std::collections::VecDeque;

use meikyo_recording::Incident;

/// Incidents that wait at most; of more the oldest are not written down. They were told.
const WAITING_MAX: usize = 1_000;

/// Incidents that are not written down yet, oldest first, with the rows that were kept when they
/// were heard of.
#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<(Incident, u64)>);

impl Waiting {
    /// An incident that was heard of when `kept` rows were kept.
    pub(super) fn push(&mut self, incident: Incident, kept: u64) {
        if self.0.len() >= WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back((incident, kept));
    }

    /// The incidents since which rows were kept, now that `kept` of them are.
    pub(super) fn take_ready(&mut self, kept: u64) -> impl Iterator<Item = Incident> + use<> {
        let ready = self.0.iter().take_while(|(_, before)| *before < kept).count();
        self.0.drain(..ready).map(|(incident, _)| incident).collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use meikyo_recording::IncidentKind;
    use meikyo_units::WallTime;

    use super::*;

    #[test]
    fn an_incident_waits_until_rows_are_kept_again() {
        let at = WallTime::from_nanos(7);
        let text = "cannot write".to_owned();
        let incident = Incident { at, kind: IncidentKind::DiskRefused, rows: 5, text };
        let mut waiting = Waiting::default();
        waiting.push(incident.clone(), 40);
        assert_eq!(waiting.take_ready(40).count(), 0);
        assert_eq!(waiting.take_ready(41).collect::<Vec<_>>(), [incident]);
        assert_eq!(waiting.take_ready(u64::MAX).count(), 0);
    }
}
