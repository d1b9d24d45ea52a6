//! Messages with rows, made once for all viewers who see the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::body::Bytes;
use meikyo_live::Step;
use meikyo_units::WallTime;

/// Most messages that are remembered; each is forgotten when nobody has its steps any more.
const REMEMBERED_MAX: usize = 8;

/// What a message depends on besides its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) table: String,
    /// Positions of the columns, in the viewer's order.
    pub(super) columns: Vec<usize>,
    pub(super) labels: Vec<(String, Vec<String>)>,
    /// Whether only the newest row of each series is in it.
    pub(super) newest_only: bool,
    pub(super) epoch: WallTime,
}

/// The newest messages of a recording that is followed.
#[derive(Debug, Default)]
pub(crate) struct SharedMessages {
    made: Mutex<VecDeque<Made>>,
}

#[derive(Debug)]
struct Made {
    shape: Arc<Shape>,
    /// Held weakly, so that their addresses are nobody else's while this is remembered.
    steps: Vec<Weak<Step>>,
    octets: Option<Bytes>,
}

impl Made {
    fn is_of(&self, shape: &Shape, steps: &[Arc<Step>]) -> bool {
        let same = |(made, step): (&Weak<Step>, &Arc<Step>)| made.as_ptr() == Arc::as_ptr(step);
        self.steps.len() == steps.len()
            && self.steps.iter().zip(steps).all(same)
            && *self.shape == *shape
    }
}

impl SharedMessages {
    /// The message of some steps, by `make` when nobody has needed it yet. Who needs the same at
    /// the same time waits for it.
    pub(super) fn shared(
        &self,
        shape: &Arc<Shape>,
        steps: &[Arc<Step>],
        make: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Bytes> {
        // What is remembered is whole also after a panic in `make`: it is added behind it.
        let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = all.iter().find(|made| made.is_of(shape, steps)) {
            return made.octets.clone();
        }
        let octets = make().map(Bytes::from);
        all.retain(|made| made.steps.iter().any(|step| step.strong_count() > 0));
        if all.len() == REMEMBERED_MAX {
            all.pop_front();
        }
        let steps = steps.iter().map(Arc::downgrade).collect();
        all.push_back(Made { shape: Arc::clone(shape), steps, octets: octets.clone() });
        octets
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn shape(labels: &[(&str, &str)]) -> Arc<Shape> {
        let labels = labels.iter().map(|&(label, text)| (label.into(), vec![text.into()]));
        Arc::new(Shape {
            table: "load".into(),
            columns: vec![3],
            labels: labels.collect(),
            newest_only: false,
            epoch: WallTime::from_nanos(0),
        })
    }

    #[test]
    fn ten_viewers_who_see_the_same_share_one_encoding() {
        let messages = SharedMessages::default();
        let made = Cell::new(0_u8);
        let make = || {
            made.set(made.get() + 1);
            Some(vec![made.get()])
        };
        let (first, second) = (Arc::new(Step::default()), Arc::new(Step::default()));
        for _ in 0..10 {
            let octets = messages.shared(&shape(&[]), &[Arc::clone(&first)], make);
            assert_eq!(octets.as_deref(), Some([1].as_slice()));
        }
        // Other steps that are equal, several steps, and another view are other messages.
        assert_eq!(messages.shared(&shape(&[]), &[Arc::clone(&second)], make).unwrap()[..], [2]);
        let both = [Arc::clone(&first), Arc::clone(&second)];
        assert_eq!(messages.shared(&shape(&[]), &both, make).unwrap()[..], [3]);
        let of_node = shape(&[("device", "node1")]);
        assert_eq!(messages.shared(&of_node, &[Arc::clone(&first)], make).unwrap()[..], [4]);
        assert_eq!(messages.shared(&shape(&[]), &[first], make).unwrap()[..], [1]);
        assert_eq!(made.get(), 4);
    }

    #[test]
    fn what_nobody_waits_for_is_forgotten_and_the_rest_is_bounded() {
        let messages = SharedMessages::default();
        let remembered = || messages.made.lock().unwrap().len();
        for _ in 0..3 {
            messages.shared(&shape(&[]), &[Arc::new(Step::default())], || None);
        }
        assert_eq!(remembered(), 1);
        let waiting: Vec<_> = (0..100).map(|_| Arc::new(Step::default())).collect();
        for step in &waiting {
            messages.shared(&shape(&[]), std::slice::from_ref(step), || None);
        }
        assert_eq!(remembered(), REMEMBERED_MAX);
    }
}
