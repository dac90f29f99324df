//! Paths with slashes. The functions for paths of the operating system are the same, because controllers run on Linux.

use super::text;
use crate::functions::{Function, f};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    f("base", "s", |m, a| m.heap.new_text(base(&text(&a[0])))),
    f("osBase", "s", |m, a| m.heap.new_text(base(&text(&a[0])))),
    f("dir", "s", |m, a| m.heap.new_text(dir(&text(&a[0])))),
    f("osDir", "s", |m, a| m.heap.new_text(dir(&text(&a[0])))),
    f("clean", "s", |m, a| m.heap.new_text(clean(&text(&a[0])))),
    f("osClean", "s", |m, a| m.heap.new_text(clean(&text(&a[0])))),
    f("ext", "s", |m, a| m.heap.new_text(ext(&text(&a[0])))),
    f("osExt", "s", |m, a| m.heap.new_text(ext(&text(&a[0])))),
    f("isAbs", "s", |_, a| Ok(Value::Bool(text(&a[0]).starts_with('/')))),
    f("osIsAbs", "s", |_, a| Ok(Value::Bool(text(&a[0]).starts_with('/')))),
];

fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    match path.trim_end_matches('/').rsplit('/').next() {
        Some("") | None => "/",
        Some(last) => last,
    }
}

fn dir(path: &str) -> String {
    clean(path.rsplit_once('/').map_or("", |(before, last)| {
        &path[..path.len() - last.len() - usize::from(!before.is_empty())]
    }))
}

fn ext(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.rfind('.').map_or("", |at| &last[at..])
}

/// The shortest equivalent path.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}
