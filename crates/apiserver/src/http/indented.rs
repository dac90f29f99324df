//! Indented JSON, made from compact JSON without decoding it. It may have more than a hundred times the bytes, so they are counted before.

/// The bytes of the indented form.
pub(crate) fn size(json: &[u8]) -> usize {
    let mut size: usize = 0;
    walk(json, |part| {
        size = size.saturating_add(match part {
            Part::Text(text) => text.len(),
            Part::Line(depth) => 1 + depth * INDENT.len(),
        });
    });
    size
}

/// The indented form, which has `size` bytes.
pub(crate) fn write(json: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size);
    walk(json, |part| match part {
        Part::Text(text) => out.extend_from_slice(text),
        Part::Line(depth) => {
            out.push(b'\n');
            for _ in 0..depth {
                out.extend_from_slice(INDENT);
            }
        }
    });
    out
}

const INDENT: &[u8] = b"  ";

/// A part of the indented form.
enum Part<'a> {
    Text(&'a [u8]),
    /// The end of a line, and the levels by which the next one is indented.
    Line(usize),
}

fn walk<'a>(json: &'a [u8], mut put: impl FnMut(Part<'a>)) {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = json.get(at) {
        let end = match byte {
            b'"' => end_of_string(json, at),
            b'{' | b'[' if matches!(json.get(at + 1), Some(b'}' | b']')) => at + 2,
            b'{' | b'[' | b'}' | b']' | b',' | b':' => at + 1,
            _ => end_of_word(json, at),
        };
        let text = json.get(at..end).unwrap_or_default();
        match text {
            b"{" | b"[" => {
                depth += 1;
                put(Part::Text(text));
                put(Part::Line(depth));
            }
            b"}" | b"]" => {
                depth = depth.saturating_sub(1);
                put(Part::Line(depth));
                put(Part::Text(text));
            }
            b"," => {
                put(Part::Text(text));
                put(Part::Line(depth));
            }
            b":" => put(Part::Text(b": ")),
            _ => put(Part::Text(text)),
        }
        at = end;
    }
}

/// Where the string that begins at a place has ended.
fn end_of_string(json: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    loop {
        let rest = json.get(at..).unwrap_or_default();
        match rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            None => return json.len(),
            Some(quote) if rest.get(quote) == Some(&b'"') => return at + quote + 1,
            Some(escape) => at += escape + 2,
        }
    }
}

/// Where the number or word that begins at a place has ended.
fn end_of_word(json: &[u8], begin: usize) -> usize {
    let rest = json.get(begin + 1..).unwrap_or_default();
    let end = rest.iter().position(|byte| b"\"{}[],:".contains(byte));
    end.map_or(json.len(), |end| begin + 1 + end)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_form_is_that_of_the_general_encoder() {
        let values = [
            json!({}),
            json!([]),
            json!(null),
            json!("a\"\\{[,:"),
            json!({"a": {}, "b": [], "c": [[], {"d": -1.5e300, "e\\": "\\\""}, true, null], "f": "é\n"}),
        ];
        for value in values {
            let json = value.to_string();
            let want = serde_json::to_string_pretty(&value).unwrap();
            let size = size(json.as_bytes());
            assert_eq!(size, want.len(), "{json}");
            assert_eq!(String::from_utf8(write(json.as_bytes(), size)).unwrap(), want);
        }
    }

    #[test]
    fn levels_multiply_the_size() {
        let deep = (0..100).fold(json!(vec![0; 1_000]), |inner, _| Value::Array(vec![inner]));
        let json = deep.to_string();
        assert!(size(json.as_bytes()) > 80 * json.len());
    }

    #[test]
    fn text_that_is_no_json_ends() {
        for text in ["\"", "\"\\", "}", "]]", "a", ""] {
            let size = size(text.as_bytes());
            assert_eq!(write(text.as_bytes(), size).len(), size, "{text}");
        }
    }
}
