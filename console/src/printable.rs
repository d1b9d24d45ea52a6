//! Text of others made fit for a terminal: what a device, a file or a person of another machine says
//! may hold characters by which a terminal is steered, or a line made to look like another.
//!
//! Shown as `\u{1b}`, as Rust writes them, are: control characters (C0, DEL, C1), what changes the
//! direction of writing (Unicode Standard Annex 9, "Trojan Source"), characters without a width or
//! without ink, and separators of lines and paragraphs. A backslash stays what it is: who needs the
//! exact text asks for `--json`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character steers the terminal or cannot be seen, so that it must not be printed as it is.
const fn is_unfit(c: char) -> bool {
    matches!(
        c,
        // C0, DEL and C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Directions.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // No width: soft hyphen, joiners, word joiners, marks of byte order and annotation, tags.
        | '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        // A width and no ink.
        | '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
        // Lines and paragraphs.
        | '\u{2028}' | '\u{2029}'
    )
}

/// A text as a part of one line: a line break is shown, too.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false, push_debug)
}

/// Lines of which every part went through [`line()`], or came from ourselves.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n', push_debug)
}

/// A document for programs, such as CSV, on a terminal.
pub fn document(text: &str) -> Cow<'_, str> {
    // A line of CSV ends in both; alone, a carriage return overwrites the line.
    let text =
        if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n")) } else { text.into() };
    match escaped(&text, |c| matches!(c, '\n' | '\t'), push_debug) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => Cow::Owned(escaped),
    }
}

/// A JSON document with every such character written as `\u202e`, which is the same document: JSON
/// has them in texts only (RFC 8259, section 7).
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| c == '\n',
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").expect("writing to a string cannot fail");
            }
        },
    )
}

fn push_debug(out: &mut String, c: char) {
    out.extend(c.escape_default());
}

fn escaped(
    text: &str,
    stays: impl Fn(char) -> bool,
    push: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    let unfit = |c: char| is_unfit(c) && !stays(c);
    let Some(first) = text.find(unfit) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if unfit(c) { push(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_and_not_obeyed() {
        assert_eq!(line("eth0"), "eth0");
        assert_eq!(line("Gi1/0/1 \\ é 端口 µ"), "Gi1/0/1 \\ é 端口 µ");
        assert_eq!(line("\u{1b}]0;x\u{7}\r\n"), r"\u{1b}]0;x\u{7}\r\n");
        assert_eq!(line("a\u{9b}2Jb\u{7f}"), r"a\u{9b}2Jb\u{7f}");
        assert_eq!(line("up\u{202e}nwod\u{2069}"), r"up\u{202e}nwod\u{2069}");
        assert_eq!(line("a\u{200b}b\u{feff}\u{e0041}"), r"a\u{200b}b\u{feff}\u{e0041}");
        assert_eq!(lines("a\nb\tc\u{2028}"), "a\nb\\tc\\u{2028}");
        assert_eq!(document("a,b\r\nc\rd\t\u{1b}\n"), "a,b\nc\\rd\t\\u{1b}\n");
    }

    #[test]
    fn json_stays_the_same_document() {
        let text = "\u{1b}\u{9b}\u{202e}\u{e0041}\u{7f}é\n\"\\";
        let document = serde_json::json!({ "name": text, "of": [text] });
        let written = json(&document.to_string()).into_owned();
        assert!(!written.contains(is_unfit), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), document);
    }

    proptest! {
        /// Every character that Unicode gives the category Cc, or that std calls a control, and every
        /// one of the bidirectional algorithm's formatting characters.
        #[test]
        fn no_text_leaves_a_control_character(text: String, steering: String) {
            let text = format!("{text}\u{1b}[2J{steering}");
            prop_assert!(!line(&text).contains(char::is_control));
            prop_assert!(!lines(&text).contains(|c: char| c.is_control() && c != '\n'));
            prop_assert!(!document(&text).contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
            let own: String = text.chars().filter(|c| !is_unfit(*c)).collect();
            let kept: String = line(&own).into_owned();
            prop_assert_eq!(kept, own);
        }
    }
}
