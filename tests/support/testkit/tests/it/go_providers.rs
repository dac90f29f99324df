//! Unmodified providers of others, written in Go, with our controllers: what they read and write by contract, and nothing of ours for them.

mod ip_addresses;

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
        variables: &[],
        refused: "
            apiVersion: ipam.cluster.x-k8s.io/v1alpha2
            kind: InClusterIPPool
            metadata: {name: refused}
            spec: {addresses: [no address], prefix: 24}
        ",
    }
}

/// Access to the objects of a kind that is none of ours.
fn foreign(env: &Env, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(env.client().clone(), NAMESPACE, &resource)
}
