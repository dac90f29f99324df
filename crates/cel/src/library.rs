//! The functions available to rules.

mod formats;
mod network;
mod numbers;
mod optionals;

use std::sync::{Arc, LazyLock};

use cel::common::types::{DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE, Type};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, Value, extensions};
use regex::Regex;

use super::values::Extra;

type Extension = fn(&mut Env) -> Result<(), DeclarationError>;

/// All extensions of the standard functions.
const EXTENSIONS: [Extension; 8] = [
    extensions::strings,
    extensions::lists,
    kubernetes,
    super::macros::register,
    super::program::register,
    super::patterns::register,
    super::sizes::register,
    super::blame::register,
];

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(true);
    for extension in EXTENSIONS {
        // Fails only on duplicate names, which a test rules out.
        let _ = env.add_extension(extension);
    }
    Arc::new(env)
});

/// The environment of all rules.
pub(super) fn env() -> Arc<Env> {
    Arc::clone(&ENV)
}

pub(super) type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
pub(super) type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub(super) fn arg(args: &[CowVal<'_, '_>], at: usize) -> Result<Value, ExecutionError> {
    let value = args.get(at).ok_or(ExecutionError::MissingArgumentOrTarget)?;
    Value::try_from(value.as_ref_val())
}

pub(super) fn text(args: &[CowVal<'_, '_>], at: usize) -> Result<Arc<String>, ExecutionError> {
    match arg(args, at)? {
        Value::String(text) => Ok(text),
        other => Err(ExecutionError::UnsupportedTargetType { target: other }),
    }
}

fn list(args: &[CowVal<'_, '_>], at: usize) -> Result<Arc<Vec<Value>>, ExecutionError> {
    match arg(args, at)? {
        Value::List(items) => Ok(items),
        other => Err(ExecutionError::UnsupportedTargetType { target: other }),
    }
}

fn extra(args: &[CowVal<'_, '_>], at: usize) -> Result<Extra, ExecutionError> {
    args.get(at)
        .and_then(|value| value.as_ref_val().downcast_ref::<Extra>())
        .cloned()
        .ok_or(ExecutionError::MissingArgumentOrTarget)
}

pub(super) fn give<'b, 'v>(value: impl Into<Value>) -> Outcome<'b, 'v> {
    let boxed: Box<dyn Val> = value.into().try_into()?;
    Ok(CowVal::Owned(boxed))
}

fn give_extra<'b, 'v>(value: Option<Extra>, function: &str, problem: &str) -> Outcome<'b, 'v> {
    value
        .map(CowVal::owned)
        .ok_or_else(|| ExecutionError::function_error(function, problem))
}

pub(super) trait AsVal<'v> {
    fn as_ref_val(&self) -> &(dyn Val + 'v);
}

impl<'v> AsVal<'v> for CowVal<'_, 'v> {
    fn as_ref_val(&self) -> &(dyn Val + 'v) {
        match self {
            Self::Borrowed(value) => *value,
            Self::Owned(value) => value.as_ref(),
        }
    }
}

fn kubernetes(env: &mut Env) -> Result<(), DeclarationError> {
    strings_and_lists(env)?;
    network::register(env)?;
    numbers::register(env)?;
    super::permissions::register(env)?;
    formats::register(env)?;
    optionals::register(env)
}

trait OwnedType {
    fn to_owned_type(&'static self) -> Type;
}

impl OwnedType for Type {
    fn to_owned_type(&'static self) -> Type {
        Self::new_unspecified_type(
            NAMES
                .iter()
                .find(|name| **name == self.name())
                .copied()
                .unwrap_or("dyn"),
        )
    }
}

const NAMES: [&str; 6] = [
    "kubernetes.URL",
    "net.IP",
    "net.CIDR",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.NamedFormat",
];

fn strings_and_lists(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("find", "string_find", STRING_TYPE, vec![STRING_TYPE], |args| {
        let (text, pattern) = (text(&args, 0)?, pattern(&args)?);
        give(pattern.find(&text).map_or("", |found| found.as_str()))
    })?;
    env.add_member_overload("findAll", "string_find_all", STRING_TYPE, vec![STRING_TYPE], |args| {
        find_all(&args)
    })?;
    env.add_member_overload(
        "findAll",
        "string_find_all_n",
        STRING_TYPE,
        vec![STRING_TYPE, INT_TYPE],
        |args| find_all(&args),
    )?;
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], |args| {
        give(list(&args, 0)?.is_sorted())
    })?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], |args| sum(&args))?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], |args| {
        extreme(&args, std::cmp::Ordering::Less)
    })?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], |args| {
        extreme(&args, std::cmp::Ordering::Greater)
    })?;
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, vec![DYN_TYPE], |args| {
        let (items, wanted) = (list(&args, 0)?, arg(&args, 1)?);
        give(place(items.iter().position(|item| *item == wanted)))
    })?;
    env.add_member_overload("lastIndexOf", "list_last_index_of", LIST_TYPE, vec![DYN_TYPE], |args| {
        let (items, wanted) = (list(&args, 0)?, arg(&args, 1)?);
        give(place(items.iter().rposition(|item| *item == wanted)))
    })?;
    env.add_overload("sets.contains", "sets_contains", vec![LIST_TYPE, LIST_TYPE], |args| {
        let (all, some) = (list(&args, 0)?, list(&args, 1)?);
        give(some.iter().all(|item| all.contains(item)))
    })?;
    env.add_overload(
        "sets.equivalent",
        "sets_equivalent",
        vec![LIST_TYPE, LIST_TYPE],
        |args| {
            let (a, b) = (list(&args, 0)?, list(&args, 1)?);
            give(a.iter().all(|item| b.contains(item)) && b.iter().all(|item| a.contains(item)))
        },
    )?;
    env.add_overload(
        "sets.intersects",
        "sets_intersects",
        vec![LIST_TYPE, LIST_TYPE],
        |args| {
            let (a, b) = (list(&args, 0)?, list(&args, 1)?);
            give(a.iter().any(|item| b.contains(item)))
        },
    )
}

fn pattern(args: &[CowVal<'_, '_>]) -> Result<Arc<Regex>, ExecutionError> {
    let pattern = text(args, 1)?;
    super::sizes::pay_search(&text(args, 0)?, &pattern)?;
    super::patterns::regex(&pattern, |why| {
        ExecutionError::function_error("find", format!("Illegal regex: {why}"))
    })
}

fn find_all<'b, 'v>(args: &Args<'_, '_>) -> Outcome<'b, 'v> {
    let limit = match args.len() {
        3 => match arg(args, 2)? {
            Value::Int(n) => usize::try_from(n).unwrap_or(usize::MAX),
            _ => usize::MAX,
        },
        _ => usize::MAX,
    };
    let (text, pattern) = (text(args, 0)?, pattern(args)?);
    let found = pattern
        .find_iter(&text)
        .take(limit)
        .map(|m| Value::String(Arc::new(m.as_str().to_owned())));
    give(Value::List(Arc::new(found.collect())))
}

fn place(found: Option<usize>) -> Value {
    Value::Int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn sum<'b, 'v>(args: &Args<'_, '_>) -> Outcome<'b, 'v> {
    let items = list(args, 0)?;
    let overflow = || ExecutionError::function_error("sum", "integer overflow");
    let mut total = match items.first() {
        Some(Value::Float(_)) => Value::Float(0.0),
        Some(Value::UInt(_)) => Value::UInt(0),
        Some(Value::Duration(_)) => Value::Duration(chrono::Duration::zero()),
        _ => Value::Int(0),
    };
    for item in items.iter() {
        total = match (total, item) {
            (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or_else(overflow)?),
            (Value::UInt(a), Value::UInt(b)) => Value::UInt(a.checked_add(*b).ok_or_else(overflow)?),
            (Value::Float(a), Value::Float(b)) => Value::Float(a + b),
            (Value::Duration(a), Value::Duration(b)) => Value::Duration(a.checked_add(b).ok_or_else(overflow)?),
            (_, other) => return Err(ExecutionError::UnsupportedTargetType { target: other.clone() }),
        };
    }
    give(total)
}

fn extreme<'b, 'v>(args: &Args<'_, '_>, wanted: std::cmp::Ordering) -> Outcome<'b, 'v> {
    let items = list(args, 0)?;
    let best = items.iter().reduce(|best, item| {
        if item.partial_cmp(best) == Some(wanted) {
            item
        } else {
            best
        }
    });
    match best {
        Some(best) => give(best.clone()),
        None => Err(ExecutionError::function_error("min/max", "called on empty list")),
    }
}

#[cfg(test)]
mod tests;
