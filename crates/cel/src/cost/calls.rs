//! Cost estimates of calls.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::lists::lists;
use super::{CHARACTER, Coster, Entry, PATTERN, Range};
use crate::typing::Ty;

/// An argument, or the target, of a call.
pub(super) struct Arg<'e> {
    pub(super) ty: Ty,
    pub(super) size: Option<Range>,
    pub(super) path: Vec<String>,
    pub(super) expression: &'e IdedExpr,
}

impl Arg<'_> {
    pub(super) fn size(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

type Cost = (Range, Option<Range>);

const ONE: Range = Range::exactly(1);
/// The cost of an authorization check.
const QUESTION: Range = Range::exactly(350_000);
/// The longest pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;
/// The longest name of a format.
const FORMAT_NAME: u64 = 64;
/// Bytes of an address.
const ADDRESS: Range = Range { min: 4, max: 16 };

impl Coster<'_> {
    /// The cost of a call with its arguments, and the size of its result if it is known.
    pub(super) fn function(
        &mut self,
        at: &IdedExpr,
        name: &str,
        overload: &str,
        target: Option<&Arg<'_>>,
        args: &[Arg<'_>],
        costs: &[Range],
    ) -> Cost {
        let sum = costs.iter().fold(Range::NOTHING, |sum, cost| sum.plus(*cost));
        if let Some((cost, size)) = self.kubernetes(name, overload, target, args) {
            return (cost.plus(sum), size);
        }
        match (overload, target, args) {
            ("logical_and" | "logical_or", _, _) => {
                let [left, right] = costs else { return (sum, None) };
                let most = left.plus(*right).max;
                (
                    Range {
                        min: left.min,
                        max: most,
                    },
                    None,
                )
            }
            ("conditional", _, [_, yes, no]) => {
                let [condition, if_so, if_not] = costs else {
                    return (sum, None);
                };
                let entry = both(self.entry(yes.expression), self.entry(no.expression));
                if let Some(entry) = entry {
                    self.entries.insert(at.id, entry);
                }
                (condition.plus(if_so.union(*if_not)), Some(yes.size().union(no.size())))
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = left.size().plus(right.size());
                if let Some(entry) = both(self.entry(left.expression), self.entry(right.expression)) {
                    self.entries.insert(at.id, entry);
                }
                let cost = if overload == "add_list" {
                    ONE
                } else {
                    size.scaled(CHARACTER)
                };
                (cost.plus(sum), Some(size))
            }
            _ => {
                let known = lists(overload, target, args);
                let (cost, size) = known.unwrap_or_else(|| standard(overload, target, args));
                (cost.plus(sum), size)
            }
        }
    }

    /// The cost of functions for which Kubernetes has its own estimates.
    fn kubernetes(&self, name: &str, overload: &str, target: Option<&Arg<'_>>, args: &[Arg<'_>]) -> Option<Cost> {
        let first = args.first();
        Some(match (name, target, first) {
            ("check", ..) => (QUESTION, None),
            ("fieldSelector" | "labelSelector", _, Some(text)) => {
                let requirements = text.size().scaled(0.5).scaled(50.0);
                (
                    text.size()
                        .scaled(CHARACTER)
                        .plus(requirements)
                        .plus(Range::exactly(10)),
                    None,
                )
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                (self.each_element(target), None)
            }
            ("url" | "jsonpatch.escapeKey", _, Some(text)) => (text.size().scaled(CHARACTER), Some(text.size())),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                (target.size().scaled(CHARACTER), Some(target.size()))
            }
            ("replace", Some(target), _) if args.len() >= 2 => replace(target.size(), args[0].size(), args[1].size()),
            ("split", Some(target), _) => {
                let limit = args.get(1).and_then(|limit| match &limit.expression.expr {
                    Expr::Literal(LiteralValue::Int(n)) => u64::try_from(*n.inner()).ok(),
                    _ => None,
                });
                let max = limit.unwrap_or(target.size().max);
                (target.size().scaled(2.0 * CHARACTER), Some(Range { min: 0, max }))
            }
            ("join", Some(target), _) => self.join(target, first),
            ("find" | "findAll", Some(target), Some(pattern)) => {
                let cost = pattern_cost(target.size(), pattern.size());
                let max = target.size().max;
                (cost, Some(Range { min: 0, max }))
            }
            ("ip", ..) if overload == "cidr_ip" => (ONE, None),
            ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", _, Some(text)) => {
                (text.size().scaled(CHARACTER), None)
            }
            ("ip.isCanonical", _, Some(text)) => (text.size().scaled(2.0 * CHARACTER), None),
            ("containsIP", _, Some(other)) => {
                let mut cost = ADDRESS.plus(ADDRESS).scaled(CHARACTER);
                if overload == "cidr_contains_ip_string" {
                    cost = cost.plus(other.size().scaled(CHARACTER));
                }
                (cost, None)
            }
            ("containsCIDR", _, Some(other)) => {
                let mut cost = ADDRESS.plus(ADDRESS).scaled(CHARACTER);
                cost = cost.plus(ADDRESS.scaled(CHARACTER)).plus(ONE);
                if overload == "cidr_contains_cidr_string" {
                    cost = cost.plus(other.size().scaled(CHARACTER));
                }
                (cost, None)
            }
            ("validate", _, Some(text)) => (text.size().scaled(CHARACTER).scaled(FORMAT_PATTERN * PATTERN), None),
            ("_==_", _, _) => (equality(args)?, None),
            _ if NOMINAL.contains(&name) => (ONE, None),
            _ => return None,
        })
    }

    /// The cost of reading each element of a list, or each character of a string.
    fn each_element(&self, target: &Arg<'_>) -> Range {
        let Ty::List(of) = &target.ty else {
            return target.size().scaled(CHARACTER);
        };
        let mut each = ONE;
        if matches!(of.as_ref(), Ty::String | Ty::Bytes) {
            each = each.plus(self.element_size(target).scaled(CHARACTER));
        }
        target.size().times(each)
    }

    fn element_size(&self, list: &Arg<'_>) -> Range {
        if list.path.is_empty() {
            return Range::UNKNOWN;
        }
        let mut path = list.path.clone();
        path.push("@items".to_owned());
        self.declared(&path).unwrap_or(Range::UNKNOWN)
    }

    fn join(&self, target: &Arg<'_>, separator: Option<&Arg<'_>>) -> Cost {
        let count = target.size();
        let mut size = Range::NOTHING;
        if matches!(target.ty, Ty::List(_)) {
            size = count.times(self.element_size(target));
        }
        if let Some(separator) = separator {
            let between = Range {
                min: count.min.saturating_sub(1),
                max: count.max.saturating_sub(1),
            };
            size = size.plus(separator.size().times(between));
        }
        (size.scaled(CHARACTER), Some(size))
    }
}

/// Functions with a constant cost.
const NOMINAL: [&str; 38] = [
    "serviceAccount",
    "path",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "allowed",
    "reason",
    "error",
    "errored",
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
];

fn both(a: Option<Entry>, b: Option<Entry>) -> Option<Entry> {
    let (a, b) = (a?, b?);
    Some(Entry {
        is_list: a.is_list,
        key: a.key.union(b.key),
        value: a.value.union(b.value),
    })
}

/// The cost of comparing values of Kubernetes' own types.
fn equality(args: &[Arg<'_>]) -> Option<Range> {
    let [left, right] = args else { return None };
    let (Ty::Extra(name), true) = (&left.ty, left.ty.is_exactly(&right.ty)) else {
        return None;
    };
    Some(match *name {
        "kubernetes.NamedFormat" => Range {
            min: 1,
            max: FORMAT_NAME,
        }
        .scaled(CHARACTER),
        "kubernetes.URL" => Range {
            min: 1,
            max: right.size.map_or(1, |size| size.max),
        }
        .scaled(CHARACTER),
        _ => ONE,
    })
}

fn pattern_cost(text: Range, pattern: Range) -> Range {
    // An empty text has a cost, too.
    text.plus(ONE).scaled(CHARACTER).times(pattern.scaled(PATTERN))
}

fn replace(size: Range, from: Range, to: Range) -> Cost {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate; beyond the range it saturates"
    )]
    let parts = |whole: u64, part: u64| (whole as f64 / part as f64).ceil() as u64;
    // The longest result: the shortest texts are replaced by the longest.
    let (most, kept_most) = if from.min == 0 {
        (size.max.saturating_add(1), size.max)
    } else if to.max <= from.min {
        (0, size.max)
    } else {
        (parts(size.max, from.min), 0)
    };
    let (least, kept_least) = if from.max == 0 {
        (size.min.saturating_add(1), size.min)
    } else if from.max <= to.min {
        (0, size.min)
    } else {
        (parts(size.min, from.max), 0)
    };
    let count = Range { min: least, max: most };
    let kept = Range {
        min: kept_least,
        max: kept_most,
    };
    (size.scaled(2.0 * CHARACTER), Some(count.times(to).plus(kept)))
}

/// The cost of the standard functions of CEL.
fn standard(overload: &str, target: Option<&Arg<'_>>, args: &[Arg<'_>]) -> Cost {
    let first = || args.first().map_or(Range::UNKNOWN, Arg::size);
    match (overload, target, args) {
        ("string_format", Some(target), _) => (target.size().scaled(CHARACTER), None),
        ("string_to_bytes", _, [_]) => {
            let size = first();
            let max = size.max.saturating_mul(4);
            (size.scaled(CHARACTER), Some(Range { min: size.min, max }))
        }
        ("bytes_to_string", _, [_]) => {
            let size = first();
            let min = size.min / 4;
            (size.scaled(CHARACTER), Some(Range { min, max: size.max }))
        }
        ("strings_quote", _, [_]) => {
            let size = first();
            let quoted = Range {
                min: size.min.saturating_add(2),
                max: size.max.saturating_mul(2).saturating_add(2),
            };
            (size.scaled(CHARACTER), Some(quoted))
        }
        ("starts_with_string" | "ends_with_string", _, [_]) => (first().scaled(CHARACTER), None),
        ("in_list", _, [_, list]) => (list.size(), None),
        ("matches_string", Some(target), [pattern]) => (pattern_cost(target.size(), pattern.size()), None),
        ("contains_string", Some(target), [part]) => {
            let cost = target.size().scaled(CHARACTER).times(part.size().scaled(CHARACTER));
            (cost, None)
        }
        (id, _, [left, right]) if compares(id) => {
            let max = left.size().max.min(right.size().max);
            let min = u64::from(max > 0);
            (Range { min, max }.scaled(CHARACTER), None)
        }
        _ => (ONE, None),
    }
}

/// Whether an overload compares values of variable size.
fn compares(id: &str) -> bool {
    if matches!(id, "equals" | "not_equals") {
        return true;
    }
    let order = ["less_equals_", "greater_equals_", "less_", "greater_"];
    order
        .iter()
        .find_map(|prefix| id.strip_prefix(prefix))
        .is_some_and(|of| matches!(of, "string" | "bytes"))
}
