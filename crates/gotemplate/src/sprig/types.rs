//! Functions on the types of values.

use super::{cast, text};
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    f("typeOf", ".", |m, a| Ok(Value::text(a[0].type_name(&m.heap)))),
    f("typeIs", "s.", |m, a| {
        Ok(Value::Bool(*text(&a[0]) == *a[1].type_name(&m.heap)))
    }),
    f("typeIsLike", "s.", |m, a| {
        let (target, name) = (text(&a[0]), a[1].type_name(&m.heap));
        Ok(Value::Bool(
            *target == *name || name.strip_prefix('*') == Some(&target) || target.strip_prefix('*') == Some(name),
        ))
    }),
    f("kindOf", ".", |m, a| Ok(Value::text(kind(m, &a[0])))),
    f("kindIs", "s.", |m, a| Ok(Value::Bool(*text(&a[0]) == *kind(m, &a[1])))),
    f("deepEqual", "..", |m, a| m.heap.same(&a[0], &a[1]).map(Value::Bool)),
    f("fail", "s", |_, a| Err(text(&a[0]).to_string().into())),
];

/// In lenient mode, all numbers have one type: that of Go's JSON.
fn kind(m: &Machine<'_>, value: &Value) -> &'static str {
    if m.rules.lenient && cast::number(value).is_some() {
        return "float64";
    }
    value.kind()
}
