//! Cuts a stream of bytes into JSON documents. Servers end the events of a watch with a line feed, and some also put line feeds
//! into events. So braces mark where a document ends.

use bytes::{Bytes, BytesMut};

/// The most bytes of a document. API servers accept objects of some MiB at most.
pub(crate) const LONGEST: usize = 16 << 20;

/// The part of a stream that has not been cut yet.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    buffer: BytesMut,
    /// The length of the part of the buffer that was scanned.
    seen: usize,
    /// Open braces and brackets at the end of that part.
    depth: usize,
    /// Whether that part ends within a string.
    in_string: bool,
    /// Whether it ends with a backslash that escapes the next byte.
    escaped: bool,
}

impl Documents {
    /// Adds received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The bytes that are not cut yet.
    pub(super) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Whether the document that is not complete yet is longer than any object: a server that goes on like this must not take the memory of
    /// the manager.
    pub(crate) fn is_too_long(&self) -> bool {
        self.buffer.len() > LONGEST
    }

    /// The next complete document. Text that does not begin with a brace or bracket ends with its line.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        if self.seen == 0 {
            let blank = self.buffer.iter().take_while(|b| b.is_ascii_whitespace()).count();
            let _ = self.buffer.split_to(blank);
        }
        let is_document = matches!(self.buffer.first(), Some(b'{' | b'['));
        while let Some(byte) = self.buffer.get(self.seen).copied() {
            self.seen += 1;
            if !is_document {
                if byte == b'\n' {
                    return Some(self.cut());
                }
            } else if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return Some(self.cut());
                        }
                    }
                    _ => {}
                }
            }
        }
        None
    }

    fn cut(&mut self) -> Bytes {
        let document = self.buffer.split_to(self.seen).freeze();
        self.seen = 0;
        self.depth = 0;
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(stream: &str, piece: usize) -> Vec<String> {
        let mut documents = Documents::default();
        let mut found = Vec::new();
        for bytes in stream.as_bytes().chunks(piece) {
            documents.push(bytes);
            while let Some(document) = documents.next() {
                found.push(String::from_utf8(document.to_vec()).unwrap());
            }
        }
        found
    }

    #[test]
    fn documents_are_whole_however_the_stream_comes() {
        let check = |stream: &str, expect: &[&str]| {
            for piece in 1..=stream.len() {
                assert_eq!(cut(stream, piece), expect, "{piece} bytes at a time");
            }
        };
        check("{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]);
        check("{\"a\":1}{\"b\":[{}]}", &["{\"a\":1}", "{\"b\":[{}]}"]);
        check("\n {\n \"a\": {\n }\n}\n\n[1]", &["{\n \"a\": {\n }\n}", "[1]"]);
        check("{\"}\\\"{\\\\\":\"[\"}", &["{\"}\\\"{\\\\\":\"[\"}"]);
        check("no JSON }\n{}", &["no JSON }\n", "{}"]);
        check("{\"cut\":", &[]);
    }

    #[test]
    fn a_document_without_an_end_is_too_long_at_some_point() {
        for (begin, is_kept) in [("{\"a\":\"", true), ("no JSON ", true), ("\n", false)] {
            let mut documents = Documents::default();
            documents.push(begin.as_bytes());
            for _ in 0..LONGEST >> 20 {
                assert!(!documents.is_too_long());
                documents.push(&vec![b' '; 1 << 20]);
                assert_eq!(documents.next(), None);
            }
            assert_eq!(documents.is_too_long(), is_kept, "{begin:?}");
        }
    }
}
