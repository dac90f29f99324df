//! Compiled expressions: parsed, and rewritten so that evaluation has a cost and a limit.

use std::cell::Cell;
use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, MapEntryExpr, operators};
use cel::common::ast::{EntryExpr, IdedEntryExpr, SourceInfo};
use cel::common::types::{DYN_TYPE, INT_TYPE, STRING_TYPE};
use cel::{Context, DeclarationError, Env, ExecutionError, Value};

use super::blame;
use super::checker::{self, Checked, Problem, each_part};
use super::depth;
use super::library::{self, AsVal as _, give, text};
use super::patterns::{MATCHES, Patterns};
use super::sizes;
use super::typing::Ty;

/// The cost limit of one evaluation, about 0.1 s.
pub(super) const PER_CALL: u64 = 1_000_000;
/// The longest text that a function creates.
const MAX_TEXT: usize = 16 << 20;

const SPEND: &str = "@spend";
const CHARGE: &str = "@charge";
const ENTRIES: &str = "@entries";
const REPLACE: &str = "@replace";

thread_local! {
    /// The remaining budget of the current evaluation.
    static LEFT: Cell<u64> = const { Cell::new(PER_CALL) };
}

/// A compiled expression.
pub(super) struct Program {
    source: String,
    /// The parsed expression, with macros expanded.
    parsed: cel::Program,
    /// The rewritten expression.
    run: IdedExpr,
    patterns: Arc<Patterns>,
    /// The least cost, without loops.
    base: u64,
}

/// The result of an evaluation.
pub(super) enum Outcome {
    Done(Result<Value, ExecutionError>),
    /// The cost limit was exceeded.
    TooExpensive,
}

impl Program {
    /// Parses an expression. Errors have Kubernetes' wording. Its patterns are among `known` ones.
    pub(super) fn compile(source: &str, known: &windlass_schema::Patterns) -> Result<Self, String> {
        depth::check(source)?;
        let parsed = library::env().compile(source).map_err(|errors| {
            // The engine's parser wraps this error into internal details.
            let deep = errors
                .errors
                .iter()
                .find(|error| error.msg.contains("Recursion limit of"));
            if deep.is_some() {
                return "expression recursion limit exceeded: 96".to_owned();
            }
            let shown = errors.errors.iter().map(|error| {
                let (line, column) = error.pos;
                shown_at(source, (line.max(1), column.max(1)), &error.msg)
            });
            shown.collect::<Vec<_>>().join("\n")
        })?;
        let mut run = parsed.expression().clone();
        lower(&mut run);
        Ok(Self {
            source: source.to_owned(),
            parsed,
            patterns: Patterns::of(&run, known)?,
            base: weight(&run),
            run,
        })
    }

    /// The parsed expression.
    pub(super) fn expression(&self) -> &IdedExpr {
        self.parsed.expression()
    }

    /// Whether it uses a variable.
    pub(super) fn uses(&self, variable: &str) -> bool {
        self.parsed.references().has_variable(variable)
    }

    /// The types of its parts with these variables, or its errors.
    pub(super) fn check(&self, variables: &[(&str, Ty)]) -> Result<Checked, String> {
        let (checked, mut problems) = checker::check(self.expression(), variables);
        if problems.is_empty() {
            checker::literals(self.expression(), &self.patterns, &mut problems);
        }
        if problems.is_empty() {
            Ok(checked)
        } else {
            Err(self.shown(problems))
        }
    }

    /// Problems in Kubernetes' wording.
    fn shown(&self, mut problems: Vec<Problem>) -> String {
        let info = self.parsed.source_info();
        problems.sort_by_key(|problem| info.offset_for(problem.id).map(|(start, _)| start));
        let shown = problems
            .iter()
            .map(|problem| shown_at(&self.source, position(&self.source, info, problem.id), &problem.words));
        shown.collect::<Vec<_>>().join("\n")
    }

    /// Evaluates it. Also returns the cost.
    pub(super) fn run(&self, context: &Context<'_, '_>) -> (Outcome, u64) {
        self.patterns.enter();
        LEFT.set(PER_CALL.saturating_sub(self.base));
        let result = Value::resolve(&self.run, context);
        let left = LEFT.get();
        if left == 0 {
            return (Outcome::TooExpensive, PER_CALL);
        }
        let result = result.map_err(|error| {
            LEFT.set(PER_CALL);
            let first = blame::first_error(&self.run, context).filter(|_| LEFT.get() > 0);
            first.unwrap_or(error)
        });
        (Outcome::Done(result), PER_CALL - left)
    }
}

fn position(source: &str, info: &SourceInfo, id: u64) -> (isize, isize) {
    let start = info.offset_for(id).map_or(0, |(start, _)| start as usize);
    let before = source.get(..start.min(source.len())).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (to_signed(line), to_signed(column))
}

fn to_signed(n: usize) -> isize {
    isize::try_from(n).unwrap_or(isize::MAX)
}

fn shown_at(source: &str, (line, column): (isize, isize), words: &str) -> String {
    let index = usize::try_from(line - 1).unwrap_or(0);
    let text = source.split('\n').nth(index).unwrap_or("");
    let dots = ".".repeat(usize::try_from(column - 1).unwrap_or(0));
    format!("ERROR: <input>:{line}:{column}: {words}\n | {text}\n | {dots}^")
}

/// The cost of evaluating a part without its operands, by Kubernetes' figures.
fn own_weight(at: &IdedExpr) -> u64 {
    let written = |part: &IdedExpr| matches!(part.expr, Expr::Literal(_));
    match &at.expr {
        Expr::Ident(_) => 1,
        Expr::Select(select) => u64::from(!select.test),
        Expr::Call(call) => match call.func_name.as_str() {
            operators::LOGICAL_OR | operators::LOGICAL_AND | operators::CONDITIONAL => 0,
            name if sizes::is_passing(name) => 0,
            _ => 1,
        },
        // A literal list is created only once.
        Expr::List(list) if list.elements.iter().all(written) => 0,
        Expr::List(_) => 10,
        Expr::Map(_) => 30,
        Expr::Struct(_) => 40,
        Expr::Comprehension(_) | Expr::Literal(_) | Expr::Unspecified => 0,
    }
}

/// The approximate cost of evaluating an expression once, without loops: lookups and calls.
fn weight(at: &IdedExpr) -> u64 {
    if let Expr::Comprehension(loop_) = &at.expr {
        weight(&loop_.iter_range) + weight(&loop_.accu_init) + weight(&loop_.result)
    } else {
        let mut sum = own_weight(at);
        each_part(at, &mut |part| sum += weight(part));
        sum
    }
}

pub(super) fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        }),
    }
}

fn literal(value: LiteralValue) -> IdedExpr {
    IdedExpr {
        id: 0,
        expr: Expr::Literal(value),
    }
}

pub(super) fn whole(n: u64) -> IdedExpr {
    literal(LiteralValue::Int(i64::try_from(n).unwrap_or(i64::MAX).into()))
}

/// Calls `then` for each direct part of an expression.
pub(super) fn each_part_mut(at: &mut IdedExpr, then: &mut dyn FnMut(&mut IdedExpr)) {
    let entries = |entries: &mut Vec<IdedEntryExpr>, then: &mut dyn FnMut(&mut IdedExpr)| {
        for entry in entries {
            match &mut entry.expr {
                EntryExpr::StructField(field) => then(&mut field.value),
                EntryExpr::MapEntry(MapEntryExpr { key, value, .. }) => {
                    then(key);
                    then(value);
                }
            }
        }
    };
    match &mut at.expr {
        Expr::Call(call) => call
            .target
            .as_deref_mut()
            .into_iter()
            .chain(&mut call.args)
            .for_each(then),
        Expr::Comprehension(loop_) => {
            then(&mut loop_.iter_range);
            then(&mut loop_.accu_init);
            then(&mut loop_.loop_cond);
            then(&mut loop_.loop_step);
            then(&mut loop_.result);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(then),
        Expr::Map(map) => entries(&mut map.entries, then),
        Expr::Struct(made) => entries(&mut made.entries, then),
        Expr::Select(select) => then(&mut select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// Rewrites an expression: loops are counted and have one variable, and functions are paid for by the sizes of their arguments.
fn lower(at: &mut IdedExpr) {
    each_part_mut(at, &mut lower);
    sizes::lower(at);
    let id = at.id;
    match &mut at.expr {
        Expr::Comprehension(loop_) => lower_loop(id, loop_),
        Expr::Call(made) if made.target.is_some() && made.func_name == "replace" => {
            REPLACE.clone_into(&mut made.func_name);
        }
        Expr::Call(made) if made.func_name == "matches" => MATCHES.clone_into(&mut made.func_name),
        // Functions that create long lists pay for their length.
        Expr::Call(made) if made.func_name == "range" && made.target.is_some() => {
            let made = std::mem::take(at);
            *at = call(CHARGE, vec![made, whole(1)]);
        }
        _ => {}
    }
}

fn lower_loop(id: u64, loop_: &mut ComprehensionExpr) {
    if let Some(second) = loop_.iter_var2.take() {
        let entry = format!("@entry{id}");
        for (name, index) in [(loop_.iter_var.clone(), 0), (second, 1)] {
            substitute(&mut loop_.loop_cond, &name, &entry, index);
            substitute(&mut loop_.loop_step, &name, &entry, index);
        }
        loop_.iter_var = entry;
        let range = std::mem::take(&mut loop_.iter_range);
        loop_.iter_range = call(ENTRIES, vec![range]);
    }
    let each = weight(&loop_.loop_cond) + weight(&loop_.loop_step);
    match &loop_.loop_cond.expr {
        // The loop only binds a value to a name.
        Expr::Literal(LiteralValue::Boolean(goes_on)) if !*goes_on.inner() => {}
        // The loop visits every element: all are paid for at once.
        Expr::Literal(_) => {
            let range = std::mem::take(&mut loop_.iter_range);
            loop_.iter_range = call(CHARGE, vec![range, whole(each)]);
        }
        _ => {
            let condition = std::mem::take(&mut loop_.loop_cond);
            let stop = literal(LiteralValue::Boolean(false.into()));
            let paid = call(SPEND, vec![whole(each)]);
            loop_.loop_cond = call(operators::CONDITIONAL, vec![paid, condition, stop]);
        }
    }
}

/// Replaces a variable by a part of another one.
fn substitute(at: &mut IdedExpr, name: &str, by: &str, index: u64) {
    match &mut at.expr {
        Expr::Ident(found) if found == name => {
            let entry = IdedExpr {
                id: 0,
                expr: Expr::Ident(by.to_owned()),
            };
            *at = call(operators::INDEX, vec![entry, whole(index)]);
        }
        Expr::Comprehension(loop_) => {
            substitute(&mut loop_.iter_range, name, by, index);
            substitute(&mut loop_.accu_init, name, by, index);
            let hidden = loop_.iter_var == name || loop_.accu_var == name || loop_.iter_var2.as_deref() == Some(name);
            if !hidden {
                substitute(&mut loop_.loop_cond, name, by, index);
                substitute(&mut loop_.loop_step, name, by, index);
                substitute(&mut loop_.result, name, by, index);
            }
        }
        _ => each_part_mut(at, &mut |part| substitute(part, name, by, index)),
    }
}

/// Subtracts from the remaining budget; false if it is exceeded.
pub(super) fn spend(cost: u64) -> bool {
    let left = LEFT.get().saturating_sub(cost);
    LEFT.set(left);
    left > 0
}

pub(super) fn too_expensive() -> ExecutionError {
    ExecutionError::function_error("", "operation cancelled: actual cost limit exceeded")
}

fn cost(value: &Value) -> u64 {
    match value {
        Value::Int(n) => u64::try_from(*n).unwrap_or(u64::MAX),
        _ => 1,
    }
}

/// Declares the functions for rewritten expressions.
pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(SPEND, "spend", vec![INT_TYPE], |args| {
        let each = cost(&library::arg(&args, 0)?);
        give(spend(each))
    })?;
    env.add_overload(CHARGE, "charge", vec![DYN_TYPE, INT_TYPE], |mut args| {
        let each = cost(&library::arg(&args, 1)?);
        let range = args.swap_remove(0);
        let size = range.as_ref_val().as_sizer().map_or(1, |sized| *sized.size().inner());
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        if size > 0 && !spend(size.saturating_mul(each)) {
            return Err(too_expensive());
        }
        Ok(range)
    })?;
    env.add_overload(ENTRIES, "entries", vec![DYN_TYPE], |args| {
        let pair = |key: Value, value: Value| Value::List(Arc::new(vec![key, value]));
        let pairs: Vec<Value> = match library::arg(&args, 0)? {
            Value::List(items) => {
                let index = |at: usize| Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
                let each = items.iter().enumerate();
                each.map(|(at, item)| pair(index(at), item.clone())).collect()
            }
            Value::Map(map) => {
                let mut entries: Vec<_> = map.map.iter().collect();
                entries.sort_by_key(|(a, _)| *a);
                let each = entries.into_iter();
                each.map(|(key, value)| pair(key.clone().into(), value.clone()))
                    .collect()
            }
            other => return Err(ExecutionError::UnsupportedTargetType { target: other }),
        };
        give(Value::List(Arc::new(pairs)))
    })?;
    env.add_member_overload(
        REPLACE,
        "replace_all",
        STRING_TYPE,
        vec![STRING_TYPE, STRING_TYPE],
        |args| give(replaced(&args)?),
    )?;
    env.add_member_overload(
        REPLACE,
        "replace_some",
        STRING_TYPE,
        vec![STRING_TYPE, STRING_TYPE, INT_TYPE],
        |args| give(replaced(&args)?),
    )?;
    Ok(())
}

fn replaced(args: &library::Args<'_, '_>) -> Result<Value, ExecutionError> {
    let (from, to) = (text(args, 1)?, text(args, 2)?);
    let source = text(args, 0)?;
    let limit = match args.len() {
        4 => match library::arg(args, 3)? {
            Value::Int(n) => usize::try_from(n).unwrap_or(usize::MAX),
            _ => usize::MAX,
        },
        _ => usize::MAX,
    };
    let most = source.len().saturating_add(1).min(limit);
    let possible = if from.is_empty() {
        most
    } else {
        source.len() / from.len()
    };
    let made = possible.saturating_mul(to.len());
    sizes::pay_text(source.len().saturating_add(made))?;
    if made > MAX_TEXT {
        return Err(ExecutionError::function_error("replace", "the result is too long"));
    }
    Ok(Value::String(Arc::new(source.replacen(from.as_str(), &to, limit))))
}
