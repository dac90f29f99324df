//! Unmodified providers of others, written in Go, with our controllers: what they read and write by contract, and nothing of ours for them.

mod ip_addresses;
mod machines;

use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use windlass_testkit::{Env, GoProvider, NAMESPACE};

/// The in-cluster IPAM provider, at the version of its program. The webhooks of all versions refuse the same object.
const fn in_cluster(program: &'static str, metrics_flag: &'static str) -> GoProvider {
    GoProvider {
        program,
        module: "sigs.k8s.io/cluster-api-ipam-provider-in-cluster",
        manifests: "config",
        health_flag: "--health-probe-bind-address",
        metrics_flag,
        flags: &[],
        variables: &[],
        refused: Some(
            "
            apiVersion: ipam.cluster.x-k8s.io/v1alpha2
            kind: InClusterIPPool
            metadata: {name: refused}
            spec: {addresses: [no address], prefix: 24}
            ",
        ),
    }
}

/// Cluster API's provider for tests, whose machines are in its memory, at its last release with kinds of their own. It is of the contract
/// v1beta1.
const CAPIM: GoProvider = GoProvider {
    program: "capim",
    module: "sigs.k8s.io/cluster-api/test",
    manifests: "infrastructure/inmemory/config",
    health_flag: "--health-addr",
    metrics_flag: "--diagnostics-address",
    flags: &["--feature-gates=ClusterTopology=true"],
    variables: &[("POD_IP", "127.0.0.1")],
    refused: None,
};

/// Cluster API's provider for development, of the contract v1beta2. Its kinds are those of our dev provider, whose controllers do not run
/// beside it. Its backend in memory needs no Docker.
const CAPD: GoProvider = GoProvider {
    program: "capd",
    module: "sigs.k8s.io/cluster-api/test",
    manifests: "infrastructure/docker/config",
    health_flag: "--health-addr",
    metrics_flag: "--diagnostics-address",
    flags: &["--feature-gates=ClusterTopology=true"],
    variables: &[("POD_IP", "127.0.0.1")],
    refused: Some(
        "
        apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
        kind: DockerCluster
        metadata: {name: refused}
        spec: {failureDomains: [{name: b}, {name: a}]}
        ",
    ),
};

/// Access to the objects of a kind that is none of ours.
fn foreign(env: &Env, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(env.client().clone(), NAMESPACE, &resource)
}
