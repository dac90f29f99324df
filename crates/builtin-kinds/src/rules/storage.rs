//! PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment, CSINode, CSIDriver.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::field::{
    Errors, Field, immutable, maybe_one_of, non_negative, one_of, or_set, present, qualified, set, subdomain,
};
use super::{selectors, volumes};
use crate::quantity::Quantity;
use windlass_objects::names::subdomain_problems;

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const CLAIM_IS_FIXED: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
const SOURCE_IS_FIXED: &str = "spec.persistentvolumesource is immutable after creation";

pub(crate) fn default_claim(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        or_set(spec, "volumeMode", "Filesystem");
    }
    or_set(object, "status", json!({}));
    or_set(&mut object["status"], "phase", "Pending");
}

pub(crate) fn default_volume(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").filter(|s| s.is_object()) {
        or_set(spec, "persistentVolumeReclaimPolicy", "Retain");
        or_set(spec, "volumeMode", "Filesystem");
        if let Some(path) = spec.get_mut("hostPath") {
            or_set(path, "type", "");
        }
    }
    or_set(object, "status", json!({}));
    or_set(&mut object["status"], "phase", "Pending");
}

pub(crate) fn claim_on_create(object: &mut Value) {
    set(object, "status", json!({"phase": "Pending"}));
}

pub(crate) fn volume_on_create(object: &mut Value, now: &str) {
    set(
        object,
        "status",
        json!({"phase": "Pending", "lastPhaseTransitionTime": now}),
    );
}

/// The fields of a volume that are not sources.
const OTHER: [&str; 9] = [
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
];

fn sources(spec: &Value) -> Map<String, Value> {
    let mut out = spec.as_object().cloned().unwrap_or_default();
    for key in OTHER {
        out.remove(key);
    }
    out
}

pub(crate) fn volume(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    access_modes(&spec.get("accessModes"), "", errors);
    let capacity = spec.get("capacity");
    if capacity.is_empty() {
        errors.push(capacity.required(""));
    }
    let only_storage = capacity.entries().count() == 1 && capacity.get("storage").is_set();
    if !only_storage {
        let allowed = ["storage".to_owned()];
        errors.push(FieldError::not_supported(
            capacity.path.clone(),
            capacity.value.clone(),
            &allowed,
        ));
    }
    for (name, amount) in capacity.entries().filter(|(name, _)| *name == "storage") {
        let sign = Quantity::parse(amount.text()).map(Quantity::sign);
        if sign == Some(Ordering::Less) {
            errors.push(amount.invalid("must be a valid resource quantity"));
        }
        if sign != Some(Ordering::Greater) {
            errors.push(FieldError::invalid(
                format!("{}[{name}]", capacity.path),
                amount.value.clone(),
                "must be greater than zero",
            ));
        }
    }
    maybe_one_of(
        &spec.get("persistentVolumeReclaimPolicy"),
        &["Delete", "Recycle", "Retain"],
        errors,
    );
    let kinds = sources(spec.value);
    if kinds.is_empty() {
        errors.push(spec.required("must specify a volume type"));
    }
    for (i, kind) in kinds.keys().map(|k| spec.get(k)).enumerate() {
        if i == 0 {
            volumes::one(&kind, errors);
        } else {
            errors.push(kind.forbidden("may not specify more than 1 volume type"));
        }
    }
    subdomain(&spec.get("storageClassName"), errors);
    maybe_one_of(&spec.get("volumeMode"), &["Block", "Filesystem"], errors);
    if let Some(old) = old {
        if kinds != sources(&old["spec"]) {
            errors.push(FieldError::forbidden("spec.persistentvolumesource", SOURCE_IS_FIXED));
        }
        immutable(object, old, "spec.volumeMode", errors);
    }
}

fn access_modes(modes: &Field<'_>, none: &str, errors: &mut Errors) {
    if modes.is_empty() {
        errors.push(modes.required(none));
    }
    let mut alone = false;
    for mode in modes.items() {
        alone |= mode.text() == "ReadWriteOncePod";
        if !MODES.contains(&mode.text()) {
            let allowed: Vec<String> = MODES.iter().map(|m| (*m).to_owned()).collect();
            errors.push(FieldError::not_supported(
                modes.path.clone(),
                mode.value.clone(),
                &allowed,
            ));
        }
    }
    if alone && modes.items().count() > 1 {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

pub(crate) fn claim(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    if spec.get("selector").is_set() {
        selectors::check(&spec.get("selector"), errors);
    }
    access_modes(&spec.get("accessModes"), "at least 1 access mode is required", errors);
    let storage = spec.get("resources").get("requests").get("storage");
    let at = format!("{}.resources[storage]", spec.path);
    match Quantity::parse(storage.text()).map(Quantity::sign) {
        None => errors.push(FieldError::required(at, "")),
        Some(Ordering::Greater) => {}
        Some(_) => errors.push(FieldError::invalid(
            at,
            storage.value.clone(),
            "must be greater than zero",
        )),
    }
    subdomain(&spec.get("storageClassName"), errors);
    maybe_one_of(&spec.get("volumeMode"), &["Block", "Filesystem"], errors);
    if let Some(old) = old {
        claim_update(&spec, old, errors);
    }
}

fn claim_update(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let bound = old.pointer("/status/phase").and_then(Value::as_str) == Some("Bound");
    let was = &old["spec"];
    let fixed = |spec: &Value| {
        let mut out = spec.clone();
        if bound {
            if let Some(requests) = out.pointer_mut("/resources/requests").and_then(Value::as_object_mut) {
                requests.remove("storage");
            }
            out.as_object_mut().map(|s| s.remove("volumeAttributesClassName"));
        }
        // The controller that binds a claim sets its volume, and its class if it had none.
        for key in ["volumeName", "storageClassName"] {
            if was.get(key).is_none() {
                out.as_object_mut().map(|s| s.remove(key));
            }
        }
        out
    };
    if fixed(spec.value) != fixed(was) {
        errors.push(spec.forbidden(CLAIM_IS_FIXED));
        return;
    }
    let amount = |spec: &Value| Quantity::parse(spec.pointer("/resources/requests/storage")?.as_str()?);
    if bound
        && let (Some(is), Some(was)) = (amount(spec.value), amount(was))
        && is.compare(was) == Ordering::Less
    {
        errors.push(FieldError::forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        ));
    }
}

pub(crate) fn default_class(object: &mut Value) {
    or_set(object, "reclaimPolicy", "Delete");
    or_set(object, "volumeBindingMode", "Immediate");
}

pub(crate) fn class(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            immutable(object, old, field, errors);
        }
        return;
    }
    let provisioner = Field::of(object, "provisioner");
    present(&provisioner, errors);
    if !provisioner.is_empty() {
        let lower = provisioner.text().to_lowercase();
        let words = windlass_objects::names::qualified_name_problems(&lower);
        errors.extend(words.into_iter().map(|p| provisioner.invalid(p)));
    }
    for (key, _) in Field::of(object, "parameters").entries() {
        if key.is_empty() {
            errors.push(FieldError::invalid("parameters", key.into(), "field can not be empty."));
        }
    }
    maybe_one_of(&Field::of(object, "reclaimPolicy"), &["Delete", "Retain"], errors);
    maybe_one_of(
        &Field::of(object, "volumeBindingMode"),
        &["Immediate", "WaitForFirstConsumer"],
        errors,
    );
}

pub(crate) fn attachment(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let attacher = spec.get("attacher");
    present(&attacher, errors);
    qualified(&attacher, errors);
    let source = spec.get("source");
    let (volume, inline) = (source.get("persistentVolumeName"), source.get("inlineVolumeSpec"));
    match (volume.is_set(), inline.is_set()) {
        (false, false) => {
            errors.push(source.required("must specify exactly one of inlineVolumeSpec and persistentVolumeName"));
        }
        (true, true) => {
            errors.push(source.forbidden("must specify exactly one of inlineVolumeSpec and persistentVolumeName"));
        }
        _ => {}
    }
    let node = spec.get("nodeName");
    errors.extend(subdomain_problems(node.text()).into_iter().map(|p| node.invalid(p)));
    if let Some(old) = old
        && old["spec"] != *spec.value
    {
        let shown = json!({
            "Attacher": spec.value["attacher"],
            "Source": {"PersistentVolumeName": volume.value, "InlineVolumeSpec": inline.value},
            "NodeName": spec.value["nodeName"],
        });
        errors.push(FieldError::invalid(spec.path.clone(), shown, "field is immutable"));
    }
}

pub(crate) fn csi_node(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    let drivers = Field::of(object, "spec").get("drivers");
    for driver in drivers.items() {
        let name = driver.get("name");
        present(&name, errors);
        if !name.is_empty() {
            let lower = name.text().to_lowercase();
            errors.extend(subdomain_problems(&lower).into_iter().map(|p| name.invalid(p)));
        }
        let id = driver.get("nodeID");
        present(&id, errors);
        if id.text().len() > 192 {
            errors.push(id.invalid("must be 192 characters or less"));
        }
        non_negative(&driver.get("allocatable").get("count"), errors);
        let mut keys = BTreeSet::new();
        for key in driver.get("topologyKeys").items() {
            qualified(&key, errors);
            if !keys.insert(key.text()) {
                errors.push(key.duplicate());
            }
        }
        if !name.is_empty() && !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
    let before = old.map(|o| &o["spec"]["drivers"]).and_then(Value::as_array);
    let mut by_name = HashMap::new();
    for driver in drivers.items() {
        by_name.entry(&driver.value["name"]).or_insert(driver);
    }
    for was in before.into_iter().flatten() {
        if let Some(driver) = by_name.get(&was["name"])
            && (driver.value["nodeID"] != was["nodeID"] || driver.value["topologyKeys"] != was["topologyKeys"])
        {
            errors.push(driver.invalid("field is immutable"));
        }
    }
}

pub(crate) fn default_csi_driver(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|s| s.is_object()) else {
        return;
    };
    or_set(spec, "attachRequired", true);
    or_set(spec, "podInfoOnMount", false);
    or_set(spec, "storageCapacity", false);
    or_set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    or_set(spec, "volumeLifecycleModes", json!(["Persistent"]));
    or_set(spec, "requiresRepublish", false);
    or_set(spec, "seLinuxMount", false);
}

pub(crate) fn csi_driver(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    maybe_one_of(
        &spec.get("fsGroupPolicy"),
        &["ReadWriteOnceWithFSType", "File", "None"],
        errors,
    );
    for mode in spec.get("volumeLifecycleModes").items() {
        one_of(&mode, &["Ephemeral", "Persistent"], errors);
    }
    if let Some(old) = old {
        for field in ["spec.attachRequired", "spec.volumeLifecycleModes"] {
            immutable(object, old, field, errors);
        }
    }
}
