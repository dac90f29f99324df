//! Adapts field sets that were written with another schema.

use windlass_schema::{ListType, MapType, Node as Shape, Type};

use super::View;
use crate::field_set::{Elem, FieldSet};

/// If a map or list has become atomic, owners of parts become owners of the whole.
///
/// In the other direction nothing changes: owners of the whole own only the whole.
pub(crate) fn reconcile(view: View<'_>, set: &mut FieldSet) {
    for (elem, node) in &mut set.nodes {
        if node.below.is_empty() {
            continue;
        }
        let child = step(view, elem);
        if child.shape.is_some_and(is_one_value) {
            node.below = FieldSet::new();
            node.member = true;
        } else {
            reconcile(child, &mut node.below);
        }
    }
}

fn is_one_value(shape: &Shape) -> bool {
    match shape.kind {
        Some(Type::Object) => shape.map_type == MapType::Atomic,
        Some(Type::Array) => shape.list_type == ListType::Atomic,
        _ => false,
    }
}

fn step<'a>(view: View<'a>, elem: &Elem) -> View<'a> {
    match elem.name() {
        Some(name) => view.field(name),
        None => view.item(),
    }
}
