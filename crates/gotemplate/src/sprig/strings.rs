//! Functions on texts. Lengths and positions are in bytes, as in Go; splitting a character is an error.

use super::{any_text, count, int, text};
use windlass_gocompat::quote::quoted;

use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::{Entries, MAX_TEXT, Out, Value, too_long};

pub(super) const FUNCTIONS: &[Function] = &[
    f("hello", "", |_, _| Ok(Value::text("Hello!"))),
    f("upper", "s", |m, a| m.heap.new_text(text(&a[0]).to_uppercase())),
    f("lower", "s", |m, a| m.heap.new_text(text(&a[0]).to_lowercase())),
    f("trim", "s", |m, a| m.heap.new_text(text(&a[0]).trim())),
    f("trimAll", "ss", trim_all),
    f("trimall", "ss", trim_all),
    // These two are not from Sprig; templates of ClusterClasses have always had them here.
    f("trimLeft", "ss", |m, a| {
        let set = text(&a[0]);
        m.heap.new_text(text(&a[1]).trim_start_matches(|c| set.contains(c)))
    }),
    f("trimRight", "ss", |m, a| {
        let set = text(&a[0]);
        m.heap.new_text(text(&a[1]).trim_end_matches(|c| set.contains(c)))
    }),
    f("trimPrefix", "ss", |m, a| {
        let s = text(&a[1]);
        m.heap.new_text(s.strip_prefix(&*text(&a[0])).unwrap_or(&s))
    }),
    f("trimSuffix", "ss", |m, a| {
        let s = text(&a[1]);
        m.heap.new_text(s.strip_suffix(&*text(&a[0])).unwrap_or(&s))
    }),
    f("hasPrefix", "ss", |_, a| {
        Ok(Value::Bool(text(&a[1]).starts_with(&*text(&a[0]))))
    }),
    f("hasSuffix", "ss", |_, a| {
        Ok(Value::Bool(text(&a[1]).ends_with(&*text(&a[0]))))
    }),
    f("contains", "ss", |_, a| {
        Ok(Value::Bool(text(&a[1]).contains(&*text(&a[0]))))
    }),
    f("replace", "sss", |m, a| {
        let (from, to, s) = (text(&a[0]), text(&a[1]), text(&a[2]));
        bounded(s.matches(&*from).count().saturating_mul(to.len()))?;
        m.heap.new_text(s.replace(&*from, &to))
    }),
    f("repeat", "is", |m, a| {
        let (n, s) = (count(&a[0])?, text(&a[1]));
        bounded(n.saturating_mul(s.len()))?;
        m.heap.new_text(s.repeat(n))
    }),
    f("trunc", "is", trunc),
    f("substr", "iis", substr),
    f("quote", ".*", |m, a| joined(m, a, quoted)),
    f("squote", ".*", |m, a| joined(m, a, |s| format!("'{s}'"))),
    f("cat", ".*", |m, a| joined(m, a, str::to_owned)),
    f("indent", "is", |m, a| {
        let text = indented(&a[0], &a[1])?;
        m.heap.new_text(text)
    }),
    f("nindent", "is", |m, a| {
        let text = indented(&a[0], &a[1])?;
        m.heap.new_text(format!("\n{text}"))
    }),
    f("plural", "ssi", |_, a| Ok(a[usize::from(int(&a[2]) != 1)].clone())),
    f("toString", ".", |m, a| any_text(m, &a[0]).map(Value::Text)),
    f("splitList", "ss", |m, a| {
        let (separator, s) = (text(&a[0]), text(&a[1]));
        m.heap.new_texts(parts(&s, &separator, usize::MAX))
    }),
    f("split", "ss", |m, a| {
        let (separator, s) = (text(&a[0]), text(&a[1]));
        numbered(m, &parts(&s, &separator, usize::MAX))
    }),
    f("splitn", "sis", |m, a| {
        let (separator, s) = (text(&a[0]), text(&a[2]));
        let n = usize::try_from(int(&a[1])).unwrap_or(usize::MAX);
        let parts = if n == 0 { Vec::new() } else { parts(&s, &separator, n) };
        numbered(m, &parts)
    }),
];

/// Limits the memory of a call to the size of the largest possible result.
fn bounded(size: usize) -> Out<()> {
    if size > MAX_TEXT { Err(too_long()) } else { Ok(()) }
}

fn trim_all(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let set = text(&args[0]);
    m.heap.new_text(text(&args[1]).trim_matches(|c| set.contains(c)))
}

/// A part of a text; an error if it begins or ends within a character.
fn part(s: &str, start: usize, end: usize) -> Out<&str> {
    s.get(start..end)
        .ok_or_else(|| format!("{start} to {end} is no part of a text of {} bytes", s.len()).into())
}

fn trunc(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let (n, s) = (int(&args[0]), text(&args[1]));
    let keep = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let kept = match n {
        _ if keep >= s.len() => &s,
        ..0 => part(&s, s.len() - keep, s.len())?,
        _ => part(&s, 0, keep)?,
    };
    m.heap.new_text(kept)
}

fn substr(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let (start, end, s) = (int(&args[0]), int(&args[1]), text(&args[2]));
    let place = |n: i64| usize::try_from(n).map_err(|_| format!("{n} is negative"));
    let part = match (start, end) {
        (..0, end) => part(&s, 0, place(end)?)?,
        (start, end) if end < 0 || place(end)? > s.len() => part(&s, place(start)?, s.len())?,
        (start, end) => part(&s, place(start)?, place(end)?)?,
    };
    m.heap.new_text(part)
}

/// All non-nil arguments as texts, joined with blanks.
fn joined(m: &mut Machine<'_>, args: &[Value], how: impl Fn(&str) -> String) -> Out {
    let mut parts = Vec::new();
    for value in args.iter().filter(|v| !v.is_nothing()) {
        parts.push(how(&any_text(m, value)?));
    }
    m.heap.new_text(parts.join(" "))
}

fn indented(width: &Value, body: &Value) -> Out<String> {
    let (width, body) = (count(width)?, text(body));
    bounded(width.saturating_mul(body.matches('\n').count() + 1))?;
    let pad = " ".repeat(width);
    Ok(format!("{pad}{}", body.replace('\n', &format!("\n{pad}"))))
}

/// Go's split: without a separator, into characters.
fn parts<'a>(s: &'a str, separator: &str, most: usize) -> Vec<&'a str> {
    if !separator.is_empty() {
        return s.splitn(most, separator).collect();
    }
    let mut parts = Vec::new();
    let mut rest = s;
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == most {
            parts.push(rest);
            break;
        }
        let (first, after) = rest.split_at(c.len_utf8());
        parts.push(first);
        rest = after;
    }
    parts
}

/// The parts as a map with the keys `_0`, `_1` and so on.
fn numbered(m: &mut Machine<'_>, parts: &[&str]) -> Out {
    let mut entries = Entries::new();
    for (at, part) in parts.iter().enumerate() {
        entries.insert(format!("_{at}").into(), m.heap.new_text(part)?);
    }
    m.heap.new_text_map(entries)
}
