//! Costs by the sizes of values, which bound the time and the memory of an evaluation. Functions over texts cost what they cost in
//! Kubernetes. A value that becomes an item of a list or of a map is copied, unlike in Kubernetes, and costs by its bytes.

use cel::common::ast::{EntryExpr, MapEntryExpr};
use cel::common::ast::{Expr, IdedExpr, operators};
use cel::common::types::{CelBytes, CelList, CelMap, CelOptional, CelString, DYN_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, Value};

use super::library::{Args, AsVal as _, Outcome, give, text};
use super::program::{call, spend, too_expensive};

/// `+`.
const ADD: &str = "@add";
/// Passes a value on that is copied.
const COPIED: &str = "@copied";
/// Passes a text on that a function has made.
const MADE: &str = "@read";
const JOIN: &str = "@join";

/// How many operands one call adds. A chain of additions becomes few calls, as each level of calls uses stack.
const OPERANDS: usize = 16;
/// Bytes that are copied for one unit of cost.
const COPY: u64 = 100;

/// Rewrites an expression, whose parts are rewritten already, so that its functions are paid for.
pub(super) fn lower(at: &mut IdedExpr) {
    match &mut at.expr {
        Expr::Call(made) if made.func_name == operators::ADD => {
            // A loop collects its results in a variable of its own. They are paid for one by one.
            let collects = made
                .args
                .first()
                .is_some_and(|first| matches!(&first.expr, Expr::Ident(name) if name.starts_with('@')));
            if collects {
                return;
            }
            ADD.clone_into(&mut made.func_name);
            if let [first, _] = made.args.as_mut_slice()
                && let Expr::Call(before) = &mut first.expr
                && before.func_name == ADD
                && before.args.len() < OPERANDS
            {
                let before = std::mem::take(&mut before.args);
                made.args.splice(..1, before);
            }
        }
        Expr::Call(made) => {
            if made.target.is_none() {
                return;
            }
            if made.func_name == "join" {
                JOIN.clone_into(&mut made.func_name);
            } else if made.func_name == "format" {
                let made = std::mem::take(at);
                *at = call(MADE, vec![made]);
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(|item| wrap(COPIED, item)),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(MapEntryExpr { value, .. }) = &mut entry.expr {
                    wrap(COPIED, value);
                }
            }
        }
        _ => {}
    }
}

fn wrap(function: &str, at: &mut IdedExpr) {
    // The items of lists and maps within are paid for already.
    if !matches!(at.expr, Expr::Literal(_) | Expr::List(_) | Expr::Map(_)) {
        let inner = std::mem::take(at);
        *at = call(function, vec![inner]);
    }
}

/// Whether a function only passes its argument on.
pub(super) fn is_passing(function: &str) -> bool {
    matches!(function, COPIED | MADE)
}

/// Pays a cost.
pub(super) fn pay(cost: u64) -> Result<(), ExecutionError> {
    if cost == 0 || spend(cost) {
        Ok(())
    } else {
        Err(too_expensive())
    }
}

/// Pays for going through this many characters or bytes.
pub(super) fn pay_text(size: usize) -> Result<(), ExecutionError> {
    pay(u64::try_from(size.div_ceil(10)).unwrap_or(u64::MAX))
}

/// Pays for a search of a text by a pattern.
pub(super) fn pay_search(text: &str, pattern: &str) -> Result<(), ExecutionError> {
    let cost = (text.len() + 1).div_ceil(10).saturating_mul(pattern.len().div_ceil(4));
    pay(u64::try_from(cost).unwrap_or(u64::MAX))
}

/// The number of bytes of a text.
fn length(value: &dyn Val) -> Option<usize> {
    let text = value.downcast_ref::<CelString<'_>>().map(|text| text.inner().len());
    text.or_else(|| value.downcast_ref::<CelBytes<'_>>().map(|bytes| bytes.inner().len()))
}

/// About as many bytes as a copy has.
fn bytes(value: &dyn Val) -> u64 {
    const EACH: u64 = 16;
    let below = if let Some(length) = length(value) {
        u64::try_from(length).unwrap_or(u64::MAX)
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        list.inner().iter().map(|item| bytes(item.as_ref())).sum()
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let entries = map.inner().iter();
        entries
            .map(|(key, value)| bytes(key.inner()) + bytes(value.as_ref()))
            .sum()
    } else if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        optional.option().map_or(0, bytes)
    } else {
        0
    };
    below.saturating_add(EACH)
}

fn pay_copy(value: &dyn Val) -> Result<(), ExecutionError> {
    pay(bytes(value) / COPY)
}

fn added<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let mut operands = args.into_iter();
    let mut sum = operands.next().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    for operand in operands {
        let (left, right) = (sum.as_ref_val(), operand.as_ref_val());
        if let (Some(left), Some(right)) = (length(left), length(right)) {
            pay_text(left.saturating_add(right))?;
        } else {
            pay_copy(left)?;
            pay_copy(right)?;
        }
        let Some(adder) = left.as_adder() else {
            let (left, right) = (Value::try_from(left)?, Value::try_from(right)?);
            return Err(ExecutionError::UnsupportedBinaryOperator("add", left, right));
        };
        sum = CowVal::Owned(adder.add(right)?.into_owned());
    }
    Ok(sum)
}

fn joined<'b, 'v>(args: &Args<'_, '_>) -> Outcome<'b, 'v> {
    let list = args
        .first()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?
        .as_ref_val();
    let separator = if args.len() > 1 {
        text(args, 1)?
    } else {
        std::sync::Arc::default()
    };
    let mut each = list
        .as_iterable()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?
        .iter();
    let mut parts: Vec<&str> = Vec::new();
    while let Some(item) = each.next() {
        let part = item.downcast_ref::<CelString<'_>>();
        parts.push(part.ok_or(ExecutionError::MissingArgumentOrTarget)?.inner());
    }
    let between = separator.len().saturating_mul(parts.len().saturating_sub(1));
    let size = parts.iter().map(|part| part.len()).fold(between, usize::saturating_add);
    pay_text(size)?;
    give(parts.join(separator.as_str()))
}

/// Declares the functions for rewritten expressions.
pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    for count in 2..=OPERANDS {
        let operands = (0..count).map(|_| DYN_TYPE).collect();
        env.add_overload(ADD, &format!("add_{count}"), operands, added)?;
    }
    env.add_overload(COPIED, "copied", vec![DYN_TYPE], |mut args| {
        pay_copy(
            args.first()
                .ok_or(ExecutionError::MissingArgumentOrTarget)?
                .as_ref_val(),
        )?;
        Ok(args.swap_remove(0))
    })?;
    env.add_overload(MADE, "made", vec![DYN_TYPE], |mut args| {
        let value = args.first().ok_or(ExecutionError::MissingArgumentOrTarget)?;
        pay_text(length(value.as_ref_val()).unwrap_or_default())?;
        Ok(args.swap_remove(0))
    })?;
    env.add_member_overload(JOIN, "join_all", LIST_TYPE, vec![], |args| joined(&args))?;
    env.add_member_overload(JOIN, "join_with", LIST_TYPE, vec![STRING_TYPE], |args| joined(&args))
}
