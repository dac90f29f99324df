//! Keeps the values of variables out of what people read: servers and parsers quote what they refuse.

use std::collections::BTreeMap;

use windlass_controller_runtime::Until;

use crate::provider::blocked::Blocked;

/// Shorter values are words that occur anywhere. They are masked where they are quoted, as servers quote what they refuse.
const SHORTEST: usize = 6;
/// Still shorter values tell nothing.
const SHORTEST_QUOTED: usize = 3;

/// A text with the names of variables in the place of their values.
pub(crate) fn masked<'a>(text: &str, variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    // Long ones first: a value may be a part of another one.
    let mut values: BTreeMap<(std::cmp::Reverse<usize>, &str), &str> = BTreeMap::new();
    for (name, value) in variables {
        // Of values with several lines, each line may be quoted alone.
        for part in std::iter::once(value.as_str()).chain(value.lines()).map(str::trim) {
            if part.len() >= SHORTEST_QUOTED {
                values.entry((std::cmp::Reverse(part.len()), part)).or_insert(name);
            }
        }
    }
    let mut text = text.to_owned();
    for ((_, value), name) in values {
        if value.len() >= SHORTEST {
            text = text.replace(value, &format!("${{{name}}}"));
            continue;
        }
        for quote in ['"', '\'', '`'] {
            text = text.replace(&format!("{quote}{value}{quote}"), &format!("{quote}${{{name}}}{quote}"));
        }
    }
    text
}

/// A message without the values of variables. When a read of them failed, the message is left out, as it may quote them.
pub(crate) fn without_values(
    message: &str,
    variables: Result<BTreeMap<String, String>, Blocked>,
    environment: &BTreeMap<String, String>,
) -> String {
    match variables {
        Ok(variables) => masked(message, variables.iter().chain(environment)),
        Err(unread) if unread.until == Until::Backoff => format!(
            "a step failed with an error that may quote variables of the provider, which cannot be read: {}",
            unread.message
        ),
        // There is no Secret, or nothing in it that could have been rendered.
        Err(_) => masked(message, environment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::blocked::Stage;

    #[test]
    fn an_error_is_left_out_when_it_is_unknown_which_values_it_quotes() {
        let map = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let environment = map("REGION", "somewhere");
        let check = |variables, expect: &str| {
            let found = without_values("bad hunter2 in somewhere", variables, &environment);
            assert_eq!(found, expect);
        };
        check(Ok(map("KEY", "hunter2")), "bad ${KEY} in ${REGION}");
        check(
            Err(Blocked::new(Stage::Install, "Unread", "no answer").until(Until::Backoff)),
            "a step failed with an error that may quote variables of the provider, which cannot be read: no answer",
        );
        let missing = Blocked::new(Stage::Install, "ConfigSecretMissing", "it is not there");
        check(Err(missing), "bad hunter2 in ${REGION}");
    }

    #[test]
    fn values_give_way_to_their_names() {
        let check = |text: &str, expect: &str| {
            let variables = [
                ("KEY", "hunter2hunter2"),
                ("HALF", "hunter2"),
                ("FLAG", "true"),
                ("PIN", "4711"),
                ("COUNT", "2"),
                ("LINES", "first line\n  second line\n"),
            ];
            let variables: BTreeMap<_, _> = variables.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
            assert_eq!(masked(text, &variables), expect);
        };
        check("nothing", "nothing");
        check("bad \"hunter2hunter2\"", "bad \"${KEY}\"");
        check("hunter2 is not hunter2hunter2", "${HALF} is not ${KEY}");
        check("it is true", "it is true");
        check(
            "Invalid value: \"4711\", not '4711', at 4711:2",
            "Invalid value: \"${PIN}\", not '${PIN}', at 4711:2",
        );
        check("\"2\" of 3", "\"2\" of 3");
        check("at second line", "at ${LINES}");
    }
}
