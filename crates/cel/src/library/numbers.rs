//! Functions for quantities and semantic versions.

use cel::common::functions::Function;
use cel::common::types::{BOOL_TYPE, DURATION_TYPE, INT_TYPE, STRING_TYPE, Type};
use cel::{DeclarationError, Env, ExecutionError, Value};
use windlass_gocompat::quantity;

use super::{Args, Outcome, OwnedType as _, arg, extra, give, give_extra, text};
use crate::values::{self, Extra, QUANTITY, SEMVER};

pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("isQuantity", "is_quantity", vec![STRING_TYPE], |args| {
        give(quantity::unbounded_nanos(&text(&args, 0)?).is_some())
    })?;
    env.add_overload("quantity", "quantity_of", vec![STRING_TYPE], |args| {
        let parsed = quantity::unbounded_nanos(&text(&args, 0)?).map(Extra::Quantity);
        give_extra(
            parsed,
            "quantity",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )
    })?;
    for tolerant in [false, true] {
        let (id, arguments): (_, fn() -> Vec<Type>) = if tolerant {
            ("semver_tolerant", || vec![STRING_TYPE, BOOL_TYPE])
        } else {
            ("semver", || vec![STRING_TYPE])
        };
        env.add_overload("isSemver", &format!("is_{id}"), arguments(), |args| {
            give(version(&args)?.is_some())
        })?;
        env.add_overload("semver", &format!("{id}_of"), arguments(), |args| {
            let version = version(&args)?.map(Extra::Semver);
            give_extra(version, "semver", "not a semantic version")
        })?;
    }
    for (name, of) in [("quantity", &QUANTITY), ("semver", &SEMVER)] {
        let functions: [(&str, Function); 3] = [
            ("isGreaterThan", |args| {
                give(order(&args)? == std::cmp::Ordering::Greater)
            }),
            ("isLessThan", |args| give(order(&args)? == std::cmp::Ordering::Less)),
            ("compareTo", |args| give(order(&args)? as i64)),
        ];
        for (function, op) in functions {
            env.add_member_overload(
                function,
                &format!("{name}_{function}"),
                of.to_owned_type(),
                vec![of.to_owned_type()],
                op,
            )?;
        }
    }
    let parts: [(&str, Function); 3] = [
        ("major", |args| version_part(&args, |v| v.major)),
        ("minor", |args| version_part(&args, |v| v.minor)),
        ("patch", |args| version_part(&args, |v| v.patch)),
    ];
    for (name, function) in parts {
        env.add_member_overload(name, name, SEMVER.to_owned_type(), vec![], function)?;
    }
    durations(env)?;
    quantities(env)
}

/// Conversions between durations and their nanoseconds.
fn durations(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("duration", "int64_to_duration", vec![INT_TYPE], |args| {
        match arg(&args, 0)? {
            Value::Int(nanoseconds) => give(Value::Duration(chrono::Duration::nanoseconds(nanoseconds))),
            other => Err(ExecutionError::UnsupportedTargetType { target: other }),
        }
    })?;
    env.add_overload("int", "duration_to_int64", vec![DURATION_TYPE], |args| {
        match arg(&args, 0)? {
            Value::Duration(duration) => duration
                .num_nanoseconds()
                .map_or_else(|| Err(ExecutionError::function_error("int", "integer overflow")), give),
            other => Err(ExecutionError::UnsupportedTargetType { target: other }),
        }
    })
}

fn quantities(env: &mut Env) -> Result<(), DeclarationError> {
    let parts: [(&str, Function); 5] = [
        ("sign", |args| {
            on_quantity(&args, |q| Ok(Value::Int(i64::from(q.signum() as i8))))
        }),
        ("isInteger", |args| {
            on_quantity(&args, |q| {
                Ok((q % BILLION == 0 && i64::try_from(q / BILLION).is_ok()).into())
            })
        }),
        ("asInteger", |args| {
            on_quantity(&args, |q| match i64::try_from(q / BILLION) {
                Ok(n) if q % BILLION == 0 => Ok(Value::Int(n)),
                _ => Err(ExecutionError::function_error(
                    "asInteger",
                    "cannot convert value to integer",
                )),
            })
        }),
        #[expect(clippy::cast_precision_loss, reason = "an approximation is what is asked for")]
        ("asApproximateFloat", |args| {
            on_quantity(&args, |q| Ok(Value::Float(q as f64 / BILLION as f64)))
        }),
        ("add", |args| arithmetic(&args, i128::checked_add)),
    ];
    for (name, function) in parts {
        let arguments = if name == "add" {
            vec![QUANTITY.to_owned_type()]
        } else {
            vec![]
        };
        env.add_member_overload(
            name,
            &format!("quantity_{name}"),
            QUANTITY.to_owned_type(),
            arguments,
            function,
        )?;
    }
    env.add_member_overload(
        "add",
        "quantity_add_int",
        QUANTITY.to_owned_type(),
        vec![INT_TYPE],
        |args| arithmetic(&args, i128::checked_add),
    )?;
    env.add_member_overload(
        "sub",
        "quantity_sub",
        QUANTITY.to_owned_type(),
        vec![QUANTITY.to_owned_type()],
        |args| arithmetic(&args, i128::checked_sub),
    )?;
    env.add_member_overload(
        "sub",
        "quantity_sub_int",
        QUANTITY.to_owned_type(),
        vec![INT_TYPE],
        |args| arithmetic(&args, i128::checked_sub),
    )
}

const BILLION: i128 = 1_000_000_000;

fn order(args: &Args<'_, '_>) -> Result<std::cmp::Ordering, ExecutionError> {
    match (extra(args, 0)?, extra(args, 1)?) {
        (Extra::Quantity(a), Extra::Quantity(b)) => Ok(a.cmp(&b)),
        (Extra::Semver(a), Extra::Semver(b)) => Ok(a.cmp_precedence(&b)),
        _ => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

/// The version that a text names; the second argument makes it tolerant.
fn version(args: &Args<'_, '_>) -> Result<Option<semver::Version>, ExecutionError> {
    let tolerant = args.len() > 1 && matches!(arg(args, 1)?, Value::Bool(true));
    Ok(values::parse_version(&text(args, 0)?, tolerant))
}

fn version_part<'b, 'v>(args: &Args<'_, '_>, part: impl Fn(&semver::Version) -> u64) -> Outcome<'b, 'v> {
    match extra(args, 0)? {
        Extra::Semver(version) => give(i64::try_from(part(&version)).unwrap_or(i64::MAX)),
        _ => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

fn on_quantity<'b, 'v>(args: &Args<'_, '_>, part: impl Fn(i128) -> Result<Value, ExecutionError>) -> Outcome<'b, 'v> {
    match extra(args, 0)? {
        Extra::Quantity(quantity) => give(part(quantity)?),
        _ => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

fn arithmetic<'b, 'v>(args: &Args<'_, '_>, op: fn(i128, i128) -> Option<i128>) -> Outcome<'b, 'v> {
    let Extra::Quantity(a) = extra(args, 0)? else {
        return Err(ExecutionError::MissingArgumentOrTarget);
    };
    let b = match extra(args, 1) {
        Ok(Extra::Quantity(b)) => b,
        _ => match arg(args, 1)? {
            Value::Int(n) => i128::from(n) * BILLION,
            other => return Err(ExecutionError::UnsupportedTargetType { target: other }),
        },
    };
    give_extra(op(a, b).map(Extra::Quantity), "add", "quantity overflow")
}
