//! Volumes of pods: defaults and validation.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::field::{Errors, Field, items_mut, label, maybe_one_of, or_set, present, set};

const MODE: i64 = 0o644;

/// Defaults of volumes.
pub(crate) fn default(spec: &mut Value) {
    for volume in items_mut(spec, "/volumes") {
        if volume.as_object().is_some_and(|v| v.keys().all(|k| k == "name")) {
            set(volume, "emptyDir", json!({}));
        }
        for kind in ["secret", "configMap", "downwardAPI", "projected"] {
            if let Some(source) = volume.get_mut(kind) {
                or_set(source, "defaultMode", MODE);
            }
        }
        if let Some(path) = volume.get_mut("hostPath") {
            or_set(path, "type", "");
        }
        downward(volume, "/downwardAPI/items");
        for source in items_mut(volume, "/projected/sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                or_set(token, "expirationSeconds", 3600);
            }
            downward(source, "/downwardAPI/items");
        }
        if let Some(spec) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
            or_set(spec, "volumeMode", "Filesystem");
        }
    }
}

fn downward(source: &mut Value, pointer: &str) {
    for item in items_mut(source, pointer) {
        if let Some(reference) = item.get_mut("fieldRef") {
            or_set(reference, "apiVersion", "v1");
        }
    }
}

/// Validates the volumes; returns their names.
pub(crate) fn check<'a>(spec: &Field<'a>, in_pod: bool, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for volume in spec.get("volumes").items() {
        source(&volume, errors);
        if in_pod && spec.get("serviceAccountName").is_empty() {
            for source in volume.get("projected").get("sources").items() {
                let token = source.get("serviceAccountToken");
                if token.is_set() {
                    errors.push(token.forbidden("must not be specified when serviceAccountName is not set"));
                }
            }
        }
        let name = volume.get("name");
        present(&name, errors);
        label(&name, errors);
        if !name.is_empty() && !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
    names
}

fn source(volume: &Field<'_>, errors: &mut Errors) {
    let kinds: Vec<&String> = volume.value.as_object().into_iter().flat_map(|v| v.keys()).collect();
    let mut kinds: Vec<Field<'_>> = kinds.iter().filter(|k| **k != "name").map(|k| volume.get(k)).collect();
    // In the order of Kubernetes, as far as it matters: simple sources first.
    kinds.sort_by_key(|k| !(k.path.ends_with(".emptyDir") || k.path.ends_with(".hostPath")));
    if kinds.is_empty() {
        errors.push(volume.required("must specify a volume type"));
    }
    for (i, kind) in kinds.iter().enumerate() {
        if i > 0 {
            errors.push(kind.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        one(kind, errors);
    }
}

/// Validates one source of a volume, in any kind.
pub(crate) fn one(kind: &Field<'_>, errors: &mut Errors) {
    match kind.path.rsplit('.').next() {
        Some("hostPath") => {
            let path = kind.get("path");
            present(&path, errors);
            backsteps(&path, errors);
            maybe_one_of(
                &kind.get("type"),
                &[
                    "",
                    "BlockDevice",
                    "CharDevice",
                    "Directory",
                    "DirectoryOrCreate",
                    "File",
                    "FileOrCreate",
                    "Socket",
                ],
                errors,
            );
        }
        Some("secret") => present(&kind.get("secretName"), errors),
        Some("configMap") => present(&kind.get("name"), errors),
        Some("persistentVolumeClaim") => present(&kind.get("claimName"), errors),
        Some("nfs") => {
            present(&kind.get("server"), errors);
            let path = kind.get("path");
            present(&path, errors);
            if !path.is_empty() && !path.text().starts_with('/') {
                errors.push(path.invalid("must be an absolute path"));
            }
        }
        Some("csi") => present(&kind.get("driver"), errors),
        Some("projected") => {
            for source in kind.get("sources").items() {
                for (key, needs) in [
                    ("secret", "name"),
                    ("configMap", "name"),
                    ("serviceAccountToken", "path"),
                ] {
                    let inner = source.get(key);
                    if inner.is_set() {
                        present(&inner.get(needs), errors);
                    }
                }
            }
        }
        _ => {}
    }
}

fn backsteps(path: &Field<'_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}
