//! Messages of merged conditions.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Owned, Priority};

/// The number of messages in an aggregate; others are only counted.
const MOST_MESSAGES: usize = 3;
/// The number of objects named per message.
const MOST_NAMES: usize = 3;

/// `" text"` for a single line; a block of bullets for several lines, or for a text with bullets.
pub(crate) fn indented(text: &str) -> String {
    if !text.contains('\n') && !has_bullet(text) {
        return format!(" {text}");
    }
    let all_bullets = text.lines().all(has_bullet) && !text.is_empty();
    let mut block = String::new();
    for line in text.split('\n') {
        block.push('\n');
        block.push_str(match (all_bullets, has_bullet(line)) {
            (true, _) => "  ",
            // Plain lines become bullets, and lines with bullets are indented by one level.
            (false, false) => "  * ",
            (false, true) => "    ",
        });
        block.push_str(line);
    }
    block
}

/// Whether an asterisk is followed by a space, anywhere in the text.
fn has_bullet(text: &str) -> bool {
    let mut after_star = false;
    for c in text.chars() {
        if after_star && c.is_whitespace() {
            return true;
        }
        after_star = c == '*';
    }
    false
}

/// The word for objects whose messages are only counted.
fn rest_of(priority: Priority) -> &'static str {
    match priority {
        Priority::Issue => "with other issues",
        Priority::Unknown => "with status unknown",
        Priority::Info => "with additional info",
    }
}

/// One message and the objects that report it.
struct Report<'a> {
    message: &'a str,
    names: Vec<&'a str>,
}

/// The lines of an aggregate: by kind, control plane Machines first, then issues before unknown, then by the number of objects.
pub(crate) fn aggregated(
    conditions: &[Owned<'_>],
    drop_empty: bool,
    priority: impl Fn(&Owned<'_>) -> Priority,
) -> String {
    let mut by_kind: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    let mut worst: BTreeMap<&str, Priority> = BTreeMap::new();
    let mut first: BTreeSet<&str> = BTreeSet::new();
    let mut control_plane: BTreeSet<&str> = BTreeSet::new();
    for owned in conditions {
        let message = owned.condition.message.as_str();
        if drop_empty && message.is_empty() {
            continue;
        }
        by_kind
            .entry(owned.kind)
            .or_default()
            .entry(message)
            .or_default()
            .push(owned.name);
        let rank = priority(owned);
        worst
            .entry(message)
            .and_modify(|old| *old = rank.min(*old))
            .or_insert(rank);
        if owned.control_plane {
            control_plane.insert(owned.name);
            first.insert(message);
        }
    }
    let mut lines = Vec::new();
    let mut left = MOST_MESSAGES;
    for (kind, reports) in by_kind {
        let mut reports: Vec<Report<'_>> = reports
            .into_iter()
            .map(|(message, names)| Report { message, names })
            .collect();
        reports.sort_by(|a, b| {
            let key = |r: &Report<'_>| (!first.contains(r.message), worst.get(r.message).copied());
            key(a)
                .cmp(&key(b))
                .then(b.names.len().cmp(&a.names.len()))
                .then_with(|| a.names.join(",").cmp(&b.names.join(",")))
        });
        let mut others: BTreeMap<Priority, usize> = BTreeMap::new();
        for report in &mut reports {
            if left == 0 {
                let rank = worst.get(report.message).copied().unwrap_or(Priority::Info);
                *others.entry(rank).or_default() += report.names.len();
                continue;
            }
            left -= 1;
            report.names.sort_by_key(|name| (!control_plane.contains(name), *name));
            lines.push(format!("* {}:{}", named(kind, &report.names), indented(report.message)));
        }
        for (rank, count) in others {
            let kind = if count == 1 { kind.to_owned() } else { plural(kind) };
            lines.push(format!("And {count} {kind} {}", rest_of(rank)));
        }
    }
    lines.join("\n")
}

fn named(kind: &str, names: &[&str]) -> String {
    match names.len() {
        1 => format!("{kind} {}", names[0]),
        _ => format!("{} {}", plural(kind), listed(names, MOST_NAMES)),
    }
}

/// Names for a sentence: `a, b, c, ... (2 more)`, with this limit.
pub fn listed<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown}, ... ({more} more)"),
    }
}

/// The plural of a kind.
fn plural(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    if ["s", "x", "z", "ch", "sh"].iter().any(|end| lower.ends_with(end)) {
        return format!("{kind}es");
    }
    if let Some(stem) = kind.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    format!("{kind}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_indented() {
        let check = |text: &str, expect: &str| assert_eq!(indented(text), expect);
        check("plain", " plain");
        check("", " ");
        check("* a", "\n  * a");
        check("* a\n* b", "\n  * a\n  * b");
        check("a\nb", "\n  * a\n  * b");
        check("a\n* b", "\n  * a\n    * b");
    }

    #[test]
    fn plurals() {
        assert_eq!(
            (plural("Machine"), plural("HelmReleaseProxy"), plural("Class")),
            (
                "Machines".to_owned(),
                "HelmReleaseProxies".to_owned(),
                "Classes".to_owned()
            )
        );
    }
}
