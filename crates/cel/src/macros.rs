//! Macros with two variables, over the entries of lists and maps.

use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators};
use cel::common::types::{DYN_TYPE, MAP_TYPE};
use cel::objects::{Key, Map};
use cel::parser::{Macro, MacroExprHelper};
use cel::{DeclarationError, Env, ExecutionError, ParseError, Value};

use super::library::{arg, give};

const RESULT: &str = "@result";
/// Adds an entry to a map.
const INSERT: &str = "@mapInsert";

type Arguments = Vec<IdedExpr>;
/// From the variables and other arguments to the initial value, condition, step and result of a loop.
type Shape = fn(&mut MacroExprHelper<'_>, &str, &str, Arguments) -> [IdedExpr; 4];

/// Declares the macros.
pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    let macros: [(&str, usize, Shape); 10] = [
        ("all", 3, all),
        ("exists", 3, exists),
        ("existsOne", 3, exists_one),
        ("exists_one", 3, exists_one),
        ("transformList", 3, transform_list),
        ("transformList", 4, transform_list),
        ("transformMap", 3, transform_map),
        ("transformMap", 4, transform_map),
        ("transformMapEntry", 3, transform_entry),
        ("transformMapEntry", 4, transform_entry),
    ];
    for (name, count, shape) in macros {
        env.add_macro(Macro::receiver(name, count, move |helper, target, args| {
            expand(helper, target, args, shape)
        }))?;
    }
    env.add_overload(
        "cel.@mapInsert",
        "map_insert",
        vec![MAP_TYPE, DYN_TYPE, DYN_TYPE],
        |args| {
            let key = key(arg(&args, 1)?)?;
            insert(arg(&args, 0)?, vec![(key, arg(&args, 2)?)])
        },
    )?;
    env.add_overload("cel.@mapInsert", "map_merge", vec![MAP_TYPE, MAP_TYPE], |args| {
        let added = match arg(&args, 1)? {
            Value::Map(map) => map.map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            other => return Err(ExecutionError::UnsupportedTargetType { target: other }),
        };
        insert(arg(&args, 0)?, added)
    })
}

fn key(value: Value) -> Result<Key, ExecutionError> {
    let key: Result<Key, Value> = value.try_into();
    key.map_err(ExecutionError::UnsupportedKeyType)
}

fn insert<'b, 'v>(map: Value, added: Vec<(Key, Value)>) -> super::library::Outcome<'b, 'v> {
    let Value::Map(map) = map else {
        return Err(ExecutionError::UnsupportedTargetType { target: map });
    };
    let mut entries = map.map.as_ref().clone();
    for (key, value) in added {
        if entries.contains_key(&key) {
            let words = format!("insert failed: key {key} already exists");
            return Err(ExecutionError::function_error("cel.@mapInsert", words));
        }
        entries.insert(key, value);
    }
    give(Value::Map(Map { map: Arc::new(entries) }))
}

fn expand(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Arguments,
    shape: Shape,
) -> Result<Option<IdedExpr>, ParseError> {
    let Some(range) = target.take() else {
        return Ok(None);
    };
    let mut rest = std::mem::take(args);
    let mut names = Vec::new();
    for name in rest.drain(..2) {
        match name.expr {
            Expr::Ident(text) => names.push(text),
            _ => return Err(helper.new_error(name.id, "argument must be a simple name")),
        }
    }
    let [first, second] = [names.remove(0), names.remove(0)];
    let [accu_init, loop_cond, loop_step, result] = shape(helper, &first, &second, rest);
    let made = Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: range,
        iter_var: first,
        iter_var2: Some(second),
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    }));
    Ok(Some(helper.next_expr(made)))
}

fn so_far(helper: &mut MacroExprHelper<'_>) -> IdedExpr {
    helper.next_expr(Expr::Ident(RESULT.to_owned()))
}

fn truth(helper: &mut MacroExprHelper<'_>, is: bool) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(is.into())))
}

fn call(helper: &mut MacroExprHelper<'_>, name: &str, args: Arguments) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args,
    }))
}

/// The condition, if there is one, and the last argument.
fn guarded(mut rest: Arguments) -> (Option<IdedExpr>, IdedExpr) {
    let last = rest.pop().unwrap_or_default();
    (rest.pop(), last)
}

/// A step that depends on the condition.
fn step_if(helper: &mut MacroExprHelper<'_>, guard: Option<IdedExpr>, step: IdedExpr) -> IdedExpr {
    match guard {
        None => step,
        Some(guard) => {
            let same = so_far(helper);
            call(helper, operators::CONDITIONAL, vec![guard, step, same])
        }
    }
}

fn all(helper: &mut MacroExprHelper<'_>, _: &str, _: &str, rest: Arguments) -> [IdedExpr; 4] {
    let (_, condition) = guarded(rest);
    let start = truth(helper, true);
    let accu = so_far(helper);
    let goes_on = call(helper, operators::NOT_STRICTLY_FALSE, vec![accu]);
    let accu = so_far(helper);
    let step = call(helper, operators::LOGICAL_AND, vec![accu, condition]);
    [start, goes_on, step, so_far(helper)]
}

fn exists(helper: &mut MacroExprHelper<'_>, _: &str, _: &str, rest: Arguments) -> [IdedExpr; 4] {
    let (_, condition) = guarded(rest);
    let start = truth(helper, false);
    let accu = so_far(helper);
    let not = call(helper, operators::LOGICAL_NOT, vec![accu]);
    let goes_on = call(helper, operators::NOT_STRICTLY_FALSE, vec![not]);
    let accu = so_far(helper);
    let step = call(helper, operators::LOGICAL_OR, vec![accu, condition]);
    [start, goes_on, step, so_far(helper)]
}

fn exists_one(helper: &mut MacroExprHelper<'_>, _: &str, _: &str, rest: Arguments) -> [IdedExpr; 4] {
    let (_, condition) = guarded(rest);
    let number =
        |helper: &mut MacroExprHelper<'_>, n: i64| helper.next_expr(Expr::Literal(LiteralValue::Int(n.into())));
    let start = number(helper, 0);
    let goes_on = truth(helper, true);
    let (accu, one) = (so_far(helper), number(helper, 1));
    let more = call(helper, operators::ADD, vec![accu, one]);
    let step = step_if(helper, Some(condition), more);
    let (accu, one) = (so_far(helper), number(helper, 1));
    let result = call(helper, operators::EQUALS, vec![accu, one]);
    [start, goes_on, step, result]
}

fn transform_list(helper: &mut MacroExprHelper<'_>, _: &str, _: &str, rest: Arguments) -> [IdedExpr; 4] {
    let (guard, element) = guarded(rest);
    let start = helper.next_expr(Expr::List(ListExpr::new(Vec::new())));
    let goes_on = truth(helper, true);
    let accu = so_far(helper);
    let added = helper.next_expr(Expr::List(ListExpr::new(vec![element])));
    let step = call(helper, operators::ADD, vec![accu, added]);
    let step = step_if(helper, guard, step);
    [start, goes_on, step, so_far(helper)]
}

fn into_map(helper: &mut MacroExprHelper<'_>, guard: Option<IdedExpr>, added: Arguments) -> [IdedExpr; 4] {
    let start = helper.next_expr(Expr::Map(MapExpr { entries: Vec::new() }));
    let goes_on = truth(helper, true);
    let mut args = vec![so_far(helper)];
    args.extend(added);
    let library = helper.next_expr(Expr::Ident("cel".to_owned()));
    let step = helper.next_expr(Expr::Call(CallExpr {
        func_name: INSERT.to_owned(),
        target: Some(Box::new(library)),
        args,
    }));
    let step = step_if(helper, guard, step);
    [start, goes_on, step, so_far(helper)]
}

fn transform_map(helper: &mut MacroExprHelper<'_>, first: &str, _: &str, rest: Arguments) -> [IdedExpr; 4] {
    let (guard, value) = guarded(rest);
    let key = helper.next_expr(Expr::Ident(first.to_owned()));
    into_map(helper, guard, vec![key, value])
}

fn transform_entry(helper: &mut MacroExprHelper<'_>, _: &str, _: &str, rest: Arguments) -> [IdedExpr; 4] {
    let (guard, entry) = guarded(rest);
    into_map(helper, guard, vec![entry])
}
