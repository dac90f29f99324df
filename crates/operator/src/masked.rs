//! Keeps the values of variables out of what people read: servers and parsers quote what they refuse.

use std::collections::BTreeMap;

/// Shorter values are words that occur anywhere.
const SHORTEST: usize = 6;

/// A text with the names of variables in the place of their values.
pub(crate) fn masked<'a>(text: &str, variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    // Long ones first: a value may be a part of another one.
    let mut values: BTreeMap<(std::cmp::Reverse<usize>, &str), &str> = BTreeMap::new();
    for (name, value) in variables {
        // Of values with several lines, each line may be quoted alone.
        for part in std::iter::once(value.as_str()).chain(value.lines()).map(str::trim) {
            if part.len() >= SHORTEST {
                values.entry((std::cmp::Reverse(part.len()), part)).or_insert(name);
            }
        }
    }
    let mut text = text.to_owned();
    for ((_, value), name) in values {
        if text.contains(value) {
            text = text.replace(value, &format!("${{{name}}}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_give_way_to_their_names() {
        let check = |text: &str, expect: &str| {
            let variables = [
                ("KEY", "hunter2hunter2"),
                ("HALF", "hunter2"),
                ("FLAG", "true"),
                ("LINES", "first line\n  second line\n"),
            ];
            let variables: BTreeMap<_, _> = variables.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
            assert_eq!(masked(text, &variables), expect);
        };
        check("nothing", "nothing");
        check("bad \"hunter2hunter2\"", "bad \"${KEY}\"");
        check("hunter2 is not hunter2hunter2", "${HALF} is not ${KEY}");
        check("it is true", "it is true");
        check("at second line", "at ${LINES}");
    }
}
