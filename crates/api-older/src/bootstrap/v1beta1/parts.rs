//! What the conversions of the kubeadm kinds share.

use std::collections::{BTreeMap, HashMap, VecDeque};

use schemars::Schema;
use serde_json::Value;
use windlass_api_kubeadm::bootstrap::v1beta2::Arg;
use windlass_meta::GoDuration;

pub(crate) use crate::parts::{intent as intended, unless_default, whole_seconds as seconds};

/// The value, unless it is as if it were not set: an empty text, `false`, 0, a structure without values.
pub(crate) fn filled<T: Default + PartialEq>(value: Option<T>) -> Option<T> {
    value.and_then(unless_default)
}

/// The duration of a number of seconds.
pub(crate) fn duration(seconds: i32) -> GoDuration {
    GoDuration::from_secs(i64::from(seconds))
}

/// A number of seconds of the hub. In the older version zero and unset are the same, so a zero that was kept stays zero.
pub(crate) fn intended_seconds(older: GoDuration, kept: Option<i32>) -> Option<i32> {
    if older == GoDuration::default() {
        kept.filter(|kept| *kept == 0)
    } else {
        Some(seconds(older))
    }
}

/// A number of the hub whose older form is always written: zero, unless the number was kept as unset.
pub(crate) fn counted(older: i32, is_kept_unset: bool) -> Option<i32> {
    (older != 0 || !is_kept_unset).then_some(older)
}

/// Command-line flags as a list, in the order of the kept ones if nothing changed, and by name otherwise.
pub(crate) fn arg_list(args: BTreeMap<String, String>, kept: &[Arg]) -> Vec<Arg> {
    if args.len() == kept.len() && kept.iter().all(|arg| args.get(&arg.name) == Some(&arg.value)) {
        return kept.to_vec();
    }
    args.into_iter().map(|(name, value)| Arg { name, value }).collect()
}

/// Command-line flags as a map. The last one of a name wins.
pub(crate) fn arg_map(args: Vec<Arg>) -> BTreeMap<String, String> {
    args.into_iter().map(|Arg { name, value }| (name, value)).collect()
}

/// Gives each item of a list the kept item with the same key: the first with the first, the second with the second.
#[derive(Debug)]
pub(crate) struct Partners<'k, T>(HashMap<&'k str, VecDeque<&'k T>>);

impl<'k, T> Partners<'k, T> {
    /// The kept items, and what their key is.
    pub(crate) fn new(kept: &'k [T], key: fn(&T) -> &str) -> Self {
        let mut left: HashMap<&'k str, VecDeque<&'k T>> = HashMap::new();
        for item in kept {
            left.entry(key(item)).or_default().push_back(item);
        }
        Self(left)
    }

    /// The next kept item with the key.
    pub(crate) fn of(&mut self, key: &str) -> Option<&'k T> {
        self.0.get_mut(key)?.pop_front()
    }
}

/// Removes from the schema of a hub type the bounds that only the hub version has: lists and structures may be empty in v1beta1, and its lists
/// have no list type unless they are maps.
pub(crate) fn without_hub_bounds(schema: &mut Schema) {
    if let Some(node) = schema.as_object_mut() {
        let mut root = Value::Object(std::mem::take(node));
        relax(&mut root);
        if let Value::Object(relaxed) = root {
            *node = relaxed;
        }
    }
}

fn relax(schema: &mut Value) {
    let Value::Object(node) = schema else { return };
    node.remove("minProperties");
    if node.get("x-kubernetes-list-type").is_some_and(|kind| kind == "atomic") {
        node.remove("x-kubernetes-list-type");
        node.remove("minItems");
    }
    if let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(relax);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(key) {
            relax(child);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_older_version_cannot_tell_apart_comes_from_what_was_kept() {
        let zero = GoDuration::default();
        assert_eq!(intended_seconds(zero, None), None);
        assert_eq!(intended_seconds(zero, Some(0)), Some(0));
        assert_eq!(intended_seconds(zero, Some(5)), None);
        assert_eq!(intended_seconds(GoDuration::from_secs(7), Some(0)), Some(7));
        assert_eq!(counted(0, false), Some(0));
        assert_eq!(counted(0, true), None);
        assert_eq!(counted(3, true), Some(3));
    }

    #[test]
    fn flags_keep_their_order_until_one_changes() {
        let arg = |name: &str, value: &str| Arg {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let kept = vec![arg("v", "4"), arg("feature-gates", "A=true")];
        let mut older = arg_map(kept.clone());
        assert_eq!(arg_list(older.clone(), &kept), kept);
        older.insert("v".to_owned(), "5".to_owned());
        assert_eq!(
            arg_list(older, &kept),
            vec![arg("feature-gates", "A=true"), arg("v", "5")]
        );
    }

    #[test]
    fn items_with_the_same_key_have_different_partners() {
        let kept = [("a", 1), ("b", 2), ("a", 3)];
        let mut partners = Partners::new(&kept, |item| item.0);
        let found: Vec<_> = ["a", "a", "a", "c", "b"]
            .map(|key| partners.of(key).map(|item| item.1))
            .into();
        assert_eq!(found, [Some(1), Some(3), None, None, Some(2)]);
    }
}
