//! Errors as one line of text.

use std::error::Error;

/// An error with its causes in one line, each behind a colon.
pub fn in_one_line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Self>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|inner| inner as _)
        }
    }

    #[test]
    fn all_causes_are_named_in_their_order() {
        let inner = Layer("no such file", None);
        let middle = Layer("cannot open `x`", Some(Box::new(inner)));
        let outer = Layer("cannot begin", Some(Box::new(middle)));
        assert_eq!(in_one_line(&outer), "cannot begin: cannot open `x`: no such file");
    }
}
