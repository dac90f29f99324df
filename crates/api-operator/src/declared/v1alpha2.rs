//! Conversion of v1alpha2 objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_meta::GoDuration;

use super::problem::Problems;
use super::read::{Reader, text};
use super::{
    AdditionalDeployment, Api, ContainerSettings, Declared, DeploymentSettings, Fetch, ImageOverride, LeaderElection,
    PatchTarget, Patches, Settings, TargetedPatch, empty,
};
use crate::operator::v1alpha2 as api;
use crate::provider_type::ProviderType;

/// The default of `verbosity` in the schema.
const DEFAULT_VERBOSITY: i64 = 1;

pub(crate) fn from_v1alpha2(
    type_: ProviderType,
    metadata: &ObjectMeta,
    spec: Option<&api::ProviderSpec>,
) -> Result<Declared, Problems> {
    let mut declared = empty(type_, Api::V1Alpha2, metadata);
    let Some(spec) = spec else { return Ok(declared) };
    let mut read = Reader::default();
    declared.version = read.version(spec.version.as_ref(), false);
    declared.manager = manager(&mut read, "spec.manager", spec.manager.as_ref());
    declared.deployment = deployment(&mut read, "spec.deployment", spec.deployment.as_ref());
    for (name, settings) in &spec.additional_deployments {
        let field = format!("spec.additionalDeployments[{name}]");
        let settings = AdditionalDeployment {
            deployment: deployment(&mut read, &format!("{field}.deployment"), settings.deployment.as_ref()),
            manager: manager(&mut read, &format!("{field}.manager"), settings.manager.as_ref()),
        };
        declared.additional.insert(name.clone(), settings);
    }
    let own = declared.key.clone();
    let mut reference = |field, to: Option<&api::ObjectReference>| {
        to.map(|to| read.reference(field, &to.name, to.namespace.as_ref(), &own))
    };
    declared.config_secret = reference("spec.configSecret", spec.config_secret.as_ref());
    declared.manifests = reference("spec.additionalManifests", spec.additional_manifests.as_ref());
    declared.fetch = spec
        .fetch_config
        .as_ref()
        .map(|f| fetch(&mut read, f))
        .unwrap_or_default();
    declared.patches = patches(&mut read, spec);
    read.finish()?;
    Ok(declared)
}

fn manager(read: &mut Reader, field: &str, spec: Option<&api::ManagerSpec>) -> Settings {
    let Some(spec) = spec else { return Settings::default() };
    let at = |name: &str| format!("{field}.{name}");
    let controller = spec.controller.clone().unwrap_or_default();
    let metrics = spec.metrics.clone().unwrap_or_default();
    let health = spec.health.clone().unwrap_or_default();
    let webhook = spec.webhook.clone().unwrap_or_default();
    for (kind, number) in &controller.group_kind_concurrency {
        read.at_least(
            1,
            &at(&format!("controller.groupKindConcurrency[{kind}]")),
            Some(*number),
        );
    }
    Settings {
        debug: false,
        profiler_address: text(spec.profiler_address.as_ref()),
        max_concurrent_reconciles: read.at_least(1, &at("maxConcurrentReconciles"), spec.max_concurrent_reconciles),
        // The API server sets the default in every object, so a set 1 cannot be distinguished from an unset field. The
        // default must not override other settings.
        verbosity: read
            .at_least(0, &at("verbosity"), spec.verbosity)
            .filter(|verbosity| *verbosity != DEFAULT_VERBOSITY),
        feature_gates: spec.feature_gates.clone(),
        sync_period: read.waiting(&at("syncPeriod"), spec.sync_period.as_ref()),
        leader_election: spec
            .leader_election
            .as_ref()
            .map(|election| leader_election(read, &at("leaderElection"), election)),
        cache_namespace: text(spec.cache_namespace.as_ref()),
        graceful_shutdown: read.duration(&at("gracefulShutDown"), spec.graceful_shut_down.as_ref()),
        group_kind_concurrency: controller.group_kind_concurrency,
        cache_sync_timeout: controller.cache_sync_timeout.map(GoDuration::from_nanos),
        recover_panic: controller.recover_panic,
        metrics_bind_address: text(metrics.bind_address.as_ref()),
        diagnostics_address: text(metrics.diagnostics_address.as_ref()),
        insecure_diagnostics: metrics.insecure_diagnostics,
        health_probe_bind_address: text(health.health_probe_bind_address.as_ref()),
        readiness_endpoint_name: text(health.readiness_endpoint_name.as_ref()),
        liveness_endpoint_name: text(health.liveness_endpoint_name.as_ref()),
        webhook_port: read.port(&at("webhook.port"), webhook.port),
        webhook_host: text(webhook.host.as_ref()),
        webhook_cert_dir: text(webhook.cert_dir.as_ref()),
        additional_args: spec.additional_args.clone(),
    }
}

/// All fields are required in this API, so empty ones mean unset.
fn leader_election(read: &mut Reader, field: &str, spec: &api::LeaderElection) -> LeaderElection {
    let election = LeaderElection {
        leader_elect: spec.leader_elect,
        lease_duration: read.nonzero(&format!("{field}.leaseDuration"), Some(&spec.lease_duration)),
        renew_deadline: read.nonzero(&format!("{field}.renewDeadline"), Some(&spec.renew_deadline)),
        retry_period: read.nonzero(&format!("{field}.retryPeriod"), Some(&spec.retry_period)),
        resource_lock: text(Some(&spec.resource_lock)),
        resource_name: text(Some(&spec.resource_name)),
        resource_namespace: text(Some(&spec.resource_namespace)),
    };
    read.renews_in_time(field, &election);
    election
}

fn deployment(read: &mut Reader, field: &str, spec: Option<&api::DeploymentSpec>) -> DeploymentSettings {
    let Some(spec) = spec else {
        return DeploymentSettings::default();
    };
    DeploymentSettings {
        replicas: read.replicas(&format!("{field}.replicas"), spec.replicas),
        node_selector: spec.node_selector.clone(),
        tolerations: spec.tolerations.clone(),
        affinity: spec.affinity.clone(),
        containers: spec
            .containers
            .iter()
            .enumerate()
            .map(|(index, spec)| container(read, &format!("{field}.containers[{index}]"), spec))
            .collect(),
        service_account_name: text(spec.service_account_name.as_ref()),
        image_pull_secrets: spec
            .image_pull_secrets
            .as_ref()
            .map(|secrets| secrets.iter().filter_map(|secret| text(secret.name.as_ref())).collect()),
    }
}

fn container(read: &mut Reader, field: &str, spec: &api::ContainerSpec) -> ContainerSettings {
    read.container_name(&format!("{field}.name"), &spec.name);
    ContainerSettings {
        name: spec.name.clone(),
        image: text(spec.image_url.as_ref()).map(ImageOverride::Whole),
        args: spec.args.clone(),
        env: spec.env.clone(),
        resources: spec.resources.clone(),
        command: spec.command.clone(),
    }
}

/// An empty `fetchConfig` is an error and not the same as an unset one: a source was probably forgotten.
fn fetch(read: &mut Reader, spec: &api::FetchConfiguration) -> Fetch {
    match (text(spec.oci.as_ref()), text(spec.url.as_ref()), &spec.selector) {
        (Some(oci), None, None) => return Fetch::Oci(oci),
        (None, Some(url), None) => return Fetch::Url(url),
        (None, None, Some(selector)) => return Fetch::Selector(selector.clone()),
        (None, None, None) => read.problem(
            "spec.fetchConfig",
            "none of oci, url and selector is set: set one, or leave fetchConfig out for a provider that is known by its name",
        ),
        _ => read.problem(
            "spec.fetchConfig",
            "more than one of oci, url and selector are set: keep the one that the files come from",
        ),
    }
    Fetch::Default
}

fn patches(read: &mut Reader, spec: &api::ProviderSpec) -> Patches {
    match (spec.manifest_patches.as_slice(), spec.patches.as_slice()) {
        ([], []) => Patches::None,
        (merge, []) => Patches::Merge(merge.to_vec()),
        ([], targeted) => Patches::Targeted(targeted.iter().map(targeted_patch).collect()),
        _ => {
            read.problem(
                "spec.patches",
                "patches and manifestPatches are both set: keep one of them",
            );
            Patches::None
        }
    }
}

fn targeted_patch(spec: &api::Patch) -> TargetedPatch {
    TargetedPatch {
        patch: spec.patch.clone().unwrap_or_default(),
        target: spec.target.as_ref().map(|target| PatchTarget {
            group: text(target.group.as_ref()),
            version: text(target.version.as_ref()),
            kind: text(target.kind.as_ref()),
            name: text(target.name.as_ref()),
            namespace: text(target.namespace.as_ref()),
            label_selector: text(target.label_selector.as_ref()),
        }),
    }
}
