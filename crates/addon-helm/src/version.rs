//! Versions of charts in Helm's syntax: one version, or ranges. Only the syntax is checked here. Helm chooses the version.

/// Why a text is neither a version nor a range. `None` when it is one.
pub(crate) fn problem(text: &str) -> Option<String> {
    for choice in text.split("||") {
        let Some(why) = choice_problem(choice.trim()) else {
            continue;
        };
        return Some(why);
    }
    None
}

/// Requirements that all have to hold, or a range with a dash.
fn choice_problem(choice: &str) -> Option<String> {
    if choice.is_empty() {
        return Some("expected a version or a range, such as 1.2.3, ^1.2 or >=1.0 <2.0".to_owned());
    }
    if let Some((from, to)) = choice.split_once(" - ") {
        return version_problem(from.trim()).or_else(|| version_problem(to.trim()));
    }
    let mut rest = choice;
    while !rest.is_empty() {
        let without = rest.trim_start_matches(['=', '!', '<', '>', '~', '^']);
        let operator = &rest[..rest.len() - without.len()];
        if !OPERATORS.contains(&operator) {
            return Some(format!("{operator:?} is not one of {}", OPERATORS[1..].join(" ")));
        }
        let without = without.trim_start();
        let end = without.find([' ', ',']).unwrap_or(without.len());
        if let Some(why) = version_problem(&without[..end]) {
            return Some(why);
        }
        rest = without[end..].trim_start_matches([' ', ',']);
    }
    None
}

const OPERATORS: [&str; 12] = ["", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^"];

/// Up to three numbers or wildcards, then what a semantic version may have behind them.
fn version_problem(text: &str) -> Option<String> {
    let wrong = || {
        Some(format!(
            "{text:?} is not a version: expected up to three numbers, such as 1.2.3 or 1.x"
        ))
    };
    let bare = text.strip_prefix('v').unwrap_or(text);
    let (bare, build) = bare
        .split_once('+')
        .map_or((bare, None), |(bare, build)| (bare, Some(build)));
    let (numbers, before) = bare
        .split_once('-')
        .map_or((bare, None), |(bare, before)| (bare, Some(before)));
    let number = |part: &str| {
        let wildcard = matches!(part, "x" | "X" | "*");
        wildcard || (!part.is_empty() && part.len() <= 19 && part.bytes().all(|b| b.is_ascii_digit()))
    };
    let identifiers = |text: &str| {
        let one = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        text.split('.').all(one)
    };
    let good = numbers.split('.').count() <= 3
        && numbers.split('.').all(number)
        && before.is_none_or(identifiers)
        && build.is_none_or(identifiers);
    if good { None } else { wrong() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // AD-104: an exact version, or a range, as Helm takes it.
    #[test]
    fn versions_and_ranges_differ_from_other_texts() {
        for good in [
            "1.2.3",
            "v1.2.3",
            "1",
            "1.2",
            "1.x",
            "*",
            "^1.2",
            "~1.2.3",
            ">=1.0, <2.0",
            ">=1.0 <2.0",
            ">= 1.0 < 2.0",
            "1.0 - 2.0",
            "^1 || ^2",
            "1.2.3-rc.1",
            ">0.0.0-0",
            "1.2.3+build.5",
            "!=1.2.3",
            "=> 1",
            "3.29.1",
        ] {
            assert_eq!(problem(good), None, "{good}");
        }
        for bad in [
            "",
            "latest",
            "1.2.3.4",
            "1..2",
            ">>1",
            "^",
            "1 ||",
            "1.2.3-",
            "1.2.3+",
            "1.2.3 and more",
            "1.-",
            "v",
        ] {
            assert!(problem(bad).is_some(), "{bad}");
        }
        assert!(problem(">>1").unwrap().contains("\">>\" is not one of = !="));
        assert!(problem("latest").unwrap().contains("\"latest\" is not a version"));
    }
}
