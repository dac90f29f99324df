//! Conversion of v1alpha1 objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::problem::Problems;
use super::read::{Reader, text};
use super::{
    Api, ContainerSettings, Declared, DeploymentSettings, Fetch, ImageOverride, LeaderElection, Settings, empty,
};
use crate::management::v1alpha1 as api;
use crate::provider_type::ProviderType;

pub(crate) fn from_v1alpha1(
    type_: ProviderType,
    metadata: &ObjectMeta,
    spec: Option<&api::ProviderSpec>,
) -> Result<Declared, Problems> {
    let mut declared = empty(type_, Api::V1Alpha1, metadata);
    let Some(spec) = spec else { return Ok(declared) };
    let mut read = Reader::default();
    declared.version = read.version(spec.version.as_ref(), true);
    declared.paused = spec.paused.unwrap_or_default();
    declared.manager = spec.manager.as_ref().map(|m| manager(&mut read, m)).unwrap_or_default();
    declared.deployment = spec
        .deployment
        .as_ref()
        .map(|d| deployment(&mut read, d))
        .unwrap_or_default();
    declared.config_secret = spec
        .secret_name
        .as_ref()
        .map(|name| read.reference("spec.secretName", name, None, &declared.key));
    declared.fetch = spec
        .fetch_config
        .as_ref()
        .map(|f| fetch(&mut read, f))
        .unwrap_or_default();
    read.finish()?;
    Ok(declared)
}

fn manager(read: &mut Reader, spec: &api::ManagerSpec) -> Settings {
    let health = spec.health.clone().unwrap_or_default();
    let webhook = spec.webhook.clone().unwrap_or_default();
    Settings {
        debug: spec.debug.unwrap_or_default(),
        profiler_address: text(spec.profiler_address.as_ref()),
        max_concurrent_reconciles: read.at_least(
            1,
            "spec.manager.maxConcurrentReconciles",
            spec.max_concurrent_reconciles,
        ),
        verbosity: read.at_least(0, "spec.manager.verbosity", spec.verbosity),
        feature_gates: spec.feature_gates.clone(),
        sync_period: read.waiting("spec.manager.syncPeriod", spec.sync_period.as_ref()),
        leader_election: spec.leader_election.as_ref().map(|e| leader_election(read, e)),
        cache_namespace: text(spec.cache_namespace.as_ref()),
        graceful_shutdown: read.duration("spec.manager.gracefulShutDown", spec.graceful_shut_down.as_ref()),
        metrics_bind_address: spec.metrics.as_ref().and_then(|m| text(m.bind_address.as_ref())),
        health_probe_bind_address: text(health.health_probe_bind_address.as_ref()),
        readiness_endpoint_name: text(health.readiness_endpoint_name.as_ref()),
        liveness_endpoint_name: text(health.liveness_endpoint_name.as_ref()),
        webhook_port: read.port("spec.manager.webhook.port", webhook.port),
        webhook_host: text(webhook.host.as_ref()),
        webhook_cert_dir: text(webhook.cert_dir.as_ref()),
        ..Settings::default()
    }
}

fn leader_election(read: &mut Reader, spec: &api::LeaderElection) -> LeaderElection {
    const FIELD: &str = "spec.manager.leaderElection";
    let election = LeaderElection {
        leader_elect: spec.leader_elect,
        lease_duration: read.nonzero(&format!("{FIELD}.leaseDuration"), spec.lease_duration.as_ref()),
        renew_deadline: read.nonzero(&format!("{FIELD}.renewDeadline"), spec.renew_deadline.as_ref()),
        retry_period: read.nonzero(&format!("{FIELD}.retryPeriod"), spec.retry_period.as_ref()),
        resource_lock: text(spec.resource_lock.as_ref()),
        resource_name: text(spec.resource_name.as_ref()),
        resource_namespace: text(spec.resource_namespace.as_ref()),
    };
    read.renews_in_time(FIELD, &election);
    election
}

fn deployment(read: &mut Reader, spec: &api::DeploymentSpec) -> DeploymentSettings {
    DeploymentSettings {
        replicas: read.replicas("spec.deployment.replicas", spec.replicas),
        node_selector: spec.node_selector.clone(),
        tolerations: spec.tolerations.clone(),
        affinity: spec.affinity.clone(),
        containers: spec
            .containers
            .iter()
            .enumerate()
            .map(|(index, c)| container(read, index, c))
            .collect(),
        ..DeploymentSettings::default()
    }
}

fn container(read: &mut Reader, index: usize, spec: &api::ContainerSpec) -> ContainerSettings {
    read.container_name(&format!("spec.deployment.containers[{index}].name"), &spec.name);
    ContainerSettings {
        name: spec.name.clone(),
        image: spec.image.as_ref().and_then(image),
        args: spec.args.clone(),
        env: spec.env.clone(),
        resources: spec.resources.clone(),
        command: None,
    }
}

fn image(spec: &api::ImageMeta) -> Option<ImageOverride> {
    let [repository, name, tag] = [&spec.repository, &spec.name, &spec.tag].map(|part| text(part.as_ref()));
    (repository.is_some() || name.is_some() || tag.is_some()).then_some(ImageOverride::Parts { repository, name, tag })
}

/// An empty `fetchConfig` is an error and not the same as an unset one: a source was probably forgotten.
fn fetch(read: &mut Reader, spec: &api::FetchConfiguration) -> Fetch {
    match (text(spec.url.as_ref()), &spec.selector) {
        (Some(url), None) => return Fetch::Url(url),
        (None, Some(selector)) => return Fetch::Selector(selector.clone()),
        (Some(_), Some(_)) => read.problem(
            "spec.fetchConfig",
            "both url and selector are set: keep the one that the files come from",
        ),
        (None, None) => read.problem(
            "spec.fetchConfig",
            "neither url nor selector is set: set one, or leave fetchConfig out for a provider that is known by its name",
        ),
    }
    Fetch::Default
}
