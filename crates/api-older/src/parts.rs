//! What many conversions share.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::ObjectReference;
use schemars::{Schema, SchemaGenerator, json_schema};
use windlass_api::core::{ContractVersionedObjectReference, TemplateReference};
use windlass_meta::{GoDuration, GroupKind};

use crate::convert::{ConversionError, References};

/// The schema of a duration in Go's form, such as `10m`.
pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string"})
}

/// Items by their key. Of several with the same key, the first counts.
pub(crate) fn by_key<T>(items: &[T], key: fn(&T) -> &str) -> HashMap<&str, &T> {
    let mut all = HashMap::with_capacity(items.len());
    for item in items {
        all.entry(key(item)).or_insert(item);
    }
    all
}

/// A structure, unless nothing in it is set.
pub(crate) fn unless_default<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// A text, unless it is empty.
pub(crate) fn unless_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Whole seconds of a duration, at most as many as 32 bits hold. What is less than a second is cut off.
pub(crate) fn whole_seconds(duration: GoDuration) -> i32 {
    let seconds = duration.as_nanos() / 1_000_000_000;
    i32::try_from(seconds).unwrap_or(if seconds < 0 { i32::MIN } else { i32::MAX })
}

/// [`whole_seconds`] of an optional duration.
pub(crate) fn to_seconds(duration: Option<GoDuration>) -> Option<i32> {
    duration.map(whole_seconds)
}

/// The duration of a number of seconds.
pub(crate) fn from_seconds(seconds: Option<i32>) -> Option<GoDuration> {
    seconds.map(|seconds| GoDuration::from_secs(i64::from(seconds)))
}

/// A flag of the hub from one that cannot be unset. False means unset, unless the hub form that this object was made from had false.
pub(crate) fn intent(flag: bool, kept: Option<bool>) -> Option<bool> {
    if flag { Some(true) } else { kept.filter(|kept| !kept) }
}

/// [`intent`] of a number: 0 means unset, unless it was 0 on purpose.
pub(crate) fn intent_of_number(number: i32, kept: Option<i32>) -> Option<i32> {
    if number == 0 {
        kept.filter(|kept| *kept == 0)
    } else {
        Some(number)
    }
}

/// A reference with a version as one without. An apiVersion with more than one slash has no group.
pub(crate) fn to_hub_reference(
    field: &str,
    reference: ObjectReference,
) -> Result<ContractVersionedObjectReference, ConversionError> {
    let api_version = reference.api_version.unwrap_or_default();
    let api_group = match api_version.split_once('/') {
        None => "",
        Some((group, version)) if !version.contains('/') => group,
        Some(_) => {
            let message = format!("apiVersion {api_version:?} is not a group and a version, such as \"apps/v1\"");
            return Err(ConversionError::new(field, message));
        }
    };
    Ok(ContractVersionedObjectReference {
        api_group: api_group.to_owned(),
        kind: reference.kind.unwrap_or_default(),
        name: reference.name.unwrap_or_default(),
    })
}

/// A reference without a version as one with the version of the kind's contract. None for an empty one.
pub(crate) fn from_hub_reference(
    field: &str,
    reference: ContractVersionedObjectReference,
    namespace: &str,
    references: &dyn References,
) -> Result<Option<ObjectReference>, ConversionError> {
    let ContractVersionedObjectReference { api_group, kind, name } = reference;
    if api_group.is_empty() && kind.is_empty() && name.is_empty() {
        return Ok(None);
    }
    let full = GroupKind::new(api_group, kind);
    let api_version = references
        .api_version(&full)
        .map_err(|why| ConversionError::new(field, format!("the version of {full} is not known: {why}")))?;
    Ok(Some(ObjectReference {
        api_version: Some(api_version),
        kind: Some(full.kind),
        name: Some(name),
        namespace: some_text(namespace.to_owned()),
        ..ObjectReference::default()
    }))
}

/// A reference to a template, which has a version in all versions.
pub(crate) fn to_template(reference: ObjectReference) -> TemplateReference {
    TemplateReference {
        api_version: reference.api_version.unwrap_or_default(),
        kind: reference.kind.unwrap_or_default(),
        name: reference.name.unwrap_or_default(),
    }
}

/// The inverse of [`to_template`]: references of older versions name the namespace of the object.
pub(crate) fn from_template(template: TemplateReference, namespace: &str) -> ObjectReference {
    let TemplateReference {
        api_version,
        kind,
        name,
    } = template;
    ObjectReference {
        api_version: some_text(api_version),
        kind: some_text(kind),
        name: some_text(name),
        namespace: some_text(namespace.to_owned()),
        ..ObjectReference::default()
    }
}

/// A text as an optional one: Go leaves out empty texts.
pub(crate) fn some_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_cut_to_whole_seconds_of_32_bits() {
        let check = |text: &str, expect: i32| assert_eq!(whole_seconds(text.parse().unwrap()), expect, "{text}");
        check("10m", 600);
        check("1.999s", 1);
        check("-1.5s", -1);
        check("600000h", i32::MAX);
        assert_eq!(from_seconds(Some(863)).unwrap().to_string(), "14m23s");
    }

    #[test]
    fn what_was_kept_says_whether_zero_was_meant() {
        assert_eq!(intent(true, None), Some(true));
        assert_eq!(intent(false, None), None);
        assert_eq!(intent(false, Some(false)), Some(false));
        assert_eq!(intent(false, Some(true)), None);
        assert_eq!(intent_of_number(0, Some(0)), Some(0));
        assert_eq!(intent_of_number(0, Some(3)), None);
        assert_eq!(intent_of_number(2, Some(0)), Some(2));
    }

    #[test]
    fn a_reference_keeps_its_group() {
        let of = |api_version: &str| {
            let reference = ObjectReference {
                api_version: some_text(api_version.to_owned()),
                ..ObjectReference::default()
            };
            to_hub_reference("spec.x", reference).map(|reference| reference.api_group)
        };
        assert_eq!(of("a.b/v1").unwrap(), "a.b");
        assert_eq!(of("v1").unwrap(), "");
        assert_eq!(of("").unwrap(), "");
        let error = of("a/b/c").unwrap_err().to_string();
        assert_eq!(
            error,
            r#"spec.x: apiVersion "a/b/c" is not a group and a version, such as "apps/v1""#
        );
    }
}
