//! Messages in the wire form of protocol buffers, as far as CRIU's RPC and images need it: numbers, texts and messages in
//! messages. <https://protobuf.dev/programming-guides/encoding/>

/// A message that is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const OCTETS: u64 = 2;
const FIXED32: u64 = 5;

/// Groups of seven bits in a number of 64.
const VARINT_BYTES_MAX: usize = 10;

impl Message {
    /// Adds a number; of a signed one its octets.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3 | VARINT);
        self.varint(value);
        self
    }

    /// Adds what is true or not.
    #[must_use]
    pub fn flag(self, field: u32, value: bool) -> Self {
        self.number(field, value.into())
    }

    /// Adds a text.
    #[must_use]
    pub fn text(mut self, field: u32, text: &str) -> Self {
        self.octets(field, text.as_bytes());
        self
    }

    /// Adds a message.
    #[must_use]
    pub fn message(mut self, field: u32, message: &Self) -> Self {
        self.octets(field, &message.0);
        self
    }

    /// What is sent.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn octets(&mut self, field: u32, octets: &[u8]) {
        self.varint(u64::from(field) << 3 | OCTETS);
        self.varint(octets.len() as u64);
        self.0.extend_from_slice(octets);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

/// A field that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of any width.
    Number(u64),
    /// A text or a message.
    Octets(&'a [u8]),
}

/// A message is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of CRIU is damaged")]
pub struct Damaged;

/// The fields of a message with their numbers, in their order.
pub fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields(bytes)
}

/// What is left to be read of a message.
#[derive(Debug, Clone)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Octets that are not read yet.
    pub const fn left(&self) -> usize {
        self.0.len()
    }

    fn varint(&mut self) -> Result<u64, Damaged> {
        let mut value = 0;
        for at in 0..VARINT_BYTES_MAX {
            let (&byte, rest) = self.0.split_first().ok_or(Damaged)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damaged)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], Damaged> {
        let count = usize::try_from(count).map_err(|_| Damaged)?;
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), Damaged> {
        let key = self.varint()?;
        let field = u32::try_from(key >> 3).map_err(|_| Damaged)?;
        let fixed = |octets: &[u8]| {
            octets.iter().rev().fold(0, |value, &octet| value << 8 | u64::from(octet))
        };
        let value = match key & 7 {
            VARINT => Value::Number(self.varint()?),
            FIXED64 => Value::Number(fixed(self.take(8)?)),
            FIXED32 => Value::Number(fixed(self.take(4)?)),
            OCTETS => {
                let count = self.varint()?;
                Value::Octets(self.take(count)?)
            }
            _ => return Err(Damaged),
        };
        Ok((field, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // Nothing behind it can be told apart.
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_written_and_read() {
        // "Encoding": field 1 with 150 is 08 96 01, field 2 with "testing" is 12 07 74 65 73 74 69 6e 67, and field 3 with the
        // first as a message is 1a 03 08 96 01.
        let number = Message::default().number(1, 150);
        assert_eq!(number.bytes(), [0x08, 0x96, 0x01]);
        let text = Message::default().text(2, "testing");
        assert_eq!(text.bytes(), *b"\x12\x07testing");
        let outer = Message::default().message(3, &number);
        assert_eq!(outer.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let read: Vec<_> = fields(outer.bytes()).collect();
        assert_eq!(read, [Ok((3, Value::Octets(number.bytes())))]);
        // -1 as a signed number takes ten octets.
        let minus = Message::default().number(1, (-1_i64).cast_unsigned());
        assert_eq!(minus.bytes().len(), 11);
        assert_eq!(fields(minus.bytes()).next(), Some(Ok((1, Value::Number(u64::MAX)))));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let count = fields(&octets).count();
            prop_assert!(count <= octets.len());
            prop_assert!(fields(&octets).filter(Result::is_err).count() <= 1);
        }

        #[test]
        fn what_is_written_is_read(all in proptest::collection::vec((1_u32..1 << 20, any::<u64>()), 0..20)) {
            let written = all.iter().fold(Message::default(), |message, &(field, value)| message.number(field, value));
            let read: Vec<_> = fields(written.bytes()).collect();
            let expected: Vec<_> = all.iter().map(|&(field, value)| Ok((field, Value::Number(value)))).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
