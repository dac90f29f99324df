//! Merging lists whose items have an identity.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{View, at, merge};
use crate::error::ApplyError;
use crate::field_set::Elem;

/// Items of the applied list keep their order. Other live items keep their position relative to their neighbours.
pub(super) fn merge_lists(view: View<'_>, live: Vec<Value>, applied: &[Value]) -> Result<Vec<Value>, ApplyError> {
    let mut applied_elems = Vec::with_capacity(applied.len());
    let mut places: HashMap<Elem, usize> = HashMap::with_capacity(applied.len());
    for (index, item) in applied.iter().enumerate() {
        let elem = view
            .elem(item)
            .map_err(|why| ApplyError::Invalid(format!("element {index}: {why}")))?;
        if places.insert(elem.clone(), index).is_some() {
            return Err(ApplyError::Invalid(format!("duplicate entries for key {elem}")));
        }
        applied_elems.push(elem);
    }
    let mut live_elems = Vec::with_capacity(live.len());
    let mut first: HashMap<Elem, usize> = HashMap::with_capacity(live.len());
    let mut doubled: HashSet<Elem> = HashSet::new();
    for (index, item) in live.iter().enumerate() {
        let elem = view
            .elem(item)
            .map_err(|why| ApplyError::Invalid(format!("element {index}: {why}")))?;
        if first.contains_key(&elem) {
            doubled.insert(elem.clone());
        } else {
            first.insert(elem.clone(), index);
        }
        live_elems.push(elem);
    }
    let mut live: Vec<Option<Value>> = live.into_iter().map(Some).collect();
    let mut shared = applied_elems.iter().filter(|elem| first.contains_key(elem));
    let mut next_shared = shared.next();
    let mut done: HashSet<&Elem> = HashSet::new();
    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let (mut l, mut r) = (0, 0);
    let join = |live: &mut Vec<Option<Value>>, elem: &Elem, item: &Value| -> Result<Value, ApplyError> {
        let base = if doubled.contains(elem) {
            None
        } else {
            first.get(elem).and_then(|index| live[*index].take())
        };
        let mut base = base.unwrap_or(Value::Null);
        merge(view.item(), &mut base, item).map_err(|e| at(elem, e))?;
        Ok(base)
    };
    while l < live_elems.len() || r < applied.len() {
        if l < live_elems.len() && r < applied.len() {
            let elem = &live_elems[l];
            if *elem == applied_elems[r] {
                done.insert(&applied_elems[r]);
                out.push(join(&mut live, elem, &applied[r])?);
                l += 1;
                r += 1;
                next_shared = shared.next();
                continue;
            }
            if places.contains_key(elem) && next_shared.is_some_and(|next| next != elem) {
                // It comes later in the applied order.
                l += 1;
                continue;
            }
        }
        if l < live_elems.len() {
            let elem = &live_elems[l];
            if !places.contains_key(elem) {
                out.extend(live[l].take());
                l += 1;
                continue;
            } else if done.contains(elem) {
                l += 1;
            }
        }
        if r < applied.len() {
            let elem = &applied_elems[r];
            done.insert(elem);
            out.push(join(&mut live, elem, &applied[r])?);
            r += 1;
            if next_shared == Some(elem) {
                next_shared = shared.next();
            }
        }
    }
    Ok(out)
}
