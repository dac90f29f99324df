//! Compares two sets of objects, and classifies the differences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::flat::Flat;
use super::normal::Role;

/// Longer texts are cut to where they begin to differ.
const LONG: usize = 160;

/// The value in place of the order of conditions in pinned values.
const ANY_ORDER: &str = "any order";

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Difference {
    pub(crate) step: String,
    pub(crate) kind: String,
    pub(crate) role: String,
    pub(crate) path: String,
    recorded: String,
    ours: String,
}

/// All differences of a step.
pub(crate) fn compare(step: &str, recorded: &BTreeMap<Role, Flat>, ours: &BTreeMap<Role, Flat>) -> Vec<Difference> {
    let roles: BTreeSet<&Role> = recorded.keys().chain(ours.keys()).collect();
    let mut found = Vec::new();
    for role in roles {
        let mut add = |path: &str, recorded: &str, ours: &str| {
            found.push(Difference {
                step: step.to_owned(),
                kind: role.0.clone(),
                role: role.1.clone(),
                path: path.to_owned(),
                recorded: recorded.to_owned(),
                ours: ours.to_owned(),
            });
        };
        match (recorded.get(role), ours.get(role)) {
            (Some(recorded), Some(ours)) => fields(recorded, ours, &mut add),
            (recorded, ours) => {
                let say = |there: bool| if there { "there" } else { "missing" };
                add("object", say(recorded.is_some()), say(ours.is_some()));
            }
        }
    }
    found
}

/// Differences in the numbers of objects by kind.
pub(crate) fn compare_counts(
    step: &str,
    recorded: &BTreeMap<String, usize>,
    ours: &BTreeMap<String, usize>,
) -> Vec<Difference> {
    let kinds: BTreeSet<&String> = recorded.keys().chain(ours.keys()).collect();
    let number = |counts: &BTreeMap<String, usize>, kind: &String| counts.get(kind).copied().unwrap_or_default();
    let differ = kinds
        .into_iter()
        .filter(|kind| number(recorded, kind) != number(ours, kind));
    let told = differ.map(|kind| Difference {
        step: step.to_owned(),
        kind: kind.clone(),
        role: "all".to_owned(),
        path: "number of objects".to_owned(),
        recorded: number(recorded, kind).to_string(),
        ours: number(ours, kind).to_string(),
    });
    told.collect()
}

/// Differences in the timelines of objects, by kind.
pub(crate) fn compare_told(step: &str, recorded: &BTreeSet<Role>, ours: &BTreeSet<Role>) -> Vec<Difference> {
    let say = |there: bool| if there { "there" } else { "missing" }.to_owned();
    let differ = recorded.symmetric_difference(ours).map(|(kind, what)| Difference {
        step: step.to_owned(),
        kind: kind.clone(),
        role: "any".to_owned(),
        path: what.clone(),
        recorded: say(recorded.contains(&(kind.clone(), what.clone()))),
        ours: say(ours.contains(&(kind.clone(), what.clone()))),
    });
    differ.collect()
}

fn fields(recorded: &Flat, ours: &Flat, add: &mut impl FnMut(&str, &str, &str)) {
    let paths: BTreeSet<&String> = recorded.keys().chain(ours.keys()).collect();
    for path in paths {
        match (recorded.get(path), ours.get(path)) {
            (Some(recorded), Some(ours)) if recorded == ours => {}
            (Some(recorded), Some(ours)) => {
                let (recorded, ours) = cut(recorded, ours);
                add(path, &recorded, &ours);
            }
            (recorded, ours) => {
                let say = |text: Option<&String>| {
                    text.map_or_else(|| "nothing".to_owned(), |text| text.chars().take(LONG).collect())
                };
                add(path, &say(recorded), &say(ours));
            }
        }
    }
}

/// Long texts from their first difference on.
fn cut(one: &str, other: &str) -> (String, String) {
    if one.len() <= LONG && other.len() <= LONG {
        return (one.to_owned(), other.to_owned());
    }
    let same = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other)
        .count();
    let from = same.saturating_sub(30);
    let part = |text: &str| format!("...{}...", text.chars().skip(from).take(LONG).collect::<String>());
    (part(one), part(other))
}

/// Allowed differences: globs of kind, path and step, and the reason.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    line: usize,
    kind: String,
    path: String,
    step: String,
    reason: String,
}

/// Parses the list.
pub(crate) fn parse_allowances(text: &str) -> Result<Vec<Allowance>, String> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let parse = |(index, line): (usize, &str)| {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells[..] {
            [kind, path, step, reason] if !reason.trim().is_empty() => Ok(Allowance {
                line: index + 1,
                kind: kind.to_owned(),
                path: path.to_owned(),
                step: step.to_owned(),
                reason: reason.to_owned(),
            }),
            _ => Err(format!(
                "line {}: expected kind, path, step and reason with tabs between",
                index + 1
            )),
        }
    };
    lines.map(parse).collect()
}

/// The values of allowed differences: another value at the same path is not allowed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins(BTreeSet<[String; 6]>);

impl Pins {
    /// Parses the values: step, kind, role, path, the recorded value and ours, separated by tabs.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
        let parse = |(index, line): (usize, &str)| {
            let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            cells
                .try_into()
                .map_err(|_| format!("line {}: expected six cells", index + 1))
        };
        Ok(Self(lines.map(parse).collect::<Result<_, _>>()?))
    }

    /// The values of the allowed differences.
    pub(crate) fn of(differences: &[Difference], allowances: &[Allowance]) -> Self {
        let is_allowed = |found: &&Difference| allowances.iter().any(|allowed| allowed.covers(found));
        Self(differences.iter().filter(is_allowed).map(Difference::cells).collect())
    }

    /// The values as text, for the file of a task.
    pub(crate) fn text(&self, task: &str) -> String {
        let head = format!(
            "# What the differences are that {task}-allow.tsv allows: step, kind, role, path, recorded, ours.\n\
             # Written by `cargo xtask {task} DIR --pin`; read the changes before they are committed.\n"
        );
        self.0.iter().fold(head, |mut text, cells| {
            let _ = writeln!(text, "{}", cells.join("\t"));
            text
        })
    }
}

impl Difference {
    /// A row on one line, for any values.
    fn cells(&self) -> [String; 6] {
        let Self {
            step,
            kind,
            role,
            path,
            recorded,
            ours,
        } = self;
        // Conditions are in the order in which controllers finish; their types and contents are compared one by one.
        let (recorded, ours) = if path.ends_with("conditions.order") {
            (&ANY_ORDER.to_owned(), &ANY_ORDER.to_owned())
        } else {
            (recorded, ours)
        };
        [step, kind, role, path, recorded, ours].map(|text| text.escape_debug().to_string())
    }
}

impl Allowance {
    fn covers(&self, difference: &Difference) -> bool {
        glob(&self.kind, &difference.kind) && glob(&self.path, &difference.path) && glob(&self.step, &difference.step)
    }
}

/// Whether a text matches a pattern in which `*` is any text.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => {
            let Some(tail) = text.strip_prefix(head) else {
                return false;
            };
            let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            rest.is_empty() || ends.into_iter().any(|at| glob(rest, &tail[at..]))
        }
    }
}

/// The report, and whether all differences are allowed. `steps` are the compared steps.
pub(crate) fn report(
    differences: &[Difference],
    allowances: &[Allowance],
    pins: &Pins,
    steps: &[String],
) -> (String, bool) {
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    let mut counts: BTreeMap<(usize, &str), (usize, usize)> = BTreeMap::new();
    let mut text = String::new();
    for difference in differences {
        let allowed = allowances.iter().filter(|allowed| allowed.covers(difference));
        let lines: Vec<usize> = allowed.map(|allowed| allowed.line).collect();
        let is_pinned = pins.0.contains(&difference.cells());
        let at = steps
            .iter()
            .position(|step| *step == difference.step)
            .unwrap_or_default();
        let count = counts.entry((at, &difference.kind)).or_default();
        if lines.is_empty() || !is_pinned {
            count.0 += 1;
            let Difference {
                step,
                kind,
                role,
                path,
                recorded,
                ours,
            } = difference;
            let note = if lines.is_empty() {
                ""
            } else {
                " (allowed there, but not this value)"
            };
            let _ = writeln!(
                text,
                "{step}: {kind} {role} {path}: recorded {recorded}, ours {ours}{note}"
            );
        } else {
            count.1 += 1;
        }
        for line in lines {
            *used.entry(line).or_default() += 1;
        }
    }
    let found: BTreeSet<[String; 6]> = differences.iter().map(Difference::cells).collect();
    let gone: Vec<&[String; 6]> = pins.0.difference(&found).collect();
    for cells in &gone {
        let [step, kind, role, path, recorded, ours] = cells;
        let _ = writeln!(
            text,
            "{step}: {kind} {role} {path}: recorded {recorded}, ours {ours}: there is no such difference any more"
        );
    }
    for allowed in allowances {
        let Allowance {
            line,
            kind,
            path,
            step,
            reason,
        } = allowed;
        if let Some(count) = used.get(line) {
            let _ = writeln!(text, "{count} allowed: {kind} {path} {step}: {reason}");
        }
    }
    let unused: Vec<&Allowance> = allowances
        .iter()
        .filter(|allowed| !used.contains_key(&allowed.line))
        .collect();
    for allowed in &unused {
        let Allowance {
            line, kind, path, step, ..
        } = allowed;
        let _ = writeln!(
            text,
            "allowance in line {line} ({kind} {path} {step}): there is no such difference any more"
        );
    }
    let _ = writeln!(
        text,
        "{:<18} {:<22} {:>11} {:>8}",
        "STEP", "KIND", "DIFFERENCES", "ALLOWED"
    );
    for ((at, kind), (bad, allowed)) in &counts {
        let _ = writeln!(text, "{:<18} {kind:<22} {bad:>11} {allowed:>8}", steps[*at]);
    }
    let bad: usize = counts.values().map(|(bad, _)| bad).sum();
    let allowed: usize = counts.values().map(|(_, allowed)| allowed).sum();
    let _ = writeln!(
        text,
        "{bad} differences, {allowed} allowed, {} allowances and {} values not needed",
        unused.len(),
        gone.len()
    );
    (text, bad == 0 && unused.is_empty() && gone.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(objects: &[(&str, &[(&str, &str)])]) -> BTreeMap<Role, Flat> {
        let one = |(role, fields): &(&str, &[(&str, &str)])| {
            let fields = fields
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
            (("Machine".to_owned(), (*role).to_owned()), fields.collect())
        };
        objects.iter().map(one).collect()
    }

    fn found() -> Vec<Difference> {
        let recorded = set(&[("a", &[("spec.x", "1"), ("spec.y", "2")]), ("b", &[])]);
        let ours = set(&[("a", &[("spec.x", "1"), ("spec.y", "3"), ("spec.z", "4")])]);
        compare("settled", &recorded, &ours)
    }

    #[test]
    fn every_difference_is_reported() {
        let (text, good) = report(&found(), &[], &Pins::default(), &["settled".to_owned()]);
        assert!(!good);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "settled: Machine a spec.y: recorded 2, ours 3");
        assert_eq!(lines[1], "settled: Machine a spec.z: recorded nothing, ours 4");
        assert_eq!(lines[2], "settled: Machine b object: recorded there, ours missing");
        assert_eq!(
            lines[4].split_whitespace().collect::<Vec<_>>(),
            ["settled", "Machine", "3", "0"]
        );
    }

    #[test]
    fn numbers_of_objects_are_compared_by_kind() {
        let counts = |list: &[(&str, usize)]| list.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
        let found = compare_counts(
            "scaled-up",
            &counts(&[("A", 1), ("B", 2)]),
            &counts(&[("A", 1), ("B", 3), ("C", 1)]),
        );
        let told: Vec<(&str, &str, &str)> = found
            .iter()
            .map(|one| (one.kind.as_str(), one.recorded.as_str(), one.ours.as_str()))
            .collect();
        assert_eq!(told, [("B", "2", "3"), ("C", "0", "1")]);
    }

    #[test]
    fn what_one_side_alone_tells_is_a_difference() {
        let set = |list: &[&str]| list.iter().map(|what| ("A".to_owned(), (*what).to_owned())).collect();
        let found = compare_told("deleted", &set(&["x", "y"]), &set(&["y", "z"]));
        let told: Vec<(&str, &str)> = found.iter().map(|one| (one.path.as_str(), one.ours.as_str())).collect();
        assert_eq!(told, [("x", "missing"), ("z", "there")]);
    }

    #[test]
    fn allowances_must_be_used_and_have_a_reason() {
        let check = |list: &str, expect: bool| {
            let list = parse_allowances(list).unwrap();
            let pins = Pins::of(&found(), &list);
            let (text, good) = report(&found(), &list, &pins, &["settled".to_owned()]);
            assert_eq!(good, expect, "{text}");
        };
        check("Machine\tspec.*\tsettled\twhy\nMach*\tobject\t*\twhy\n", true);
        let list = parse_allowances("Machine\tspec.*\tsettled\tbecause\n").unwrap();
        let pins = Pins::of(&found(), &list);
        let (text, _) = report(&found(), &list, &pins, &["settled".to_owned()]);
        assert!(text.contains("2 allowed: Machine spec.* settled: because"), "{text}");
        check("# comment\n*\t*\t*\twhy\n", true);
        check("Machine\tspec.*\tsettled\twhy\n", false);
        check("*\t*\t*\twhy\nCluster\t*\t*\twhy\n", false);
        assert!(
            parse_allowances("Machine\tspec\tsettled\t\n")
                .unwrap_err()
                .contains("line 1")
        );
    }

    #[test]
    fn an_allowed_place_has_the_values_that_are_pinned() {
        let list = parse_allowances("*\t*\t*\twhy\n").unwrap();
        let pins = Pins::parse(&Pins::of(&found(), &list).text("recorded")).unwrap();
        let steps = ["settled".to_owned()];
        assert!(report(&found(), &list, &pins, &steps).1);
        let mut other = found();
        other[0].ours = "5".to_owned();
        let (text, good) = report(&other, &list, &pins, &steps);
        assert!(
            !good && text.contains("ours 5 (allowed there, but not this value)"),
            "{text}"
        );
        assert!(text.contains("ours 3: there is no such difference any more"), "{text}");
        assert!(Pins::parse("a\tb\n").is_err());
    }

    #[test]
    fn a_star_is_any_text() {
        let check =
            |pattern: &str, text: &str, expect: bool| assert_eq!(glob(pattern, text), expect, "{pattern} {text}");
        check("a.b", "a.b", true);
        check("a.*.c", "a.b.x.c", true);
        check("a.*.c", "a.b.x.d", false);
        check("*x", "yyx", true);
        check("", "a", false);
    }

    #[test]
    fn long_texts_are_cut_where_they_differ() {
        let (one, other) = cut(&format!("{}x", "a".repeat(500)), &format!("{}y", "a".repeat(500)));
        assert!(
            one.ends_with("ax...") && other.ends_with("ay...") && one.len() < 60,
            "{one}"
        );
    }
}
