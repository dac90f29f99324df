//! The beginning of an encoded object, without decoding it: its names, and the annotation [`DATA`].
//!
//! API servers and this crate write objects in one form: without blanks, with apiVersion, kind and metadata first, and annotations as the first
//! field of the metadata. What begins in another way is decoded as a whole, with the same result.

use crate::convert::DATA;

/// What an object has in the place of the annotation until [`with_data`].
const PLACE: &str = r#""cluster.x-k8s.io/conversion-data":"""#;

/// A place in an encoded object.
struct Cursor<'a> {
    object: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Goes over a text, if it is next.
    fn passes(&mut self, text: &str) -> Option<()> {
        self.object
            .get(self.at..)?
            .starts_with(text.as_bytes())
            .then(|| self.at += text.len())
    }

    /// Goes over what is in a string, up to the end of it, and its last quote.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        loop {
            match self.object.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.object.get(start..self.at - 1)
    }

    /// Goes over a string without escapes.
    fn plain(&mut self) -> Option<&'a str> {
        let text = std::str::from_utf8(self.string()?).ok()?;
        (!text.contains('\\')).then_some(text)
    }

    /// Goes over the names that an object begins with.
    fn names(&mut self) -> Option<(&'a str, &'a str)> {
        self.passes(r#"{"apiVersion":""#)?;
        let api_version = self.plain()?;
        self.passes(r#","kind":""#)?;
        Some((api_version, self.plain()?))
    }
}

/// The apiVersion and the kind that an object begins with.
pub(crate) fn names(object: &[u8]) -> Option<(&str, &str)> {
    Cursor { object, at: 0 }.names()
}

/// An object whose annotation was taken out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The text of the annotation.
    pub(crate) data: String,
    /// The object without it.
    pub(crate) rest: Vec<u8>,
}

/// Takes the annotation [`DATA`] out of an object. It is about as long as all the rest, and full of quotes: a decoder takes three times as
/// long for it, and copies it twice.
pub(crate) fn take_data(object: &[u8]) -> Option<Taken> {
    let mut cursor = Cursor { object, at: 0 };
    cursor.names()?;
    cursor.passes(r#","metadata":{"annotations":{"#)?;
    let mut before = cursor.at;
    loop {
        let start = cursor.at;
        cursor.passes("\"")?;
        let is_data = cursor.string()? == DATA.as_bytes();
        cursor.passes(":\"")?;
        if is_data {
            let (data, length) = unescaped(object.get(cursor.at..)?)?;
            cursor.at += length;
            // One of the two commas goes with the entry.
            let (end, after) = match object.get(cursor.at..)? {
                [b',', b'"', ..] => (start, cursor.at + 1),
                [b'}', ..] => (before, cursor.at),
                _ => return None,
            };
            let rest = [object.get(..end)?, object.get(after..)?].concat();
            return Some(Taken { data, rest });
        }
        cursor.string()?;
        before = cursor.at;
        cursor.passes(",")?;
    }
}

/// The value of a string up to its last quote, and the length of its encoding with that quote. `None` for what only decoders know: other
/// escapes than those of quotes and backslashes, and errors.
fn unescaped(encoded: &[u8]) -> Option<(String, usize)> {
    let mut value = Vec::with_capacity(encoded.len());
    // What is before `start` is in the value. What is before `next` is looked at.
    let (mut start, mut next) = (0, 0);
    for (number, block) in encoded.chunks(BLOCK).enumerate() {
        let mut marks = marks(block);
        while let Some(at) = lowest(&mut marks) {
            let at = number * BLOCK + at;
            if at < next {
                continue;
            }
            value.extend_from_slice(encoded.get(start..at)?);
            match encoded.get(at..)? {
                [b'"', ..] => return Some((String::from_utf8(value).ok()?, at + 1)),
                [b'\\', b'"' | b'\\', ..] => (start, next) = (at + 1, at + 2),
                _ => return None,
            }
        }
    }
    None
}

/// An encoded object that has the empty annotation [`DATA`] with a text in it, which is encoded JSON. `None` if it has no such annotation.
pub(crate) fn with_data(object: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    // No text before it can have the same bytes: the quotes of texts are escaped.
    let at = object
        .windows(PLACE.len())
        .position(|bytes| bytes == PLACE.as_bytes())?;
    let (before, after) = object.split_at(at + PLACE.len() - 1);
    let mut out = Vec::with_capacity(object.len() + data.len() + data.len() / 4);
    out.extend_from_slice(before);
    let mut start = 0;
    for (number, block) in data.chunks(BLOCK).enumerate() {
        let mut marks = marks(block);
        while let Some(at) = lowest(&mut marks) {
            let at = number * BLOCK + at;
            out.extend_from_slice(data.get(start..at)?);
            out.push(b'\\');
            start = at;
        }
    }
    out.extend_from_slice(data.get(start..)?);
    out.extend_from_slice(after);
    Some(out)
}

/// Bytes that are looked at together: as many as a number has bits.
const BLOCK: usize = 64;

/// The quotes, backslashes and control characters of a block, as bits: all that is not itself in an encoded string. Every tenth byte of an
/// encoded object is a quote, so a branch for each byte takes four times as long.
fn marks(block: &[u8]) -> u64 {
    /// A product with it has the lowest bits of eight bytes in its highest byte.
    const TOGETHER: u64 = 0x0102_0408_1020_4080;
    let mut flags = [0_u8; BLOCK];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(matches!(byte, b'"' | b'\\' | ..b' '));
    }
    let (words, _) = flags.as_chunks::<8>();
    let bits = |word: &[u8; 8]| u64::from_le_bytes(*word).wrapping_mul(TOGETHER) >> 56;
    words.iter().rev().fold(0, |marks, word| marks << 8 | bits(word))
}

/// Takes the lowest bit off a number, and says which one it was.
fn lowest(marks: &mut u64) -> Option<usize> {
    let rest = *marks & marks.checked_sub(1)?;
    let at = marks.trailing_zeros();
    *marks = rest;
    usize::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::{Value, json};

    use super::*;

    /// An object with annotations, in the form of API servers.
    fn object(annotations: &Value) -> String {
        format!(
            r#"{{"apiVersion":"g.io/v1","kind":"A","metadata":{{"annotations":{annotations},"name":"n"}},"spec":{{"a":"}}\""}}}}"#
        )
    }

    #[test]
    fn names_are_read_where_objects_begin() {
        let check =
            |object: &str, expect: Option<(&str, &str)>| assert_eq!(names(object.as_bytes()), expect, "{object}");
        check(r#"{"apiVersion":"g.io/v1","kind":"A"}"#, Some(("g.io/v1", "A")));
        check(r#"{"apiVersion":"g.io/v1","kind":"A"#, None);
        check(r#"{"apiVersion":"g.io\/v1","kind":"A"}"#, None);
        check(r#"{"apiVersion": "g.io/v1","kind":"A"}"#, None);
        check(r#"{"kind":"A","apiVersion":"g.io/v1"}"#, None);
        check("", None);
    }

    #[test]
    fn the_annotation_is_put_in_and_taken_out() {
        let mut long = String::new();
        for number in 0..200 {
            write!(long, r#"{{"a{number}":"\"\\{}é\u0001"}},"#, "x".repeat(number)).unwrap();
        }
        for data in ["", "{}", r#"{"a":"\n\\"}"#, r#""\\\\""#, long.as_str()] {
            for others in [
                json!({}),
                json!({"a": "\"\\"}),
                json!({"z": "1"}),
                json!({"a": DATA, "z": "\n"}),
            ] {
                let with = |data: &str| {
                    let mut all = others.clone();
                    all[DATA] = data.into();
                    object(&all)
                };
                assert_eq!(
                    with_data(with("").as_bytes(), data.as_bytes()).unwrap(),
                    with(data).as_bytes()
                );
                let taken = take_data(with(data).as_bytes()).unwrap();
                assert_eq!((taken.data.as_str(), taken.rest), (data, object(&others).into_bytes()));
            }
        }
        assert_eq!(with_data(object(&json!({"a": DATA})).as_bytes(), b"{}"), None);
    }

    #[test]
    fn what_only_decoders_know_is_left_to_them() {
        let check = |entries: &str| {
            let object = object(&json!({})).replace(r#""annotations":{}"#, &format!(r#""annotations":{{{entries}}}"#));
            assert_eq!(take_data(object.as_bytes()), None, "{object}");
        };
        check("");
        check(r#""a":"b""#);
        check(r#" "cluster.x-k8s.io/conversion-data":"{}""#);
        check(r#""cluster.x-k8s.io/conversion-data":null"#);
        check(r#""cluster.x-k8s.io/conversion-data":"\u007b}""#);
        check("\"cluster.x-k8s.io/conversion-data\":\"\n\"");
        check(r#""cluster.x-k8s.io/conversion-data":"{}","#);
        check(r#""cluster.x-k8s.io/conversion-data":"{}" "#);
        check(r#""a":1,"cluster.x-k8s.io/conversion-data":"{}""#);
        let whole = object(&json!({DATA: "{\"a\":1}"}));
        for end in 0..whole.find("\"name\"").unwrap() - 2 {
            assert_eq!(take_data(&whole.as_bytes()[..end]), None, "{}", &whole[..end]);
        }
    }
}
