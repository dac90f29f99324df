//! Input that is made to hurt: nothing panics, and every finding has a place.

use proptest::prelude::*;
use windlass_class_check::unit::{run, suites};
use windlass_class_check::{File, lint};

use crate::world::{CLASS, CLUSTER, files, kinds};

/// Pieces that are put into a class.
const PIECES: [&str; 18] = [
    "null",
    "[]",
    "{}",
    "7",
    "-1",
    "\"\"",
    "'*'",
    "{{ . }}",
    "\"{{ \"",
    "<<",
    "&a",
    "*a",
    "!!binary",
    "~",
    "- ",
    ": ",
    "\t",
    "999999999999999999999",
];

/// The class and a Cluster with some lines changed.
fn mutated() -> impl Strategy<Value = String> {
    let change = (0_usize..230, 0_usize..5, 0..PIECES.len(), 0_usize..230);
    proptest::collection::vec(change, 1..4).prop_map(|changes| {
        let mut lines: Vec<String> = format!("{CLASS}---\n{CLUSTER}").lines().map(str::to_owned).collect();
        for (at, how, piece, other) in changes {
            let (at, other) = (at % lines.len(), other % lines.len());
            let piece = PIECES[piece];
            match how {
                0 => drop(lines.remove(at)),
                1 => {
                    lines[at] = match lines[at].split_once(": ") {
                        Some((name, _)) => format!("{name}: {piece}"),
                        None => format!("{}{piece}", lines[at]),
                    }
                }
                2 => lines.swap(at, other),
                3 => {
                    let copy = lines[other].clone();
                    lines.insert(at, copy);
                }
                _ => lines[at] = lines[at].replace(':', &format!(": {piece}")),
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_changed_class_never_panics(text in mutated()) {
        let lines = text.lines().count().max(1);
        for finding in lint(&files(&[("a.yaml", &text)]), kinds()).findings {
            prop_assert!((1..=lines + 1).contains(&finding.position.line), "{finding:?}");
            prop_assert!(!finding.message.is_empty() && !finding.to_string().contains('\n'), "{finding:?}");
        }
        // The same class in a unit test.
        let test = "apiVersion: test.windlass.dev/v1alpha1\nkind: ClusterClassTest\nmetadata: {name: t}\nspec: {files: [a], cases: [{name: c}]}\n";
        let suite = suites(&File { name: "t".to_owned(), text: test.to_owned() }).unwrap().remove(0);
        let result = run(&suite, &files(&[("a.yaml", &text)]), &std::collections::BTreeMap::new(), kinds());
        prop_assert_eq!(result.cases.len(), 1);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        drop(lint(&files(&[("a.yaml", &text)]), kinds()));
        drop(suites(&File { name: "a.yaml".to_owned(), text }));
    }
}
