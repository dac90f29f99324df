//! Semantic versions and the constraint language that templates use for them.

use std::cmp::Ordering;

use ::semver::Version;
use gtmpl_ng::{Func, FuncError, Value};

use super::{Out, fail, number, text_arg};

pub(super) const FUNCTIONS: &[(&str, Func)] = &[
    ("semver", |a| {
        let (version, original) = loose(&text_arg(a, 0, "semver")?)?;
        Ok(Value::Map(
            [
                ("Major", number(i64::try_from(version.major).unwrap_or(i64::MAX))),
                ("Minor", number(i64::try_from(version.minor).unwrap_or(i64::MAX))),
                ("Patch", number(i64::try_from(version.patch).unwrap_or(i64::MAX))),
                ("Prerelease", version.pre.as_str().into()),
                ("Metadata", version.build.as_str().into()),
                ("Original", original.into()),
            ]
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v))
            .collect(),
        ))
    }),
    ("semverCompare", compare),
];

fn compare(args: &[Value]) -> Out {
    let constraint = text_arg(args, 0, "semverCompare")?;
    let (version, _) = loose(&text_arg(args, 1, "semverCompare")?)?;
    for alternative in constraint.split("||") {
        if meets_all(alternative, &version)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

/// A version with an optional `v` and missing parts read as zero.
fn loose(text: &str) -> Result<(Version, String), FuncError> {
    let (parts, _) = partial(text)?;
    Ok((parts, text.to_owned()))
}

/// A possibly shortened version and how many of its three numbers were given (`x`, `X` and `*` end it).
fn partial(text: &str) -> Result<(Version, usize), FuncError> {
    let bad = || fail(format!("{text:?} is not a semantic version"));
    let text = text.trim();
    let bare = text.strip_prefix('v').unwrap_or(text);
    let end = bare.find(['-', '+']).unwrap_or(bare.len());
    let (core, rest) = bare.split_at(end);
    let mut numbers = [0u64; 3];
    let mut given = 0;
    for part in core.split('.') {
        if matches!(part, "x" | "X" | "*" | "") {
            break;
        }
        let slot = numbers.get_mut(given).ok_or_else(bad)?;
        *slot = part.parse().map_err(|_| bad())?;
        given += 1;
    }
    if given == 0 && !matches!(core, "x" | "X" | "*") {
        return Err(bad());
    }
    let full = format!("{}.{}.{}{rest}", numbers[0], numbers[1], numbers[2]);
    Version::parse(&full).map(|v| (v, given)).map_err(|_| bad())
}

fn meets_all(constraints: &str, version: &Version) -> Result<bool, FuncError> {
    if let Some((low, high)) = constraints.split_once(" - ") {
        return Ok(meets(&format!(">={}", low.trim()), version)? && meets(&format!("<={}", high.trim()), version)?);
    }
    // An operator may stand apart from its version.
    let mut pending = String::new();
    for token in constraints.split([',', ' ']).filter(|t| !t.is_empty()) {
        pending.push_str(token);
        if token.chars().all(|c| "=<>!~^".contains(c)) {
            continue;
        }
        if !meets(&std::mem::take(&mut pending), version)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn meets(constraint: &str, version: &Version) -> Result<bool, FuncError> {
    let split = constraint
        .find(|c: char| !"=<>!~^".contains(c))
        .unwrap_or(constraint.len());
    let (operator, wanted) = constraint.split_at(split);
    let (want, given) = partial(wanted)?;
    // A pre-release only meets a constraint that names one itself.
    if !version.pre.is_empty() && want.pre.is_empty() {
        return Ok(operator == "!=");
    }
    let order = version.cmp_precedence(&want);
    let next = |place: usize| {
        let mut high = want.clone();
        high.pre = ::semver::Prerelease::EMPTY;
        match place {
            0 => return None,
            1 => (high.major, high.minor, high.patch) = (want.major + 1, 0, 0),
            2 => (high.minor, high.patch) = (want.minor + 1, 0),
            _ => high.patch = want.patch + 1,
        }
        Some(high)
    };
    let below = |limit: Option<Version>| limit.is_none_or(|l| version.cmp_precedence(&l) == Ordering::Less);
    let within = order != Ordering::Less && below(next(given));
    Ok(match operator {
        "" | "=" | "==" => within,
        "!=" => !within,
        ">" => order == Ordering::Greater && (given == 3 || !within),
        ">=" | "=>" => order != Ordering::Less,
        "<" => order == Ordering::Less,
        "<=" | "=<" => below(next(given)),
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
        other => return Err(fail(format!("semverCompare: unknown operator {other:?}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(constraint: &str, version: &str, expect: bool) {
        let out = compare(&[constraint.into(), version.into()]).unwrap();
        assert_eq!(out, Value::Bool(expect), "{version} {constraint}");
    }

    #[test]
    fn constraints_mean_what_they_say() {
        check(">= 1.30.0", "v1.30.0", true);
        check(">= 1.30", "1.29.9", false);
        check(">=1.30.0, <1.32.0", "1.31.5", true);
        check(">=1.30.0 <1.32.0", "1.32.0", false);
        check("1.31.x", "1.31.9", true);
        check("1.31", "1.32.0", false);
        check("*", "1.2.3", true);
        check("~1.31.2", "1.31.9", true);
        check("~1.31.2", "1.32.0", false);
        check("^1.31.2", "1.99.0", true);
        check("^1.31.2", "2.0.0", false);
        check("^0.2.3", "0.3.0", false);
        check("!=1.31.2", "1.31.2", false);
        check("1.30 - 1.32", "1.32.7", true);
        check("<1.30 || >=1.32", "1.33.0", true);
        check(">1.31", "1.31.4", false);
        check(">=1.30.0", "1.31.0-rc.1", false);
        check(">=1.30.0-0", "1.31.0-rc.1", true);
    }
}
