//! The texts of the symbols of one segment.
//!
//! Frames of symbols number their texts from 0 on. Texts of packed rows have no number in the
//! segment: the reader gives them numbers of its own, which lie beyond all that frames can name.

use std::collections::{BTreeMap, BTreeSet};

/// The number of the first text of packed rows; frames of symbols have 32 bits for theirs.
const PACKED: u64 = 1 << 32;

/// Symbols that lost frames before one of symbols may have defined; a number beyond that is not
/// believed, so that no octets ask for more memory than they justify.
const LOST_MAX: usize = 1 << 20;

/// Octets of the texts of packed rows that a reader remembers of one segment.
const PACKED_OCTETS_MAX: usize = 1 << 28;

/// What a text costs beside its octets.
const TEXT_COST: usize = 64;

/// The texts of the symbols of a segment, as far as it was read.
#[derive(Debug, Default)]
pub struct Symbols {
    /// By number; `None` where damage took a text.
    of_log: Vec<Option<String>>,
    packed: Vec<String>,
    numbers: BTreeMap<String, u64>,
    octets: usize,
}

impl Symbols {
    /// The text of a symbol; `None` where damage took it.
    pub fn text(&self, number: u64) -> Option<&str> {
        if let Some(of_packed) = number.checked_sub(PACKED) {
            return self.packed.get(usize::try_from(of_packed).ok()?).map(String::as_str);
        }
        self.of_log.get(usize::try_from(number).ok()?)?.as_deref()
    }

    /// The texts that frames of symbols define, by number.
    pub(crate) fn of_log(&self) -> &[Option<String>] {
        &self.of_log
    }

    /// Takes the texts of a frame of symbols, the first of which has the number `first`; `None` when
    /// it cannot be that number. A writer numbers texts one after another, so the number must be the
    /// next one; it may be a later one where frames before this one `may_lack`.
    pub(crate) fn define(
        &mut self,
        first: usize,
        texts: Vec<String>,
        may_lack: bool,
    ) -> Option<()> {
        let lost = first.checked_sub(self.of_log.len())?;
        if lost > 0 && !may_lack || lost > LOST_MAX {
            return None;
        }
        self.of_log.resize(first, None);
        self.of_log.extend(texts.into_iter().map(Some));
        Some(())
    }

    /// Passes over the numbers of a frame of `count` symbols whose texts cannot be told, so that what
    /// is numbered behind them keeps its names.
    pub(crate) fn lose(&mut self, count: usize) {
        self.of_log.resize(self.of_log.len() + count.min(LOST_MAX), None);
    }

    /// The number of a text of packed rows; `None` when they have more texts than are remembered.
    pub(crate) fn intern(&mut self, text: &str) -> Option<u64> {
        if let Some(&number) = self.numbers.get(text) {
            return Some(number);
        }
        self.octets = self.octets.saturating_add(text.len() + TEXT_COST);
        if self.octets > PACKED_OCTETS_MAX {
            return None;
        }
        let number = PACKED + u64::try_from(self.packed.len()).ok()?;
        self.numbers.insert(text.to_owned(), number);
        self.packed.push(text.to_owned());
        Some(number)
    }

    /// The ranks of the texts that are known by now.
    pub(crate) fn ranks(&self) -> Ranks<'_> {
        let texts: BTreeSet<_> = self.of_log.iter().flatten().chain(&self.packed).collect();
        let texts: Vec<_> = texts.into_iter().map(String::as_str).collect();
        let rank = |text: &str| texts.binary_search(&text).ok();
        let of_log = self.of_log.iter().map(|text| rank(text.as_deref()?)).collect();
        let packed = self.packed.iter().map(|text| rank(text)).collect();
        Ranks { of_log, packed, texts }
    }
}

/// Texts in their order, and the place of each symbol's among them: a text that several numbers
/// name has one place.
#[derive(Debug)]
pub(crate) struct Ranks<'a> {
    of_log: Vec<Option<usize>>,
    packed: Vec<Option<usize>>,
    /// The texts in their order, each once.
    pub(crate) texts: Vec<&'a str>,
}

impl Ranks<'_> {
    /// The place of a symbol's text; `None` where damage took it.
    pub(crate) fn rank_of(&self, number: u64) -> Option<usize> {
        let (ranks, at) = match number.checked_sub(PACKED) {
            Some(at) => (&self.packed, at),
            None => (&self.of_log, number),
        };
        *ranks.get(usize::try_from(at).ok()?)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_both_kinds_have_numbers_that_never_meet() {
        let mut symbols = Symbols::default();
        let packed = symbols.intern("eth1").unwrap();
        symbols.define(0, vec!["eth0".into(), "eth1".into()], false).unwrap();
        assert_eq!(symbols.define(3, vec!["a".into()], false), None, "no frame is missing");
        assert_eq!(symbols.define(1, vec!["a".into()], true), None, "the number has a text");
        symbols.define(3, vec!["a".into()], true).unwrap();
        assert_eq!(symbols.intern("eth1"), Some(packed));
        let found = [0, 1, 2, 3, 4, packed, packed + 1].map(|number| symbols.text(number));
        let eth1 = Some("eth1");
        assert_eq!(found, [Some("eth0"), eth1, None, Some("a"), None, eth1, None]);
        let ranks = symbols.ranks();
        assert_eq!(ranks.texts, ["a", "eth0", "eth1"]);
        assert_eq!([0, 1, 2, 3, packed].map(|number| ranks.rank_of(number)), {
            [Some(1), Some(2), None, Some(0), Some(2)]
        });
        assert_eq!(symbols.define(1 << 30, Vec::new(), true), None);
        symbols.lose(2);
        symbols.define(6, vec!["b".into()], false).unwrap();
        assert_eq!([4, 5, 6].map(|number| symbols.text(number)), [None, None, Some("b")]);
    }
}
