//! Digests of values and of desired states: they can be compared without keeping the data.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// A digest: equal for equal data, and without a way back to the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; 16]);

/// Takes in what a digest is of.
#[derive(Clone, Default)]
pub(super) struct Digester(Sha256);

impl Digester {
    /// Takes in a part; parts do not run into each other.
    pub(super) fn part(mut self, bytes: &[u8]) -> Self {
        self.bytes(bytes);
        self
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0
            .update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.0.update(bytes);
    }

    /// The digest.
    pub(super) fn done(self) -> Digest {
        let whole = self.0.finalize();
        let mut digest = Digest::default();
        for (to, from) in digest.0.iter_mut().zip(whole.iter()) {
            *to = *from;
        }
        digest
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.0.update(b"0"),
            Value::Bool(value) => self.0.update(if *value { b"t" } else { b"f" }),
            // Helm keeps numbers as floats on the way.
            Value::Number(number) => {
                self.0.update(b"n");
                let float = number.as_f64().unwrap_or_default();
                // There are two zeros.
                self.0.update((float + 0.0).to_bits().to_be_bytes());
            }
            Value::String(text) => {
                self.0.update(b"s");
                self.bytes(text.as_bytes());
            }
            Value::Array(items) => {
                self.0.update(b"[");
                for item in items {
                    self.value(item);
                }
                self.0.update(b"]");
            }
            Value::Object(fields) => self.fields(fields),
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>) {
        let mut sorted: Vec<_> = fields.iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        self.0.update(b"{");
        for (name, value) in sorted {
            self.0.update(b"k");
            self.bytes(name.as_bytes());
            self.value(value);
        }
        self.0.update(b"}");
    }
}

impl Digest {
    /// Of values. Order of keys does not count, nor how a number is written.
    pub(super) fn of_values(values: &Map<String, Value>) -> Self {
        let mut digester = Digester::default();
        digester.fields(values);
        digester.done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_helm::values::{parse, same};

    // AD-089, AD-096
    #[test]
    fn digests_differ_exactly_when_the_data_differ() {
        let texts = [
            "",
            "{a: 1}",
            "{a: 1.0}",
            "{a: '1'}",
            "{a: 1, b: null}",
            "{b: null, a: 1}",
            "{a: [1, 2]}",
            "{a: [2, 1]}",
            "{a: [[1], 2]}",
            "{a: [[1, 2]]}",
            "{a: {b: 1}}",
            "{a: {b: 1}, c: {}}",
            "{a: {b: 1, c: {}}}",
            "{a: -0.0}",
            "{a: 0}",
            "{n: 12345678901234567890}",
            "{n: 12345678901234567000}",
            "{a: true}",
            "{a: ''}",
            "{'a{': b}",
        ];
        let all: Vec<_> = texts.iter().map(|text| parse(text).unwrap()).collect();
        for one in &all {
            for other in &all {
                let equal = Digest::of_values(one) == Digest::of_values(other);
                assert_eq!(equal, same(one, other), "{one:?} {other:?}");
            }
        }
    }
}
