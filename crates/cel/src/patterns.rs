//! Regular expressions in rules: literal patterns are compiled once with their rule, not at each evaluation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use cel::common::types::STRING_TYPE;
use cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

use super::checker::each_part;
use windlass_meta::budget::PATTERN_COST;

use super::library::{Args, Outcome, give, text};
use windlass_schema::{PatternError, Patterns as Known};

/// The name of `matches` in evaluated expressions: the engine's own function would compile its pattern each time, and in another
/// dialect.
pub(super) const MATCHES: &str = "@matches";

thread_local! {
    /// The patterns of the expression that this thread evaluates.
    static AT_HAND: RefCell<Arc<Patterns>> = RefCell::default();
}

/// The literal patterns of an expression, or why one is none.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, Result<Arc<Regex>, String>>);

impl Patterns {
    /// Compiles the patterns of an expression. An invalid pattern is an error when it is used, and one beyond the budget is an error at once.
    pub(super) fn of(expression: &IdedExpr, known: &Known) -> Result<Arc<Self>, String> {
        let mut found = Self::default();
        found.collect(expression, known)?;
        Ok(Arc::new(found))
    }

    /// Whether this is one of them, and invalid.
    pub(super) fn is_invalid(&self, source: &str) -> bool {
        self.0.get(source).is_some_and(Result::is_err)
    }

    fn collect(&mut self, at: &IdedExpr, known: &Known) -> Result<(), String> {
        if let Expr::Call(call) = &at.expr
            && let MATCHES | "find" | "findAll" = call.func_name.as_str()
            && let Some(pattern) = call.args.get(usize::from(call.target.is_none()))
            && let Expr::Literal(LiteralValue::String(source)) = &pattern.expr
        {
            let compiled = match known.compile(source.inner()) {
                Err(PatternError::TooLarge(why)) => return Err(why),
                compiled => compiled.map(Arc::new).map_err(|why| why.to_string()),
            };
            self.0.insert(source.inner().to_owned(), compiled);
        }
        let mut result = Ok(());
        each_part(at, &mut |part| {
            if result.is_ok() {
                result = self.collect(part, known);
            }
        });
        result
    }

    /// Makes them available to the next evaluation of this thread.
    pub(super) fn enter(self: &Arc<Self>) {
        AT_HAND.set(Arc::clone(self));
    }
}

/// A compiled pattern, for the function of this name. Compiling one that is not literal is paid for, because each evaluation has another.
pub(super) fn regex(source: &str, wrong: impl Fn(String) -> ExecutionError) -> Result<Arc<Regex>, ExecutionError> {
    if let Some(known) = AT_HAND.with_borrow(|patterns| patterns.0.get(source).cloned()) {
        return known.map_err(wrong);
    }
    let made = Known::within(PATTERN_COST);
    let compiled = made.compile(source);
    super::sizes::pay(PATTERN_COST - made.left().unwrap_or(0))?;
    compiled.map(Arc::new).map_err(|why| wrong(why.to_string()))
}

fn matches<'b, 'v>(args: &Args<'_, '_>) -> Outcome<'b, 'v> {
    let (text, pattern) = (text(args, 0)?, text(args, 1)?);
    super::sizes::pay_search(&text, &pattern)?;
    let regex = regex(&pattern, |why| ExecutionError::function_error("matches", why))?;
    give(regex.is_match(&text))
}

/// Declares the replacement of `matches`.
pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(MATCHES, "text_matches", vec![STRING_TYPE, STRING_TYPE], |args| {
        matches(&args)
    })?;
    env.add_member_overload(MATCHES, "matches_text", STRING_TYPE, vec![STRING_TYPE], |args| {
        matches(&args)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use crate::Validator;

    fn check(rule: &str, want: &str) {
        let text = json!({"type": "string", "maxLength": 9});
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "m"}],
            "properties": {"text": text, "pattern": text},
        }}});
        let object = json!({"spec": {"text": "\u{661}", "pattern": "^\\d$"}});
        let errors = Validator::crd(&schema).unwrap().validate(&object, None);
        let shown: Vec<String> = errors.iter().map(|e| e.detail.clone()).collect();
        assert_eq!(shown.join("; "), want, "{rule}");
    }

    #[test]
    fn patterns_are_of_one_dialect_whether_written_out_or_not() {
        check(r"self.text.matches('^\\d$')", "m");
        check("self.text.matches(self.pattern)", "m");
        check(r"matches(self.text, '^\\d$')", "m");
        check(r"self.text.find('^\\d$') == ''", "");
        check("self.text.findAll(self.pattern) == []", "");
        check(r"self.text.matches('^\\D$') && self.text.find('.') == self.text", "");
    }

    /// A literal pattern is compiled once, and is part of the budget of its schema. Any other is compiled at each evaluation.
    #[test]
    fn patterns_that_are_put_together_are_paid_for() {
        check(
            r"self.text.matches('(\\pL{100})' + '{10}')",
            "pattern is too large: it costs 2802030 to compile, and at most 250000 is allowed; shorten it, or lower its repetitions evaluating rule: m",
        );
        // The estimate for a new schema refuses so many, that for a stored one is not made again.
        let many = (0..30).map(|n| format!(r"!'a'.matches('\\pL{{20}}' + string({n}))"));
        let rule = many.collect::<Vec<_>>().join(" && ");
        let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "m"}]});
        let stored = Arc::new(windlass_schema::Schema::stored(&schema));
        let errors = Validator::new(stored).validate(&json!({}), None);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].detail.contains("cost"), "{errors:?}");
    }

    #[test]
    fn an_invalid_pattern_is_reported() {
        let words = "error parsing regexp: missing closing ): `(a`";
        check("self.text.matches('(' + 'a')", &format!("{words} evaluating rule: m"));
        check(
            "self.text.find('(' + 'a') == ''",
            &format!("Illegal regex: {words} evaluating rule: m"),
        );
    }
}
