//! What actors hand each other over the network, in order.
//!
//! Message libraries over TCP have one connection for each pair of processes: MPICH's `ch_p4` and `ch3` and Open
//! MPI's `btl/tcp` write what they have for another process one after the other. So a message of a few octets, such
//! as the request for data, comes after all data that were handed to its connection before it, however long
//! these take: two ranks that exchange large messages do so one after the other if one of them asks for its data before
//! the other has heard of its own.

use std::collections::{BTreeMap, VecDeque};

/// Sender and receiver.
pub(super) type Pair = (usize, usize);

/// What is handed to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handed<W> {
    /// Says something without data.
    Word(W),
    /// The streams of a message.
    Data(usize),
}

/// The connections on which data are under way.
#[derive(Debug)]
pub(super) struct Connections<W> {
    /// What waits behind them.
    behind: BTreeMap<Pair, VecDeque<Handed<W>>>,
}

impl<W> Default for Connections<W> {
    fn default() -> Self {
        Self { behind: BTreeMap::new() }
    }
}

impl<W> Connections<W> {
    /// Hands something to a connection; gives it back if it is its turn at once.
    pub(super) fn hand(&mut self, pair: Pair, handed: Handed<W>) -> Option<Handed<W>> {
        if let Some(behind) = self.behind.get_mut(&pair) {
            behind.push_back(handed);
            return None;
        }
        if let Handed::Data(_) = handed {
            self.behind.insert(pair, VecDeque::new());
        }
        Some(handed)
    }

    /// The data that are under way on a connection have ended. Gives what is next, up to the next data, which are
    /// under way then.
    pub(super) fn ended(&mut self, pair: Pair) -> Vec<Handed<W>> {
        let behind = self.behind.get_mut(&pair).expect("data are under way");
        let mut turns = Vec::new();
        while let Some(handed) = behind.pop_front() {
            let data = matches!(handed, Handed::Data(_));
            turns.push(handed);
            if data {
                return turns;
            }
        }
        self.behind.remove(&pair);
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_behind_data_that_were_handed_over_before() {
        use Handed::{Data, Word};
        let mut connections = Connections::default();
        assert_eq!(connections.hand((0, 1), Word('a')), Some(Word('a')));
        assert_eq!(connections.hand((0, 1), Data(1)), Some(Data(1)));
        for handed in [Word('b'), Word('c'), Data(2), Word('d')] {
            assert_eq!(connections.hand((0, 1), handed), None);
        }
        // The other direction and other pairs go on.
        assert_eq!(connections.hand((1, 0), Data(3)), Some(Data(3)));
        assert_eq!(connections.hand((0, 2), Word('e')), Some(Word('e')));
        assert_eq!(connections.ended((0, 1)), [Word('b'), Word('c'), Data(2)]);
        assert_eq!(connections.hand((0, 1), Data(4)), None);
        assert_eq!(connections.ended((0, 1)), [Word('d'), Data(4)]);
        assert_eq!(connections.ended((0, 1)), []);
        assert_eq!(connections.hand((0, 1), Data(5)), Some(Data(5)));
    }
}
