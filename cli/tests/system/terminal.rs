//! A terminal as far as tests need one: what was written to it, as the person sees it.
//!
//! Programs write only what changed, between moves of the cursor, so that words come in pieces.

/// The cells of a terminal, and all that was written to it.
#[derive(Debug)]
pub(crate) struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Everything, control sequences included.
    pub(crate) written: String,
    /// What is not yet a whole sequence.
    rest: String,
}

impl Screen {
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        let rows = vec![vec![' '; columns]; rows];
        Self { rows, row: 0, column: 0, written: String::new(), rest: String::new() }
    }

    /// Takes what was written.
    pub(crate) fn write(&mut self, text: &str) {
        self.written.push_str(text);
        self.rest.push_str(text);
        let text = std::mem::take(&mut self.rest);
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if c != '\u{1b}' {
                self.put(c);
                at += c.len_utf8();
                continue;
            }
            let Some(length) = self.control(&text[at..]) else { break };
            at += length;
        }
        self.rest = text[at..].to_owned();
    }

    fn put(&mut self, c: char) {
        match c {
            '\r' => self.column = 0,
            '\n' => self.row = (self.row + 1).min(self.rows.len() - 1),
            c => {
                if let Some(cell) = self.rows[self.row].get_mut(self.column) {
                    *cell = c;
                }
                self.column += 1;
            }
        }
    }

    /// Does what a control sequence says; its length, or `None` while it is not whole.
    fn control(&mut self, text: &str) -> Option<usize> {
        if text.len() < 2 {
            return None;
        }
        if !text.starts_with("\u{1b}[") {
            return Some(2);
        }
        let end = text[2..].find(|c: char| c.is_ascii_alphabetic())? + 2;
        let parameters: Vec<usize> =
            text[2..end].split(';').map(|text| text.parse().unwrap_or(1)).collect();
        match &text[end..=end] {
            "H" => {
                let of = |at: usize| parameters.get(at).copied().unwrap_or(1).max(1) - 1;
                self.row = of(0).min(self.rows.len() - 1);
                self.column = of(1);
            }
            "J" => self.rows.iter_mut().flatten().for_each(|cell| *cell = ' '),
            _ => {}
        }
        Some(end + 1)
    }

    /// What is seen, line by line.
    pub(crate) fn text(&self) -> String {
        let line = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned() + "\n";
        self.rows.iter().map(line).collect()
    }
}

#[test]
fn words_that_come_in_pieces_are_read_whole() {
    let mut screen = Screen::new(2, 12);
    for piece in ["\u{1b}[2", "J\u{1b}[1;1Hpaused\u{1b}[2;3H\u{1b}[38;5;66mxyz", "\u{1b}[1;7Hd"] {
        screen.write(piece);
    }
    assert_eq!(screen.text(), "pausedd\n  xyz\n");
}
