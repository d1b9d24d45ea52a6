//! Perf maps: what a compiler at run time writes about the functions that it makes.
//!
//! A line is begin and length in hexadecimal and a name (`tools/perf/Documentation/jit-interface.txt`
//! of Linux).

/// A function that was made at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeFunction<'a> {
    /// Where it begins.
    pub address: u64,
    /// How far it goes, in octets.
    pub size: u64,
    /// What the compiler calls the function.
    pub name: &'a str,
}

/// The function in a line; `None` where it has none.
pub fn parse(line: &str) -> Option<MadeFunction<'_>> {
    let mut words = line.splitn(3, ' ');
    let mut number = || {
        let word = words.next()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (address, size) = (number()?, number()?);
    let name = words.next()?.trim();
    (!name.is_empty()).then_some(MadeFunction { address, size, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_begin_length_and_a_name_that_may_have_spaces() {
        let found = parse("7f3c8a001000 1c8 py::<module>:/a b/x.py").unwrap();
        assert_eq!((found.address, found.size), (0x7f3c_8a00_1000, 0x1c8));
        assert_eq!(found.name, "py::<module>:/a b/x.py");
        assert_eq!(parse("0x10 0x20 f").map(|found| found.size), Some(0x20));
        assert_eq!([parse("10 20"), parse("10 20 "), parse("x 20 f")], [None, None, None]);
    }
}
