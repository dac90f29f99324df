//! Regular expressions. Functions with the prefix `must` fail on an invalid expression; so do the others here, where Go would
//! panic or find nothing.

use super::{int, text};
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::{Out, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    f("regexMatch", "ss", is_match),
    f("mustRegexMatch", "ss", is_match),
    f("regexFind", "ss", find),
    f("mustRegexFind", "ss", find),
    f("regexFindAll", "ssi", find_all),
    f("mustRegexFindAll", "ssi", find_all),
    f("regexReplaceAll", "sss", replace_all),
    f("mustRegexReplaceAll", "sss", replace_all),
    f("regexReplaceAllLiteral", "sss", replace_all_literal),
    f("mustRegexReplaceAllLiteral", "sss", replace_all_literal),
    f("regexSplit", "ssi", split),
    f("mustRegexSplit", "ssi", split),
    f("regexQuoteMeta", "s", |m, a| {
        let mut out = String::new();
        for c in text(&a[0]).chars() {
            if r"\.+*?()|[]{}^$".contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
        m.heap.new_text(out)
    }),
];

fn is_match(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let s = text(&args[1]);
    let regex = m.regex(&text(&args[0]), &s)?;
    Ok(Value::Bool(regex.is_match(&s)))
}

fn find(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let s = text(&args[1]);
    let regex = m.regex(&text(&args[0]), &s)?;
    m.heap.new_text(regex.find(&s).map_or("", |found| found.as_str()))
}

/// The limit of matches: a negative number means all.
fn limit(value: &Value) -> usize {
    usize::try_from(int(value)).unwrap_or(usize::MAX)
}

fn find_all(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let s = text(&args[1]);
    let regex = m.regex(&text(&args[0]), &s)?;
    let found: Vec<&str> = regex.find_iter(&s).take(limit(&args[2])).map(|f| f.as_str()).collect();
    m.heap.new_texts(found)
}

fn replace_all(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let (s, with) = (text(&args[1]), text(&args[2]));
    let regex = m.regex(&text(&args[0]), &s)?;
    m.heap.spend(s.len().saturating_mul(with.len()) / 16)?;
    m.heap.new_text(regex.replace_all(&s, &*with))
}

fn replace_all_literal(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let (s, with) = (text(&args[1]), text(&args[2]));
    let regex = m.regex(&text(&args[0]), &s)?;
    m.heap.spend(s.len().saturating_mul(with.len()) / 16)?;
    m.heap.new_text(regex.replace_all(&s, regex::NoExpand(&with)))
}

fn split(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let s = text(&args[1]);
    let regex = m.regex(&text(&args[0]), &s)?;
    let limit = limit(&args[2]);
    if limit == 0 {
        return m.heap.new_list(Vec::new());
    }
    let mut parts = Vec::new();
    let (mut from, mut end) = (0, 0);
    for found in regex.find_iter(&s) {
        if parts.len() + 1 >= limit {
            break;
        }
        end = found.start();
        // A match before the first character splits nothing.
        if found.end() != 0 {
            parts.push(&s[from..end]);
        }
        from = found.end();
    }
    // Neither does a match after the last character.
    if end != s.len() || s.is_empty() {
        parts.push(&s[from..]);
    }
    m.heap.new_texts(parts)
}
