//! KubeadmControlPlanes and their templates.

use std::num::{IntErrorKind, ParseIntError};

use serde_json::{Value, json};
use windlass_api_kubeadm::annotations::SKIP_COREDNS;
use windlass_kubeadm::coredns::{self, Version};
use windlass_meta::KubernetesVersion;
use windlass_schema::{FieldError, FieldErrors};

use crate::changes::{changes, is_covered};
use crate::common;
use crate::defaults;
use crate::field::Field;
use crate::kubeadm::config;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

const ROLLING: &str = "RollingUpdate";
/// The maps of templates. The comparison of v1.14 tells an empty one from a missing one.
const MAPS: [&str; 3] = [
    "kubeadmConfigSpec.clusterConfiguration.featureGates",
    "machineTemplate.metadata.annotations",
    "machineTemplate.metadata.labels",
];
/// The bytes of the paths of what changed that an error has. Others are left out.
const PATHS_BYTES: usize = 64 << 10;
/// How long a CA certificate is valid, in days, if the control plane does not say.
const CA_DAYS: i64 = 3650;

/// The fields of a control plane that can change. Everything else is read by kubeadm once, at the start of the first Machine.
const MUTABLE: &[&str] = &[
    "metadata.*",
    "status.*",
    "spec.replicas",
    "spec.version",
    "spec.remediation",
    "spec.remediation.*",
    "spec.machineNaming",
    "spec.machineNaming.*",
    "spec.rollout",
    "spec.rollout.*",
    "spec.machineTemplate.metadata",
    "spec.machineTemplate.metadata.*",
    "spec.machineTemplate.spec",
    "spec.machineTemplate.spec.*",
];

/// The fields of `spec.kubeadmConfigSpec` that can change.
const MUTABLE_CONFIG: &[&str] = &[
    "clusterConfiguration.etcd",
    "clusterConfiguration.etcd.*",
    "clusterConfiguration.dns",
    "clusterConfiguration.dns.*",
    "clusterConfiguration.imageRepository",
    "clusterConfiguration.featureGates",
    "clusterConfiguration.featureGates.*",
    "clusterConfiguration.apiServer",
    "clusterConfiguration.apiServer.*",
    "clusterConfiguration.controllerManager",
    "clusterConfiguration.controllerManager.*",
    "clusterConfiguration.scheduler",
    "clusterConfiguration.scheduler.*",
    "clusterConfiguration.certificateValidityPeriodDays",
    "clusterConfiguration.encryptionAlgorithm",
    "initConfiguration.nodeRegistration",
    "initConfiguration.nodeRegistration.*",
    "initConfiguration.patches",
    "initConfiguration.patches.directory",
    "initConfiguration.skipPhases",
    "initConfiguration.bootstrapTokens",
    "initConfiguration.localAPIEndpoint",
    "initConfiguration.localAPIEndpoint.*",
    "initConfiguration.timeouts",
    "initConfiguration.timeouts.*",
    "joinConfiguration.nodeRegistration",
    "joinConfiguration.nodeRegistration.*",
    "joinConfiguration.patches",
    "joinConfiguration.patches.directory",
    "joinConfiguration.skipPhases",
    "joinConfiguration.caCertPath",
    "joinConfiguration.controlPlane",
    "joinConfiguration.controlPlane.*",
    "joinConfiguration.discovery",
    "joinConfiguration.discovery.*",
    "joinConfiguration.timeouts",
    "joinConfiguration.timeouts.*",
    "bootCommands",
    "preKubeadmCommands",
    "postKubeadmCommands",
    "files",
    "verbosity",
    "users",
    "ntp",
    "ntp.*",
    "ignition",
    "ignition.*",
    "diskSetup",
    "diskSetup.*",
    "format",
    "mounts",
];

/// Sets replicas, the `v` of the version, and the rollout strategy.
pub fn complete(_: &Change<'_>, control_plane: &mut Value) -> Result<Verdict, Unread> {
    defaults::default(control_plane, "spec", "replicas", 1);
    defaults::version(control_plane, "/spec/version");
    let strategy = "spec.rollout.strategy";
    defaults::set(control_plane, strategy, "type", ROLLING);
    defaults::default(control_plane, &format!("{strategy}.rollingUpdate"), "maxSurge", 1);
    Ok(Verdict::default())
}

/// Checks a KubeadmControlPlane.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let spec = Field::of(change.new).child("spec");
    specification(&spec, &mut errors);
    let config_spec = spec.child("kubeadmConfigSpec");
    if change.is_update() {
        changes(change.old, change.new, |path| {
            let is_mutable = match path.split_at_checked(2) {
                Some((start, rest)) if start == ["spec", "kubeadmConfigSpec"] => is_covered(rest, MUTABLE_CONFIG),
                _ => is_covered(path, MUTABLE) || path == ["apiVersion"],
            };
            if !is_mutable {
                errors.add(|| FieldError::forbidden(path.join("."), "cannot be modified"));
            }
        });
        let old = Field::of(change.old).child("spec");
        one_minor(&old.child("version"), &spec.child("version"), &mut errors);
        cluster_configuration(Some(&old.child("kubeadmConfigSpec")), &config_spec, &mut errors);
        let skips = Field::of(change.new).child("metadata.annotations").entry(SKIP_COREDNS);
        core_dns(&old, &spec, skips.value().is_null(), &mut errors);
    } else {
        cluster_configuration(None, &config_spec, &mut errors);
    }
    config::spec(&config_spec, &mut errors);
    config::same_timeouts(&config_spec, &mut errors);
    Ok(errors.into())
}

/// Checks the replicas that a write of the scale subresource asks for.
pub fn check_scale(replicas: i64, control_plane: &Value) -> Option<String> {
    let spec = Field::of(control_plane).child("spec");
    if replicas <= 0 {
        return Some("replicas should be greater than zero".to_owned());
    }
    if replicas % 2 == 0 && !has_external_etcd(&spec.child("kubeadmConfigSpec")) {
        return Some("replicas cannot be an even number when etcd is stacked".to_owned());
    }
    None
}

fn has_external_etcd(config_spec: &Field<'_>) -> bool {
    config_spec.child("clusterConfiguration.etcd.external").is_set()
}

fn specification(spec: &Field<'_>, errors: &mut FieldErrors) {
    let replicas = spec.child("replicas");
    match replicas.number() {
        None => errors.add(|| replicas.required("is required")),
        Some(number) if number <= 0 => errors.add(|| replicas.forbidden("cannot be less than or equal to 0")),
        Some(_) => {}
    }
    let is_even = replicas.number().is_some_and(|number| number % 2 == 0);
    if is_even && !has_external_etcd(&spec.child("kubeadmConfigSpec")) {
        errors.add(|| replicas.forbidden("cannot be an even number when etcd is stacked"));
    }
    let infrastructure = spec.child("machineTemplate.spec.infrastructureRef");
    for part in ["apiGroup", "kind", "name"] {
        if infrastructure.child(part).text().is_empty() {
            errors.add(|| infrastructure.child(part).invalid("cannot be empty"));
        }
    }
    common::taints(&spec.child("machineTemplate.spec.taints"), false, errors);
    common::template_metadata(&spec.child("machineTemplate.metadata"), errors);
    common::version(&spec.child("version"), "must be a valid semantic version", errors);
    rollout(spec, replicas.number(), errors);
    naming(spec, errors);
}

fn naming(spec: &Field<'_>, errors: &mut FieldErrors) {
    let data = common::naming_data(Some(("kubeadmControlPlane", "name")));
    common::machine_naming(&spec.child("machineNaming"), &data, errors);
}

/// Checks the strategy, and that certificates are renewed before they expire.
fn rollout(spec: &Field<'_>, replicas: Option<i64>, errors: &mut FieldErrors) {
    let strategy = spec.child("rollout.strategy");
    // Only templates have none.
    if !strategy.is_set() {
        return;
    }
    let kind = strategy.child("type");
    if kind.text() != ROLLING {
        errors.add(|| kind.required("only RollingUpdate is supported"));
    }
    let rolling = strategy.child("rollingUpdate");
    let surge = rolling.child("maxSurge");
    let number = match surge.value() {
        Value::Null => None,
        Value::String(text) => Some(number_of(text)),
        value => value.as_i64(),
    };
    if number == Some(0) && replicas.is_some_and(|replicas| replicas < 3) {
        let words = "when KubeadmControlPlane is configured to scale-in, replica count needs to be at least 3";
        errors.add(|| rolling.required(words));
    }
    if number.is_some_and(|number| !matches!(number, 0 | 1)) {
        errors.add(|| surge.required("value must be 1 or 0"));
    }
    let configuration = spec.child("kubeadmConfigSpec.clusterConfiguration");
    let period = configuration.child("certificateValidityPeriodDays");
    let Some(days) = period.number().filter(|days| *days != 0) else {
        return;
    };
    let own = configuration.child("caCertificateValidityPeriodDays").number();
    match own.filter(|days| *days != 0) {
        Some(most) if days > most => errors.add(|| {
            period.invalid(format!(
                "must be less than or equal to caCertificateValidityPeriodDays ({most})"
            ))
        }),
        None if days > CA_DAYS => errors.add(|| {
            period.invalid(format!(
                "must be less than or equal to the default value of caCertificateValidityPeriodDays ({CA_DAYS})"
            ))
        }),
        _ => {}
    }
    let before = spec.child("rollout.before.certificatesExpiryDays");
    if before.number().is_some_and(|before| before != 0 && before >= days) {
        errors.add(|| before.invalid(format!("must be less than certificateValidityPeriodDays ({days})")));
    }
}

/// The number that a text is for Go, without a look at its errors: one that is too large is the largest, and what is no number is zero.
fn number_of(text: &str) -> i64 {
    text.parse().unwrap_or_else(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => i64::MAX,
        IntErrorKind::NegOverflow => i64::MIN,
        _ => 0,
    })
}

/// Checks tags of images, and where etcd runs. `old` is the stored specification.
fn cluster_configuration(old: Option<&Field<'_>>, config_spec: &Field<'_>, errors: &mut FieldErrors) {
    let configuration = config_spec.child("clusterConfiguration");
    let tag = configuration.child("dns.imageTag");
    image_tag(&tag, errors);
    if !tag.text().is_empty()
        && let Err(error) = Version::of_tag(tag.text())
    {
        errors.add(|| tag.invalid(format!("failed to parse CoreDNS version: {error}")));
    }
    let (local, external) = (configuration.child("etcd.local"), configuration.child("etcd.external"));
    image_tag(&local.child("imageTag"), errors);
    if local.is_set() && external.is_set() {
        errors.add(|| local.forbidden("cannot have both external and local etcd"));
    }
    if old.is_some_and(|old| has_external_etcd(old) != external.is_set()) {
        errors.add(|| external.forbidden("cannot change between external and local etcd"));
    }
}

fn image_tag(tag: &Field<'_>, errors: &mut FieldErrors) {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !tag.text().chars().all(is_allowed) {
        errors.add(|| tag.forbidden(format!("tag {} is invalid", tag.text())));
    }
}

/// Checks that an update skips no minor version.
fn one_minor(old: &Field<'_>, new: &Field<'_>, errors: &mut FieldErrors) {
    let (Ok(from), Ok(to)) = (
        KubernetesVersion::parse_tolerant(old.text()),
        KubernetesVersion::parse_tolerant(new.text()),
    ) else {
        // Another check says what is wrong with the new version; whatever was stored can be corrected.
        return;
    };
    if (to.major(), to.minor()) >= (from.major(), from.minor().saturating_add(2)) {
        errors.add(|| {
            new.forbidden(format!(
                "cannot update Kubernetes version from {} to {}",
                old.text(),
                new.text()
            ))
        });
    }
}

/// Checks that CoreDNS can be migrated from one version to the other.
fn core_dns(old: &Field<'_>, new: &Field<'_>, migrates: bool, errors: &mut FieldErrors) {
    let tag = |spec: &Field<'_>| {
        spec.child("kubeadmConfigSpec.clusterConfiguration.dns.imageTag")
            .text()
            .to_owned()
    };
    let (from, to) = (tag(old), tag(new));
    if from.is_empty() || to.is_empty() {
        return;
    }
    let field = new.child("kubeadmConfigSpec.clusterConfiguration.dns.imageTag");
    // The check of a tag says what is wrong with it; whatever was stored can be corrected.
    let (Ok(from), Ok(to)) = (Version::of_tag(&from), Version::of_tag(&to)) else {
        return;
    };
    if migrates
        && from != to
        && let Err(why) = coredns::can_migrate(from, to)
    {
        errors.add(|| field.forbidden(format!("cannot migrate CoreDNS up to '{to}' from '{from}': {why}")));
    }
}

/// Checks a KubeadmControlPlaneTemplate: its specification cannot change.
pub fn check_template(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let template = Field::of(change.new).child("spec.template");
    let spec = template.child("spec");
    if change.is_update() {
        let completed = |object: &Value| {
            let mut object = object.clone();
            config::previous_defaults(&mut object, "spec.template.spec.kubeadmConfigSpec");
            object
        };
        let (old, mut new) = (completed(change.old), completed(change.new));
        let strategy = Field::of(&old).child("spec.template.spec.rollout.strategy").value();
        let was_default = json!({"type": ROLLING, "rollingUpdate": {"maxSurge": 1}});
        if !spec.child("rollout.strategy").is_set() && *strategy == was_default {
            defaults::set(&mut new, "spec.template.spec.rollout", "strategy", was_default);
        }
        errors.extend(immutable("KubeadmControlPlaneTemplate", &old, &new));
        return Ok(errors.into());
    }
    rollout(&spec, None, &mut errors);
    naming(&spec, &mut errors);
    common::taints(&spec.child("machineTemplate.spec.taints"), false, &mut errors);
    common::template_metadata(&spec.child("machineTemplate.metadata"), &mut errors);
    let config_spec = spec.child("kubeadmConfigSpec");
    cluster_configuration(None, &config_spec, &mut errors);
    config::spec(&config_spec, &mut errors);
    config::same_timeouts(&config_spec, &mut errors);
    common::template_metadata(&template.child("metadata"), &mut errors);
    Ok(errors.into())
}

/// The error about a changed specification of a template, with the paths of what changed. Values are not shown: they may be secret.
pub(crate) fn immutable(kind: &str, old: &Value, new: &Value) -> Option<FieldError> {
    let spec = |object| Field::of(object).child("spec.template.spec");
    let (mut paths, mut room) = (Vec::new(), PATHS_BYTES);
    for path in MAPS {
        let map = |object| spec(object).child(path);
        let (old, new) = (map(old), map(new));
        if !old.is_set() && !new.is_set() && old.value().is_object() != new.value().is_object() {
            paths.push(path.to_owned());
        }
    }
    changes(spec(old).value(), spec(new).value(), |path| {
        if room > 0 {
            let path = path.join(".");
            room = room.saturating_sub(path.len() + 1);
            paths.push(path);
        }
    });
    if paths.is_empty() {
        return None;
    }
    let words = "spec.template.spec field is immutable. Please create a new resource instead.";
    Some(FieldError::invalid(
        spec(new).path(),
        json!(paths),
        format!("{kind} {words}"),
    ))
}
