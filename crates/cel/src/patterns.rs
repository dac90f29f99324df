//! Regular expressions in rules: literal patterns are compiled once with their rule, not at each evaluation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use cel::common::types::STRING_TYPE;
use cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

use super::checker::each_part;
use super::library::{Args, Outcome, give, text};
use windlass_schema::compile_pattern;

/// The name of `matches` in evaluated expressions: the engine's own function would compile its pattern each time, and in another
/// dialect.
pub(super) const MATCHES: &str = "@matches";

thread_local! {
    /// The patterns of the expression that this thread evaluates.
    static AT_HAND: RefCell<Arc<Patterns>> = RefCell::default();
}

/// The literal patterns of an expression.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, Arc<Regex>>);

impl Patterns {
    /// Compiles the patterns of an expression. An invalid pattern is an error when it is used.
    pub(super) fn of(expression: &IdedExpr) -> Arc<Self> {
        let mut found = Self::default();
        found.collect(expression);
        Arc::new(found)
    }

    fn collect(&mut self, at: &IdedExpr) {
        if let Expr::Call(call) = &at.expr
            && let MATCHES | "find" | "findAll" = call.func_name.as_str()
            && let Some(pattern) = call.args.get(usize::from(call.target.is_none()))
            && let Expr::Literal(LiteralValue::String(source)) = &pattern.expr
            && let Ok(regex) = compile_pattern(source.inner())
        {
            self.0.insert(source.inner().to_owned(), Arc::new(regex));
        }
        each_part(at, &mut |part| self.collect(part));
    }

    /// Makes them available to the next evaluation of this thread.
    pub(super) fn enter(self: &Arc<Self>) {
        AT_HAND.set(Arc::clone(self));
    }
}

/// Compiles a pattern.
pub(super) fn regex(source: &str) -> Result<Arc<Regex>, String> {
    let known = AT_HAND.with_borrow(|patterns| patterns.0.get(source).cloned());
    known.map_or_else(|| compile_pattern(source).map(Arc::new), Ok)
}

fn matches<'b, 'v>(args: &Args<'_, '_>) -> Outcome<'b, 'v> {
    let (text, pattern) = (text(args, 0)?, text(args, 1)?);
    super::sizes::pay_search(&text, &pattern)?;
    let regex = regex(&pattern).map_err(|why| ExecutionError::function_error("matches", why))?;
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
