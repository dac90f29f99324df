//! Cost estimates of functions for lists and sets.

use cel::common::ast::{Expr, LiteralValue};

use super::calls::Arg;
use super::{CHARACTER, Range};

/// The cost of calling a function and creating a list.
const NEW_LIST: Range = Range::exactly(11);
/// The cost of reading and moving an element.
const PAIR: f64 = 2.0;

/// The cost and the result size of a call of a function for lists or sets.
pub(super) fn lists(overload: &str, target: Option<&Arg<'_>>, args: &[Arg<'_>]) -> Option<(Range, Option<Range>)> {
    let size = || target.map_or(Range::UNKNOWN, Arg::size);
    let squared = |size: Range| size.times(size);
    let sets = |factor: f64| {
        let [left, right] = args else { return None };
        let cost = left.size().times(right.size()).scaled(factor);
        Some((cost.plus(Range::exactly(1)), None))
    };
    let (factor, size) = match (overload, args) {
        ("list_slice", [start, end]) => {
            let length = number(end, size().max).wrapping_sub(number(start, 0));
            (1.0, Range::exactly(length))
        }
        ("lists_range", [end]) => (1.0, Range::exactly(number(end, u64::MAX))),
        ("list_reverse" | "list_flatten", []) => (1.0, size()),
        ("list_flatten_int", [depth]) => {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let depth = number(depth, u64::MAX) as f64;
            (depth, size())
        }
        ("list_distinct", []) => (PAIR, squared(size())),
        ("list_sets_contains_list" | "list_sets_intersects_list", _) => return sets(1.0),
        ("list_sets_equivalent_list", _) => return sets(2.0),
        (_, []) => (sort(overload, "_sort")?, squared(size())),
        (_, [keys]) => (sort(overload, "_sortByAssociatedKeys")?, squared(keys.size())),
        _ => return None,
    };
    Some((size.scaled(factor).plus(NEW_LIST), Some(size)))
}

/// The factor of sorting over comparing all pairs of elements.
fn sort(overload: &str, suffix: &str) -> Option<f64> {
    match overload.strip_prefix("list_")?.strip_suffix(suffix)? {
        "string" | "bytes" => Some(PAIR + CHARACTER),
        _ => Some(PAIR),
    }
}

/// The value of a literal number, or the assumed value.
fn number(arg: &Arg<'_>, assumed: u64) -> u64 {
    match &arg.expression.expr {
        Expr::Literal(LiteralValue::Int(n)) => u64::try_from(*n.inner()).unwrap_or(0),
        _ => assumed,
    }
}
