//! Finds the error of an expression when several of its parts fail: the first one, as in Kubernetes.
//!
//! The engine returns the last error. Finding the first one has a cost, so only a failed expression is rewritten and evaluated
//! again. In the rewritten form, each operand beside a fallible operand records whether it succeeded ([`GOOD`]), and fails only
//! if no operand before it has failed.

use std::cell::RefCell;

use cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};
use cel::common::types::{DYN_TYPE, INT_TYPE};
use cel::{Context, DeclarationError, Env, ExecutionError, Value};

use super::library::{Args, arg, give};
use super::program::{call, each_part_mut, whole};

/// Clears both notes of a pair; returns false.
const BEGIN: &str = "@begin";
/// Clears the second note of a pair; returns false.
const NEXT: &str = "@next";
/// Clears the first note of a pair; returns its argument.
const ENTER: &str = "@enter";
/// Records that its argument is a boolean; returns it.
const GOOD: &str = "@good";
/// Whether one of a pair succeeded.
const EITHER: &str = "@either";
/// Whether the second of a pair succeeded, or is the first that failed. The first note records this.
const FIRST: &str = "@first";

thread_local! {
    static NOTES: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
}

/// The first error of a failed expression; `None` if there can be only one.
pub(super) fn first_error(expression: &IdedExpr, context: &Context<'_, '_>) -> Option<ExecutionError> {
    let mut expression = expression.clone();
    let mut notes = 0;
    rewrite(&mut expression, &mut notes);
    if notes == 0 {
        return None;
    }
    NOTES.set(vec![false; notes]);
    Value::resolve(&expression, context).err()
}

fn may_fail(at: &IdedExpr) -> bool {
    !matches!(at.expr, Expr::Ident(_) | Expr::Literal(_))
}

/// Whether a call is `&&` or `||`; true for `||`.
fn joins(at: &IdedExpr) -> Option<bool> {
    match &at.expr {
        Expr::Call(made) if made.args.len() == 2 && made.target.is_none() => match made.func_name.as_str() {
            operators::LOGICAL_OR => Some(true),
            operators::LOGICAL_AND => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Whether each step of a loop joins the result so far with its own; true for `||`.
fn folds(loop_: &ComprehensionExpr) -> Option<bool> {
    let Expr::Call(step) = &loop_.loop_step.expr else {
        return None;
    };
    let so_far = |at: &IdedExpr| matches!(&at.expr, Expr::Ident(name) if *name == loop_.accu_var);
    joins(&loop_.loop_step).filter(|_| step.args.first().is_some_and(so_far))
}

fn part(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn pair(notes: &mut usize) -> usize {
    *notes += 2;
    *notes - 2
}

fn on(name: &str, note: usize, of: Option<IdedExpr>) -> IdedExpr {
    let note = std::iter::once(whole(note as u64));
    call(name, note.chain(of).collect())
}

fn join(or: bool, left: IdedExpr, right: IdedExpr) -> IdedExpr {
    let name = if or {
        operators::LOGICAL_OR
    } else {
        operators::LOGICAL_AND
    };
    call(name, vec![left, right])
}

/// The right side of a join: its error counts only if `counts` holds; otherwise it has no effect.
fn unless(or: bool, right: IdedExpr, counts: IdedExpr) -> IdedExpr {
    if or {
        return join(false, right, counts);
    }
    join(true, right, call(operators::LOGICAL_NOT, vec![counts]))
}

fn rewrite(at: &mut IdedExpr, notes: &mut usize) {
    if let Expr::Comprehension(loop_) = &mut at.expr
        && let Some(or) = folds(loop_)
    {
        for part in [
            &mut loop_.iter_range,
            &mut loop_.accu_init,
            &mut loop_.loop_cond,
            &mut loop_.result,
        ] {
            rewrite(part, notes);
        }
        let Expr::Call(step) = &mut loop_.loop_step.expr else {
            return;
        };
        let Some(found) = step.args.get_mut(1).filter(|found| may_fail(found)) else {
            return;
        };
        rewrite(found, notes);
        let note = pair(notes);
        let good = on(GOOD, note + 1, Some(std::mem::take(found)));
        let counted = unless(or, good, on(FIRST, note, None));
        *found = join(true, on(NEXT, note, None), counted);
        let range = std::mem::take(&mut loop_.iter_range);
        loop_.iter_range = on(ENTER, note, Some(range));
        return;
    }
    each_part_mut(at, &mut |part| rewrite(part, notes));
    target_first(at, notes);
    let Some(or) = joins(at) else { return };
    let Expr::Call(made) = &mut at.expr else { return };
    if let [left, right] = made.args.as_mut_slice()
        && may_fail(left)
        && may_fail(right)
    {
        let note = pair(notes);
        let good = on(GOOD, note, Some(std::mem::take(left)));
        *left = join(true, on(BEGIN, note, None), good);
        let good = on(GOOD, note + 1, Some(std::mem::take(right)));
        *right = unless(or, good, on(EITHER, note, None));
    }
}

/// Makes the target of a call evaluate before its arguments, by binding it to a name.
fn target_first(at: &mut IdedExpr, notes: &mut usize) {
    let Expr::Call(made) = &mut at.expr else { return };
    // A plain name may be a part of the function's name.
    let Some(target) = made.target.as_deref_mut().filter(|target| may_fail(target)) else {
        return;
    };
    if !made.args.iter().any(may_fail) {
        return;
    }
    let name = format!("@target{}", pair(notes));
    let named = || part(Expr::Ident(name.clone()));
    let target = std::mem::replace(target, named());
    let call = std::mem::take(at);
    at.expr = Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: part(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "@none".to_owned(),
        iter_var2: None,
        accu_init: target,
        loop_cond: part(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: named(),
        result: call,
        accu_var: name.clone(),
    }));
}

/// The index in the first argument.
fn note(args: &Args<'_, '_>) -> Result<usize, ExecutionError> {
    match arg(args, 0)? {
        Value::Int(at) => Ok(usize::try_from(at).unwrap_or(usize::MAX)),
        other => Err(ExecutionError::UnsupportedTargetType { target: other }),
    }
}

fn set(at: usize, to: bool) {
    NOTES.with_borrow_mut(|notes| {
        if let Some(note) = notes.get_mut(at) {
            *note = to;
        }
    });
}

fn get(at: usize) -> bool {
    NOTES.with_borrow(|notes| notes.get(at).copied().unwrap_or_default())
}

/// Declares the functions for rewritten expressions.
pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(BEGIN, "begin", vec![INT_TYPE], |args| {
        let at = note(&args)?;
        set(at, false);
        set(at + 1, false);
        give(false)
    })?;
    env.add_overload(NEXT, "next", vec![INT_TYPE], |args| {
        set(note(&args)? + 1, false);
        give(false)
    })?;
    env.add_overload(ENTER, "enter", vec![INT_TYPE, DYN_TYPE], |mut args| {
        set(note(&args)?, false);
        Ok(args.swap_remove(1))
    })?;
    env.add_overload(GOOD, "good", vec![INT_TYPE, DYN_TYPE], |mut args| {
        set(note(&args)?, matches!(arg(&args, 1), Ok(Value::Bool(_))));
        Ok(args.swap_remove(1))
    })?;
    env.add_overload(EITHER, "either", vec![INT_TYPE], |args| {
        let at = note(&args)?;
        give(get(at) || get(at + 1))
    })?;
    env.add_overload(FIRST, "first_error", vec![INT_TYPE], |args| {
        let at = note(&args)?;
        let (was, good) = (get(at), get(at + 1));
        set(at, was || !good);
        give(good || !was)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Validator;

    fn check(rule: &str, want: &str) {
        let leaf = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "m"}],
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}, "t": {"type": "string", "maxLength": 9},
                "u": {"type": "string", "maxLength": 9}, "yes": {"type": "boolean"}, "no": {"type": "boolean"}, "l": {"type": "array", "maxItems": 3, "items": leaf}},
        }}});
        let object = json!({"spec": {"yes": true, "no": false, "l": [{"a": 1}, {"b": 1}, {}]}});
        let errors = Validator::crd(&schema).unwrap().validate(&object, None);
        let shown: Vec<String> = errors.iter().map(|e| e.detail.clone()).collect();
        assert_eq!(shown.join("; "), want, "{rule}");
    }

    #[test]
    fn the_first_of_several_errors_is_reported() {
        let missing = |name: &str| format!("no such key: {name} evaluating rule: m");
        check("self.a == 1 || self.b == 1", &missing("a"));
        check("self.a == 1 && self.b == 1", &missing("a"));
        check("self.a == 1 || (self.b == 1 || self.c == 1)", &missing("a"));
        check("(self.a == 1 || self.b == 1) && self.c == 1", &missing("a"));
        check("self.a == 1 ? self.b == 1 : self.c == 1", &missing("a"));
        check("self.t.startsWith(self.u)", &missing("t"));
        check("self.t.substring(self.a).startsWith(self.u)", &missing("t"));
        check("self.l.exists(x, x.a == 5 && x.b == 5)", &missing("a"));
        check("self.l.exists(x, has(x.a) ? self.b == 1 : self.c == 1)", &missing("b"));
        check("self.l.all(x, has(x.a) ? self.b == 1 : self.c == 1)", &missing("b"));
        check("self.l.all(x, x.a == 1 || x.b == 2)", &missing("a"));
        check("self.l.all(x, self.l.exists(y, y.a == 5 || x.b == 5))", &missing("b"));
    }

    #[test]
    fn an_error_counts_only_where_nothing_decides() {
        let missing = |name: &str| format!("no such key: {name} evaluating rule: m");
        check("self.no || self.b == 1", &missing("b"));
        check("self.yes && self.b == 1", &missing("b"));
        check("self.a == 1 || self.no", &missing("a"));
        check("self.a == 1 || self.yes", "");
        check("self.yes || self.b == 1", "");
        check("self.a == 1 && self.no", "m");
        check("(self.a == 1 || self.yes) && self.b == 1", &missing("b"));
        check("(self.a == 1 && self.no) || self.b == 1", &missing("b"));
        check("self.l.exists(x, x.a == 1)", "");
        check("self.l.all(x, x.a == 2)", "m");
    }
}
