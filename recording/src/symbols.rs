//! Texts that stand in many rows, each kept once and named by a number.

use std::collections::BTreeMap;

use crate::batch::Symbol;

/// The texts of one stream by their symbols, which count up from zero in the order in which the
/// texts came.
#[derive(Debug, Default)]
pub struct Symbols {
    by_text: BTreeMap<String, Symbol>,
    fresh: Vec<(Symbol, String)>,
}

impl Symbols {
    /// The symbol of `text`, the same for the same text.
    ///
    /// # Panics
    /// After 2^32 different texts.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.by_text.get(text) {
            return symbol;
        }
        let symbol = Symbol(u32::try_from(self.by_text.len()).expect("fewer than 2^32 symbols"));
        self.by_text.insert(text.into(), symbol);
        self.fresh.push((symbol, text.into()));
        symbol
    }

    /// The symbols that are new since the last call, in their order, with their texts.
    pub fn take_fresh(&mut self) -> Vec<(Symbol, String)> {
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_symbol_and_is_told_once() {
        let mut symbols = Symbols::default();
        let [a, b, again] = ["eth0", "eth1", "eth0"].map(|text| symbols.intern(text));
        assert_eq!((a, b, again), (Symbol(0), Symbol(1), Symbol(0)));
        assert_eq!(symbols.take_fresh(), [(a, "eth0".to_owned()), (b, "eth1".to_owned())]);
        let c = symbols.intern("sda");
        assert_eq!(symbols.take_fresh(), [(c, "sda".to_owned())]);
        assert_eq!(symbols.intern("eth1"), b);
        assert_eq!(symbols.take_fresh(), []);
    }
}
