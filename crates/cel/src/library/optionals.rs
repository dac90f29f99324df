//! Functions for lists that give or take optionals.

use cel::common::functions::Function;
use cel::common::types::{CelList, CelOptional, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::{Args, AsVal as _, Outcome};

/// Declares the functions.
pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    let ends: [(&str, Function); 2] = [
        ("first", |args| Ok(end(items(&args)?.into_iter().next()))),
        ("last", |args| Ok(end(items(&args)?.pop()))),
    ];
    for (name, function) in ends {
        env.add_member_overload(name, &format!("list_{name}"), LIST_TYPE, vec![], function)?;
    }
    env.add_overload("optional.unwrap", "optional_unwrap", vec![LIST_TYPE], |args| {
        unwrapped(&args)
    })?;
    env.add_member_overload("unwrapOpt", "optional_unwrap_opt", LIST_TYPE, vec![], |args| {
        unwrapped(&args)
    })
}

/// The items of the list that is the first argument.
fn items<'v>(args: &Args<'_, 'v>) -> Result<Vec<Box<dyn Val + 'v>>, ExecutionError> {
    let list = args
        .first()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?
        .as_ref_val();
    let mut each = list
        .as_iterable()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?
        .iter();
    let mut items = Vec::new();
    while let Some(item) = each.next() {
        items.push(item.clone_as_boxed());
    }
    Ok(items)
}

fn end<'b, 'v>(item: Option<Box<dyn Val + 'v>>) -> CowVal<'b, 'v> {
    CowVal::owned(item.map_or_else(CelOptional::none, CelOptional::of))
}

/// The values of a list of optionals, without those that are none.
fn unwrapped<'b, 'v>(args: &Args<'_, 'v>) -> Outcome<'b, 'v> {
    let mut values = Vec::new();
    for item in items(args)? {
        let optional = item.downcast_ref::<CelOptional<'_>>();
        let optional = optional.ok_or_else(|| {
            ExecutionError::function_error("optional.unwrap", "the list has an element that is no optional")
        })?;
        values.extend(optional.option().map(Val::clone_as_boxed));
    }
    Ok(CowVal::owned(CelList::from(values)))
}
