//! Limits the length and depth of expressions. Each level uses stack when it is parsed, checked, evaluated and dropped, so that
//! an unlimited expression would end the process.

/// The longest expression, in characters; Kubernetes' parser has the same bound.
const LONGEST: usize = 100_000;
/// The greatest depth. The engine's parser allows at most 96 levels of brackets and choices, but does not limit chains of fields
/// and operators.
const DEEPEST: usize = 500;

/// The open brackets and operators at a position.
#[derive(Default)]
struct Level {
    /// The depth of the chain of fields and operators, since the last separator.
    chain: usize,
    /// The number of nested choices.
    choices: usize,
}

/// Refuses an expression that is too long or too deep, before it is parsed.
pub(super) fn check(source: &str) -> Result<(), String> {
    let size = source.chars().count();
    if size > LONGEST {
        return Err(format!(
            "expression code point size exceeds limit: size: {size}, limit {LONGEST}"
        ));
    }
    if depth(source.as_bytes()) > DEEPEST {
        return Err(format!("expression recursion limit exceeded: {DEEPEST}"));
    }
    Ok(())
}

/// An upper bound of an expression's depth, from its brackets and operators.
fn depth(source: &[u8]) -> usize {
    let mut levels = vec![Level::default()];
    let (mut sum, mut most, mut at) = (0_usize, 0, 0);
    while let Some(byte) = source.get(at) {
        let before = at.checked_sub(1).and_then(|at| source.get(at)).copied().unwrap_or(b' ');
        let Some(level) = levels.last_mut() else { break };
        match byte {
            b'\'' | b'"' => {
                at = behind_text(source, at, matches!(before, b'r' | b'R'));
                continue;
            }
            b'/' if source.get(at + 1) == Some(&b'/') => {
                let rest = &source[at..];
                at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                continue;
            }
            b'(' | b'[' | b'{' => {
                level.chain += 1;
                sum += 1;
                levels.push(Level::default());
            }
            b')' | b']' | b'}' => {
                sum -= level.chain + level.choices;
                levels.pop();
                if levels.is_empty() {
                    // The parser will refuse it.
                    levels.push(Level::default());
                }
            }
            b',' => {
                sum -= level.chain + level.choices;
                *level = Level::default();
            }
            b'?' => {
                sum = sum - level.chain + 1;
                level.chain = 0;
                level.choices += 1;
            }
            // The parser creates flat trees for these.
            b':' | b'&' | b'|' => {
                sum -= level.chain;
                level.chain = 0;
            }
            b'=' if matches!(before, b'=' | b'!' | b'<' | b'>') => {}
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' => {
                level.chain += 1;
                sum += 1;
            }
            b'n' if before == b'i' => {
                // This may be the operator `in`.
                level.chain += 1;
                sum += 1;
            }
            _ => {}
        }
        most = most.max(sum);
        at += 1;
    }
    most
}

/// The position after a string literal.
fn behind_text(source: &[u8], start: usize, raw: bool) -> usize {
    let quote = source[start];
    let long = source[start..].starts_with(&[quote; 3]);
    let end: &[u8] = if long { &[quote; 3] } else { &[quote] };
    let mut at = start + end.len();
    while let Some(byte) = source.get(at) {
        match byte {
            b'\\' if !raw => at += 2,
            b'\n' if !long => return at,
            _ if source[at..].starts_with(end) => return at + end.len(),
            _ => at += 1,
        }
    }
    source.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Validator;

    #[test]
    fn what_stands_beside_something_is_no_deeper() {
        let check = |source: &str, want: usize| assert_eq!(depth(source.as_bytes()), want, "{source}");
        check("self.a.b == 1 && self.c == 1", 3);
        check("f(a.b, c, d.e.f)", 3);
        check("a ? b : c ? d : e.f", 3);
        check("a && b ? c : d && e ? f : g", 2);
        check("self.matches('[(.+)]') && x == \"((\\\"((\"", 2);
        check(r"x == r'\' + '((((' + '''a'b((((''' + y", 4);
        check("a // ((((\n + b", 1);
        check(")))) a.b", 1);
        check(&"x && ".repeat(900), 0);
        check(&format!("[{}]", "a.b, ".repeat(900)), 2);
    }

    #[test]
    fn what_is_too_deep_is_refused_and_what_is_not_has_stack_enough() {
        let deep = |count: usize, choices: usize| {
            [
                format!("self{} == 1", ".a".repeat(count)),
                format!("0{} == 0", " + 0".repeat(count)),
                format!("true{}", " == true".repeat(count)),
                format!("'a'{} == 'a'", ".trim()".repeat(count / 2)),
                format!("{{'a': 1}}{} == 1", "['a']".repeat(count)),
                format!("{}true", "true ? true : ".repeat(choices)),
                format!("{}true", "true && true ? true : ".repeat(choices)),
                format!("{}true", "!".repeat(count)),
                format!("1 in []{} ? true : true", " in []".repeat(count / 2)),
            ]
        };
        let check = |rule: &str| {
            let schema = serde_json::json!({"type": "object", "properties": {"spec": {"type": "object",
                "x-kubernetes-validations": [{"rule": rule, "message": "m"}]}}});
            let _ = Validator::crd(&schema);
            let stored = Arc::new(windlass_schema::Schema::stored(&schema));
            Validator::new(stored).validate(&serde_json::json!({"spec": {}}), None)
        };
        for rule in deep(DEEPEST + 10, DEEPEST + 10) {
            let told = check(&rule);
            assert!(
                told.iter()
                    .any(|error| error.detail.contains("recursion limit exceeded: 500")),
                "{told:?} {rule}"
            );
        }
        // Without optimisation, each level uses many times the stack of a release build.
        let roomy = std::thread::Builder::new().stack_size(256 << 20);
        let checked = roomy.spawn(move || {
            let told = check(&format!("{}true{}", "(".repeat(120), ")".repeat(120)));
            assert!(
                told.iter()
                    .any(|error| error.detail.contains("recursion limit exceeded")),
                "{told:?}"
            );
            for rule in deep(DEEPEST - 10, 90) {
                let told = check(&rule);
                assert!(
                    told.iter().all(|error| !error.detail.contains("limit")),
                    "{told:?} {rule}"
                );
            }
        });
        checked.unwrap().join().unwrap();
        let told = check(&format!("self.a == '{}'", "x".repeat(LONGEST)));
        assert!(
            told.iter().any(|error| error.detail.contains("size exceeds limit")),
            "{told:?}"
        );
    }
}
