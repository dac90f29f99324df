//! KubeadmConfigs, and the same specification in templates and control planes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_api::annotations;
use windlass_api_kubeadm::values::FORMAT_IGNITION;
use windlass_schema::{FieldError, FieldErrors};

use crate::common;
use crate::defaults;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// Checks a KubeadmConfig.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    spec(&Field::of(change.new).child("spec"), &mut errors);
    Ok(errors.into())
}

/// Sets what versions of Cluster API before v1.11 set, in the dry runs that the topology of a Cluster compares objects with: an object of
/// that time is not taken for changed.
pub fn complete_template(change: &Change<'_>, template: &mut Value) -> Result<Verdict, Unread> {
    if is_topology_dry_run(change, template) {
        previous_defaults(template, "spec.template.spec");
    }
    Ok(Verdict::default())
}

/// Checks a KubeadmConfigTemplate.
pub fn check_template(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let template = Field::of(change.new).child("spec.template");
    spec(&template.child("spec"), &mut errors);
    common::template_metadata(&template.child("metadata"), &mut errors);
    Ok(errors.into())
}

/// Whether a write is one by which the topology of a Cluster learns what it would change.
pub(crate) fn is_topology_dry_run(change: &Change<'_>, object: &Value) -> bool {
    let annotation = Field::of(object)
        .child("metadata.annotations")
        .entry(annotations::TOPOLOGY_DRY_RUN);
    change.dry_run && !annotation.value().is_null()
}

/// Defaults that Cluster API set before v1.11.
pub(crate) fn previous_defaults(object: &mut Value, at: &str) {
    const PULL: &str = "IfNotPresent";
    defaults::default(object, at, "format", "cloud-config");
    for part in ["initConfiguration", "joinConfiguration"] {
        defaults::default(
            object,
            &format!("{at}.{part}.nodeRegistration"),
            "imagePullPolicy",
            PULL,
        );
    }
    let exec = format!("{at}.joinConfiguration.discovery.file.kubeConfig.user.exec");
    if Field::of(object).child(&exec).is_set() {
        defaults::default(object, &exec, "apiVersion", "client.authentication.k8s.io/v1");
    }
}

/// Checks the specification of a KubeadmConfig.
pub(crate) fn spec(spec: &Field<'_>, errors: &mut FieldErrors) {
    files(&spec.child("files"), errors);
    for user in spec.child("users").items() {
        let (password, from) = (user.child("passwd"), user.child("passwdFrom"));
        if !password.text().is_empty() && from.is_set() {
            let shown = json!({"name": user.child("name").value()});
            let words = "only one of passwd or passwdFrom may be specified for a single user";
            errors.add(|| FieldError::invalid(user.path(), shown, words));
        }
        secret(&from, errors);
    }
    for token in spec.child("initConfiguration.bootstrapTokens").items() {
        let field = token.child("token");
        if !is_bootstrap_token(field.text()) {
            // It may be secret all the same.
            let words =
                "a bootstrap token has six characters, a point, and 16 characters: lower-case letters and digits";
            errors.add(|| FieldError::invalid(field.path(), Value::Null, words));
        }
    }
    ignition(spec, errors);
    for partition in spec.child("diskSetup.partitions").items() {
        let layout = partition.child("diskLayout");
        let shares = layout.items().filter_map(|part| part.child("percentage").number());
        let sum = shares.fold(0, i64::saturating_add);
        if sum > 100 {
            let words = "the sum of all partition percentages must not be greater than 100";
            errors.add(|| FieldError::invalid(layout.path(), sum.into(), words));
        }
    }
    let user = spec.child("joinConfiguration.discovery.file.kubeConfig.user");
    if user.child("authProvider").is_set() && user.child("exec").is_set() {
        // The user may have credentials.
        let names: Vec<&String> = user.map().into_iter().flat_map(|user| user.keys()).collect();
        let path = format!("{}.joinConfiguration.discovery.file.kubeconfig.user", spec.path());
        let words = "only one of authProvider or exec must be defined";
        errors.add(|| FieldError::invalid(path, json!(names), words));
    }
}

/// Checks what the format ignition has, and that only it has its settings.
fn ignition(spec: &Field<'_>, errors: &mut FieldErrors) {
    let format = spec.child("format");
    if format.text() != FORMAT_IGNITION {
        if spec.child("ignition").is_set() {
            let words = format!("must be set to {FORMAT_IGNITION:?} if spec.ignition is set");
            errors.add(|| FieldError::invalid(format.path(), format.text().into(), words));
        }
        return;
    }
    let forbid = |errors: &mut FieldErrors, field: &Field<'_>, is_used: bool| {
        if is_used {
            errors.add(|| field.forbidden(format!("not supported when spec.format is set to: {FORMAT_IGNITION:?}")));
        }
    };
    for user in spec.child("users").items() {
        let inactive = user.child("inactive");
        forbid(errors, &inactive, inactive.is_true());
    }
    for file in spec.child("files").items() {
        let encoding = file.child("encoding");
        forbid(errors, &encoding, matches!(encoding.text(), "gzip" | "gzip+base64"));
    }
    let commands = spec.child("bootCommands");
    forbid(errors, &commands, commands.is_set());
    for partition in spec.child("diskSetup.partitions").items() {
        let table = partition.child("tableType");
        if !matches!(table.text(), "" | "gpt") {
            let words =
                format!("only partition type \"gpt\" is supported when spec.format is set to {FORMAT_IGNITION:?}");
            errors.add(|| FieldError::invalid(table.path(), table.text().into(), words));
        }
    }
    for filesystem in spec.child("diskSetup.filesystems").items() {
        for part in ["replaceFS", "partition"] {
            let field = filesystem.child(part);
            forbid(errors, &field, !field.text().is_empty());
        }
    }
}

fn is_bootstrap_token(text: &str) -> bool {
    let is_part = |part: &str, length| {
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        part.len() == length && part.bytes().all(is_good)
    };
    text.split_once('.')
        .is_some_and(|(id, secret)| is_part(id, 6) && is_part(secret, 16))
}

fn files(files: &Field<'_>, errors: &mut FieldErrors) {
    let mut known = BTreeSet::new();
    for file in files.items() {
        // The contents of a file may be secret.
        let shown = json!({"path": file.child("path").value()});
        let from = file.child("contentFrom");
        if !file.child("content").text().is_empty() && from.is_set() {
            let words = "only one of content or contentFrom may be specified for a single file";
            errors.add(|| FieldError::invalid(file.path(), shown.clone(), words));
        }
        secret(&from, errors);
        if !known.insert(file.child("path").text()) {
            let words = "path property must be unique among all files";
            errors.add(|| FieldError::invalid(file.path_of("path"), shown, words));
        }
    }
}

/// Checks where something is read from.
fn secret(from: &Field<'_>, errors: &mut FieldErrors) {
    if !from.is_set() {
        return;
    }
    for part in ["name", "key"] {
        let field = from.child("secret").child(part);
        if field.text().is_empty() {
            errors.add(|| field.required(format!("secret file source must specify non-empty secret {part}")));
        }
    }
}

/// Checks what init and join of a control plane must have in common.
pub(crate) fn same_timeouts(spec: &Field<'_>, errors: &mut FieldErrors) {
    let field = |part: &str| spec.child(&format!("{part}.timeouts.controlPlaneComponentHealthCheckSeconds"));
    let (init, join) = (field("initConfiguration"), field("joinConfiguration"));
    if init.value() == join.value() {
        return;
    }
    let text = |field: &Field<'_>| {
        field
            .number()
            .map_or_else(|| "unset".to_owned(), |seconds| seconds.to_string())
    };
    let detail = format!(
        "controlPlaneComponentHealthCheckSeconds must be set to the same value both in initConfiguration.timeouts ({}) and in \
         joinConfiguration.timeouts ({})",
        text(&init),
        text(&join)
    );
    for field in [&init, &join] {
        errors.add(|| FieldError::invalid(field.path(), text(field).into(), detail.clone()));
    }
}
