//! Semantic versions and the constraint language that templates use for them.

use std::cmp::Ordering;
use std::rc::Rc;

use ::semver::Version;

use super::text;
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::{Out, Value, VersionText};

pub(super) const FUNCTIONS: &[Function] = &[
    f("semver", "s", |_, a| {
        let original = text(&a[0]).to_string();
        let (version, _) = partial(&original, false)?;
        Ok(Value::Version(Rc::new(VersionText { version, original })))
    }),
    f("semverCompare", "ss", compare),
];

/// A field of a version.
pub(crate) fn version_field(m: &mut Machine<'_>, of: &VersionText, name: &str) -> Out {
    let version = &of.version;
    let number = |n: u64| Ok(Value::Int64(i64::try_from(n).unwrap_or(i64::MAX)));
    match name {
        "Major" => number(version.major),
        "Minor" => number(version.minor),
        "Patch" => number(version.patch),
        "Prerelease" => m.heap.new_text(version.pre.as_str()),
        "Metadata" => m.heap.new_text(version.build.as_str()),
        "Original" => m.heap.new_text(&of.original),
        "String" => m.heap.new_text(version.to_string()),
        _ => Err(format!("a version has no field {name:?}").into()),
    }
}

fn compare(_: &mut Machine<'_>, args: &[Value]) -> Out {
    let constraint = text(&args[0]);
    let (version, _) = partial(&text(&args[1]), false)?;
    let mut met = false;
    for alternative in constraint.split("||") {
        met |= meets_all(alternative, &version)?;
    }
    Ok(Value::Bool(met))
}

/// A possibly shortened version, and how many of its three numbers are given; in a constraint, `x`, `X` and `*` end it.
fn partial(text: &str, constraint: bool) -> Out<(Version, usize)> {
    let bad = || format!("{text:?} is no semantic version");
    let bare = if constraint { text.trim() } else { text };
    let bare = bare.strip_prefix('v').unwrap_or(bare);
    let end = bare.find(['-', '+']).unwrap_or(bare.len());
    let (core, rest) = bare.split_at(end);
    let mut numbers = [0u64; 3];
    let mut given = 0;
    let mut wild = false;
    for part in core.split('.') {
        wild |= constraint && matches!(part, "x" | "X" | "*");
        if wild {
            continue;
        }
        let slot = numbers.get_mut(given).ok_or_else(bad)?;
        *slot = part.parse().map_err(|_| bad())?;
        given += 1;
    }
    let full = format!("{}.{}.{}{rest}", numbers[0], numbers[1], numbers[2]);
    Ok(Version::parse(&full).map(|v| (v, given)).map_err(|_| bad())?)
}

fn meets_all(constraints: &str, version: &Version) -> Out<bool> {
    if let Some((low, high)) = constraints.split_once(" - ") {
        let (above, below) = (format!(">={}", low.trim()), format!("<={}", high.trim()));
        return Ok(meets(&above, version)? && meets(&below, version)?);
    }
    // An operator may be separated from its version by blanks.
    let mut met = true;
    let mut pending = String::new();
    if constraints.split(',').any(|part| part.trim().is_empty()) {
        return Err(format!("{constraints:?} is no constraint on versions").into());
    }
    for token in constraints.split([',', ' ']).filter(|t| !t.is_empty()) {
        pending.push_str(token);
        if token.chars().all(|c| "=<>!~^".contains(c)) {
            continue;
        }
        met &= meets(&std::mem::take(&mut pending), version)?;
    }
    if !pending.is_empty() {
        return Err(format!("{constraints:?} is no constraint on versions").into());
    }
    Ok(met)
}

fn meets(constraint: &str, version: &Version) -> Out<bool> {
    let split = constraint
        .find(|c: char| !"=<>!~^".contains(c))
        .unwrap_or(constraint.len());
    let (operator, wanted) = constraint.split_at(split);
    let (want, given) = partial(wanted, true)?;
    // After an operator, a single `*` means zeros.
    let given = match (operator, given) {
        ("!=" | ">" | "^", 0) => 3,
        ("<=" | "=<", 0) => 2,
        (_, given) => given,
    };
    // A pre-release only matches a constraint with a pre-release.
    if !version.pre.is_empty() && want.pre.is_empty() && operator != "!=" {
        return Ok(false);
    }
    let order = version.cmp_precedence(&want);
    let next = |place: usize| {
        let mut high = want.clone();
        high.pre = ::semver::Prerelease::EMPTY;
        match place {
            0 => return None,
            1 => (high.major, high.minor, high.patch) = (want.major.saturating_add(1), 0, 0),
            2 => (high.minor, high.patch) = (want.minor.saturating_add(1), 0),
            _ => high.patch = want.patch.saturating_add(1),
        }
        Some(high)
    };
    let below = |limit: Option<Version>| limit.is_none_or(|l| version.cmp_precedence(&l) == Ordering::Less);
    let within = if given == 3 {
        order == Ordering::Equal
    } else {
        order != Ordering::Less && below(next(given))
    };
    Ok(match operator {
        "" | "=" => within,
        "!=" => !within,
        ">" => order == Ordering::Greater && (given == 3 || !within),
        ">=" | "=>" => order != Ordering::Less,
        "<" => order == Ordering::Less,
        "<=" | "=<" => order != Ordering::Greater || within,
        "~" | "~>" => order != Ordering::Less && below(next(given.min(2))),
        "^" => {
            let place = if want.major > 0 || given < 2 {
                1.min(given)
            } else if want.minor > 0 || given < 3 {
                2
            } else {
                3
            };
            order != Ordering::Less && below(next(place))
        }
        other => return Err(format!("unknown operator {other:?} in a constraint").into()),
    })
}
