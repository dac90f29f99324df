//! Checks of fetched content before it is parsed.

use bytes::Bytes;

use crate::error::Error;

/// The text of a YAML file. An HTML page is recognized by its beginning, because servers declare everything as text.
pub(crate) fn text(what: &str, content: &Bytes) -> Result<String, Error> {
    if content.starts_with(&[0x1f, 0x8b]) {
        return Err(Error::NotText {
            what: what.to_owned(),
            gzip: true,
        });
    }
    let text = std::str::from_utf8(content).map_err(|_| Error::NotText {
        what: what.to_owned(),
        gzip: false,
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let start = text.trim_start();
    if start.is_empty() {
        return Err(Error::Empty { what: what.to_owned() });
    }
    if is_html(start) {
        return Err(Error::Html { url: what.to_owned() });
    }
    Ok(text.to_owned())
}

pub(crate) fn is_html(start: &str) -> bool {
    let mut head = start.trim_start();
    while let Some((_, rest)) = head.strip_prefix("<!--").and_then(|rest| rest.split_once("-->")) {
        head = rest.trim_start();
    }
    let head: String = head.chars().take(14).collect::<String>().to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"]
        .iter()
        .any(|mark| head.starts_with(mark))
}

/// A few words of an error response: the message in its JSON, or a short text. Never a web page.
pub(crate) fn words(body: &[u8]) -> String {
    const MOST: usize = 200;
    let parsed: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let text = match &parsed {
        Some(value) => {
            let first = &value["errors"][0];
            let mut places = [&value["message"], &value["error"], &first["message"], &first["code"]].into_iter();
            places.find_map(|found| found.as_str()).unwrap_or_default()
        }
        None => std::str::from_utf8(body).unwrap_or_default(),
    };
    let text = text.trim();
    if text.len() > MOST && parsed.is_none()
        || text.starts_with('<')
        || text.chars().any(|c| c.is_control() && c != '\n')
    {
        return String::new();
    }
    text.replace('\n', " ").chars().take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_other_content_are_distinguished_from_yaml() {
        let check = |content: &'static [u8], expected: Result<&str, &str>| {
            let found = text("the file", &Bytes::from_static(content));
            assert_eq!(found.as_deref().map_err(Error::reason), expected);
        };
        check(b"kind: Namespace", Ok("kind: Namespace"));
        check(b"\xef\xbb\xbfkind: Namespace", Ok("kind: Namespace"));
        check(b"# <html>\nkind: Namespace", Ok("# <html>\nkind: Namespace"));
        check(b" \n<!DOCTYPE HTML>\n<html>", Err("WebPage"));
        check(b"<!-- by a proxy -->\n<html><body>", Err("WebPage"));
        check(b" \n", Err("NotYAML"));
        check(b"\x1f\x8b\x08\x00", Err("NotYAML"));
        check(b"kind: \xff", Err("NotYAML"));
    }

    #[test]
    fn the_words_of_an_answer_are_short() {
        assert_eq!(words(br#"{"message":"Bad credentials"}"#), "Bad credentials");
        assert_eq!(words(br#"{"errors":[{"code":"DENIED"}]}"#), "DENIED");
        assert_eq!(words(b"no\n"), "no");
        assert_eq!(words(b"<html>no</html>"), "");
        assert_eq!(words(&[b'x'; 1000]), "");
    }
}
