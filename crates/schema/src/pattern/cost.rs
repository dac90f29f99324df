//! Estimates what it costs to compile a regular expression, before it is compiled. A unit is about 0.1 to 0.3 microseconds, and some tens of
//! bytes. A few bytes of a pattern can take seconds: classes of Unicode have hundreds of ranges, and repetitions multiply.

use regex_syntax::ast::{self, Ast, ClassSetItem};
use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;

/// A class of Unicode, such as `\pL`.
const UNICODE: u64 = 500;
/// A class whose upper and lower case are the same.
const FOLDED: u64 = 2_000;
/// The same for a class that may have a million characters, which are folded one by one.
const FOLDED_WIDE: u64 = 90_000;

/// The cost to read a pattern of this length.
pub(super) fn of_length(pattern: &str) -> u64 {
    50 + 2 * u64::try_from(pattern.len()).unwrap_or(u64::MAX / 4)
}

/// The cost to compute the classes of a pattern.
pub(super) fn of_classes(pattern: &Ast) -> u64 {
    let fold = ast::visit(pattern, IgnoresCase(false)).unwrap_or(true);
    let classes = Classes {
        fold,
        cost: 0,
        open: Vec::new(),
    };
    ast::visit(pattern, classes).unwrap_or(u64::MAX)
}

/// The cost to compile a pattern whose classes are computed: about its number of states.
pub(super) fn of_states(pattern: &Hir) -> u64 {
    let sum = |parts: &[Hir]| {
        parts
            .iter()
            .fold(1_u64, |sum, part| sum.saturating_add(of_states(part)).saturating_add(1))
    };
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => 2,
        HirKind::Literal(literal) => u64::try_from(literal.0.len()).unwrap_or(u64::MAX),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges().iter();
            ranges.map(|range| of_range(range.start(), range.end())).sum()
        }
        HirKind::Class(Class::Bytes(class)) => u64::try_from(class.ranges().len()).unwrap_or(u64::MAX),
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or_else(|| repeated.min.saturating_add(1)).max(1);
            of_states(&repeated.sub).saturating_add(3).saturating_mul(times.into())
        }
        HirKind::Capture(group) => of_states(&group.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// The bytes of the sequences that encode a range of characters.
fn of_range(start: char, end: char) -> u64 {
    let bytes: usize = Utf8Sequences::new(start, end).map(|sequence| sequence.len()).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Whether a pattern ignores case anywhere.
struct IgnoresCase(bool);

impl ast::Visitor for IgnoresCase {
    type Output = bool;
    type Err = ();

    fn finish(self) -> Result<bool, ()> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, at: &Ast) -> Result<(), ()> {
        let flags = match at {
            Ast::Flags(set) => Some(&set.flags),
            Ast::Group(group) => group.flags(),
            _ => None,
        };
        self.0 |= flags.is_some_and(|flags| flags.flag_state(ast::Flag::CaseInsensitive).is_some());
        Ok(())
    }
}

struct Classes {
    fold: bool,
    cost: u64,
    /// The sizes of the bracket expressions around.
    open: Vec<u64>,
}

impl Classes {
    fn charge(&mut self, cost: u64, folded: u64) {
        let folded = if self.fold { folded } else { 0 };
        self.cost = self.cost.saturating_add(cost).saturating_add(folded);
    }

    fn item(&mut self, item: &ClassSetItem) -> u64 {
        match item {
            ClassSetItem::Empty(_) | ClassSetItem::Union(_) => 0,
            ClassSetItem::Literal(_) | ClassSetItem::Perl(_) => 1,
            ClassSetItem::Range(range) => {
                let width = u64::from(u32::from(range.end.c).saturating_sub(range.start.c.into()));
                self.charge(0, width / 8);
                1
            }
            ClassSetItem::Ascii(class) => {
                self.charge(0, if class.negated { FOLDED_WIDE } else { 0 });
                4
            }
            ClassSetItem::Unicode(_) => {
                self.charge(UNICODE, FOLDED_WIDE);
                30
            }
            ClassSetItem::Bracketed(inner) => {
                self.charge(0, if inner.negated { FOLDED_WIDE } else { FOLDED });
                10
            }
        }
    }
}

impl ast::Visitor for Classes {
    type Output = u64;
    type Err = ();

    fn finish(self) -> Result<u64, ()> {
        Ok(self.cost)
    }

    fn visit_pre(&mut self, at: &Ast) -> Result<(), ()> {
        match at {
            Ast::ClassUnicode(_) => self.charge(UNICODE, FOLDED),
            Ast::ClassBracketed(_) => self.open.push(0),
            _ => {}
        }
        Ok(())
    }

    fn visit_post(&mut self, at: &Ast) -> Result<(), ()> {
        if let Ast::ClassBracketed(_) = at {
            // Each item is merged with those before it.
            let size = self.open.pop().unwrap_or(0);
            self.charge(size.saturating_mul(size) / 50, FOLDED);
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), ()> {
        let size = self.item(item);
        if let Some(open) = self.open.last_mut() {
            *open += size;
        }
        Ok(())
    }
}
