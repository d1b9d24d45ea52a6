//! Fields of protocol buffers (`protobuf.dev/programming-guides/encoding`), as many kinds as pprof needs.

/// Octets of a message.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A number; 0, which is what is read where there is none, is not written.
    pub(super) fn number(&mut self, field: u64, value: u64) -> &mut Self {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    /// Octets: a text or another message.
    pub(super) fn octets(&mut self, field: u64, octets: &[u8]) -> &mut Self {
        const LENGTH_DELIMITED: u64 = 2;
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(octets.len() as u64);
        self.0.extend_from_slice(octets);
        self
    }

    /// Another message as a field of this one.
    pub(super) fn message(&mut self, field: u64, message: &Self) -> &mut Self {
        self.octets(field, &message.0)
    }

    /// Numbers, packed.
    pub(super) fn numbers(&mut self, field: u64, values: impl Iterator<Item = u64>) -> &mut Self {
        let mut packed = Self::default();
        values.for_each(|value| packed.varint(value));
        self.message(field, &packed)
    }

    pub(super) fn encoded(&self) -> &[u8] {
        &self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).expect("it has seven bits") | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).expect("it is below 128"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specification.
    #[test]
    fn fields_are_encoded_as_the_specification_shows() {
        assert_eq!(Message::default().number(1, 150).encoded(), [0x08, 0x96, 0x01]);
        let testing = [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67];
        assert_eq!(Message::default().octets(2, b"testing").encoded(), testing);
        let mut inner = Message::default();
        inner.number(1, 150);
        assert_eq!(Message::default().message(3, &inner).encoded(), [0x1a, 3, 8, 0x96, 1]);
        let packed = [0x32, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5];
        assert_eq!(Message::default().numbers(6, [3, 270, 86_942].into_iter()).encoded(), packed);
        assert_eq!(Message::default().number(1, 0).encoded(), [0_u8; 0]);
        let greatest = [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(Message::default().number(1, u64::MAX).encoded(), greatest);
    }
}
