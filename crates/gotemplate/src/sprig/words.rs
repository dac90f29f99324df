//! Functions on words: capitals, cases, abbreviations, line wrapping.

use super::{count, int, text};
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::{MAX_TEXT, Out, Value, too_long};

pub(super) const FUNCTIONS: &[Function] = &[
    f("title", "s", |m, a| {
        let mut before = ' ';
        let out: String = text(&a[0])
            .chars()
            .map(|c| {
                let first = !(before.is_alphanumeric() || before == '_');
                before = c;
                if first { upper(c) } else { c }
            })
            .collect();
        m.heap.new_text(out)
    }),
    f("untitle", "s", |m, a| {
        let out = by_word(&text(&a[0]), |c, first| if first { lower(c) } else { c });
        m.heap.new_text(out)
    }),
    f("swapcase", "s", |m, a| {
        let out = by_word(&text(&a[0]), |c, _| if c.is_uppercase() { lower(c) } else { upper(c) });
        m.heap.new_text(out)
    }),
    f("initials", "s", |m, a| {
        let text = text(&a[0]);
        let firsts: String = text.split_whitespace().filter_map(|word| word.chars().next()).collect();
        m.heap.new_text(firsts)
    }),
    f("nospace", "s", |m, a| {
        let kept: String = text(&a[0]).split_whitespace().collect();
        m.heap.new_text(kept)
    }),
    f("abbrev", "is", |m, a| {
        let (width, s) = (int(&a[0]), text(&a[1]));
        if width < 4 {
            return Ok(Value::Text(s));
        }
        let short = abbreviated(&s, 0, count(&a[0])?)?;
        m.heap.new_text(short)
    }),
    f("abbrevboth", "iis", |m, a| {
        let (left, right, s) = (int(&a[0]), int(&a[1]), text(&a[2]));
        if right < 4 || (left > 0 && right < 7) {
            return Ok(Value::Text(s));
        }
        let left = usize::try_from(left).unwrap_or_default();
        let short = abbreviated(&s, left, count(&a[1])?)?;
        m.heap.new_text(short)
    }),
    f("snakecase", "s", |m, a| m.heap.new_text(connected(&text(&a[0]), '_'))),
    f("kebabcase", "s", |m, a| m.heap.new_text(connected(&text(&a[0]), '-'))),
    f("camelcase", "s", |m, a| m.heap.new_text(pascal(&text(&a[0])))),
    f("wrap", "is", |m, a| wrap(m, &a[1], int(&a[0]), "\n", false)),
    f("wrapWith", "iss", |m, a| {
        let separator = text(&a[1]);
        wrap(m, &a[2], int(&a[0]), &separator, true)
    }),
];

fn upper(c: char) -> char {
    let mut out = c.to_uppercase();
    match (out.next(), out.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn lower(c: char) -> char {
    let mut out = c.to_lowercase();
    match (out.next(), out.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Maps each character, with whether it begins a word.
fn by_word(s: &str, how: impl Fn(char, bool) -> char) -> String {
    let mut first = true;
    s.chars()
        .map(|c| {
            let out = how(c, first);
            first = c.is_whitespace();
            out
        })
        .collect()
}

/// Shortens a text to a width, with dots for the omitted end, and for the beginning if `offset` is large enough.
fn abbreviated(s: &str, offset: usize, width: usize) -> Out<String> {
    const DOTS: &str = "...";
    let part = |start: usize, end: usize| {
        s.get(start..end)
            .ok_or_else(|| "a character would be cut in two".to_owned())
    };
    if s.len() <= width {
        return Ok(s.to_owned());
    }
    let mut offset = offset.min(s.len());
    if s.len() - offset < width - 3 {
        offset = s.len() - (width - 3);
    }
    if offset <= 4 {
        return Ok(format!("{}{DOTS}", part(0, width - 3)?));
    }
    if width < 7 {
        return Err("a width of 7 is the least for dots on both sides".into());
    }
    if offset + width - 3 < s.len() {
        return Ok(format!("{DOTS}{}", abbreviated(part(offset, s.len())?, 0, width - 3)?));
    }
    Ok(format!("{DOTS}{}", part(s.len() - (width - 3), s.len())?))
}

#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Upper,
    Lower,
    Digit,
    Connector,
    Other,
}

fn sort(c: char) -> Sort {
    match c {
        '-' | '_' => Sort::Connector,
        _ if c.is_whitespace() => Sort::Connector,
        _ if c.is_uppercase() => Sort::Upper,
        _ if c.is_numeric() => Sort::Digit,
        _ if c.is_alphabetic() => Sort::Lower,
        _ => Sort::Other,
    }
}

/// The words of a name in lower case, joined by a connector: `HTTPServer2x` is `http_server_2x`.
fn connected(s: &str, connector: char) -> String {
    let characters: Vec<(char, Sort)> = s.chars().map(|c| (c, sort(c))).collect();
    let mut out = String::with_capacity(s.len() + 8);
    let mut in_number = false;
    for (at, (c, this)) in characters.iter().enumerate() {
        let before = at.checked_sub(1).map(|i| characters[i].1);
        let after = characters.get(at + 1).map(|(_, sort)| *sort);
        if *this == Sort::Connector {
            out.push(connector);
            in_number = false;
            continue;
        }
        let begins = match (before, *this) {
            (None | Some(Sort::Connector), _) => false,
            (Some(Sort::Upper), Sort::Upper) => after == Some(Sort::Lower),
            (Some(_), Sort::Upper) => true,
            (Some(Sort::Lower | Sort::Upper), Sort::Digit) => !in_number && begins_number(&characters, at),
            _ => false,
        };
        if begins && !out.ends_with(connector) {
            out.push(connector);
        }
        if begins || matches!(before, None | Some(Sort::Connector)) {
            in_number = *this == Sort::Digit;
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Whether digits begin a word: they do if letters follow them.
fn begins_number(characters: &[(char, Sort)], at: usize) -> bool {
    characters[at..]
        .iter()
        .find(|(_, sort)| *sort != Sort::Digit)
        .is_some_and(|(_, sort)| *sort == Sort::Lower)
}

/// The words of a name joined in Pascal case. Of a run of capitals at the start of a word, only the first stays a capital.
/// Connectors at both ends are kept; of several adjacent ones, all but one are kept.
fn pascal(s: &str) -> String {
    let connects = |c: char| sort(c) == Sort::Connector;
    let begin = s.find(|c| !connects(c)).unwrap_or(s.len());
    let (lead, mut rest) = s.split_at(begin);
    let mut out = String::from(lead);
    if rest.is_empty() {
        out.extend(lead.chars().last());
    }
    while let Some(first) = rest.chars().next() {
        let end = rest.find(connects).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.push(upper(first));
        let mut capitals = first.is_uppercase();
        for c in word.chars().skip(1) {
            capitals &= c.is_uppercase();
            out.push(if capitals { lower(c) } else { c });
        }
        let end = after.find(|c| !connects(c)).unwrap_or(after.len());
        let (between, after) = after.split_at(end);
        out.extend(between.chars().skip(usize::from(!after.is_empty())));
        rest = after;
    }
    out
}

/// Wraps lines at blanks to a maximum width; a longer word is kept, or split on request.
fn wrap(m: &mut Machine<'_>, text_: &Value, width: i64, separator: &str, cuts: bool) -> Out {
    let s = text(text_);
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let separator = if separator.is_empty() { "\n" } else { separator };
    if s.len().saturating_mul(separator.len() + 1) > 8 * MAX_TEXT {
        return Err(too_long());
    }
    let bytes = s.as_bytes();
    let slice = |start: usize, end: usize| {
        s.get(start..end)
            .ok_or_else(|| "a character would be cut in two".to_owned())
    };
    let mut out = String::new();
    let mut at = 0;
    while bytes.len() - at > width {
        if bytes[at] == b' ' {
            at += 1;
            continue;
        }
        let end = at + width;
        let blank_before = bytes[at..=end].iter().rposition(|b| *b == b' ').map(|i| at + i);
        let blank_after = || bytes[end..].iter().position(|b| *b == b' ').map(|i| end + i);
        let (stop, next) = match blank_before {
            Some(blank) if blank >= at => (blank, blank + 1),
            _ if cuts => (end, end),
            _ => match blank_after() {
                Some(blank) => (blank, blank + 1),
                None => break,
            },
        };
        out.push_str(slice(at, stop)?);
        out.push_str(separator);
        at = next;
    }
    out.push_str(slice(at, s.len())?);
    m.heap.new_text(out)
}
