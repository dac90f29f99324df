//! Which entries of the inventory have to be written and deleted.

use std::sync::Arc;

use serde_json::Value;
use windlass_api_operator::inventory::Provider;
use windlass_api_operator::{BuiltIn, NAMESPACE};

use super::{WRITTEN_BY, entry, is_ours};
use crate::built_in::BuiltIns;

/// What to do about the inventory.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Entries to write.
    pub(super) written: Vec<Value>,
    /// Entries of providers that were built in and are no more.
    pub(super) deleted: Vec<Arc<Provider>>,
    /// Entries of others for providers that are built in, with what to do about each.
    pub(super) others: Vec<(Arc<Provider>, String)>,
}

/// Compares the inventory with the built-in providers.
pub(super) fn plan(built_ins: &BuiltIns, stored: &[Arc<Provider>]) -> Plan {
    let mut plan = Plan::default();
    for built_in in built_ins.all() {
        let about = |provider: &&Arc<Provider>| is_about(provider, built_in);
        let (ours, others): (Vec<_>, Vec<_>) = stored.iter().filter(about).partition(|provider| is_at_home(provider));
        // clusterctl stops when it finds a provider twice.
        if others.is_empty() {
            let desired = desired(built_in);
            if !ours.iter().any(|provider| is_as(provider, &desired)) {
                plan.written.push(desired);
            }
        }
        for other in others {
            let meta = &other.metadata;
            let (namespace, name) = (
                meta.namespace.as_deref().unwrap_or_default(),
                meta.name.as_deref().unwrap_or_default(),
            );
            let message = format!(
                "the inventory says that {} {} is installed in namespace {namespace} as version {}, and Windlass has it built in as \
                 version {}: remove what is left there, then this entry: kubectl -n {namespace} delete \
                 providers.clusterctl.cluster.x-k8s.io {name}",
                built_in.type_,
                built_in.name,
                other.version.as_deref().unwrap_or("unknown"),
                built_in.version
            );
            plan.others.push((other.clone(), message));
        }
    }
    let is_stale = |provider: &&Arc<Provider>| {
        is_ours(&provider.metadata) && !built_ins.all().any(|built_in| is_about(provider, built_in))
    };
    plan.deleted = stored.iter().filter(is_stale).cloned().collect();
    plan
}

/// The entry of a built-in provider.
fn desired(built_in: &BuiltIn) -> Value {
    let mut desired = entry(built_in.type_, built_in.name, NAMESPACE, built_in.version);
    let (key, value) = WRITTEN_BY;
    desired["metadata"]["labels"][key] = Value::from(value);
    desired
}

fn is_about(provider: &Provider, built_in: &BuiltIn) -> bool {
    provider.provider_type() == Some(built_in.type_)
        && provider
            .provider_name
            .as_deref()
            .is_some_and(|name| built_in.is(built_in.type_, name))
}

fn is_at_home(provider: &Provider) -> bool {
    provider.metadata.namespace.as_deref() == Some(NAMESPACE)
}

/// Whether an entry has all that is desired of it.
fn is_as(provider: &Provider, desired: &Value) -> bool {
    let meta = &provider.metadata;
    let has_label = |(key, value): (&String, &Value)| {
        let labels = meta.labels.as_ref();
        labels.and_then(|labels| labels.get(key)).map(String::as_str) == value.as_str()
    };
    let fields = [
        (&desired["metadata"]["name"], meta.name.as_deref()),
        (&desired["providerName"], provider.provider_name.as_deref()),
        (&desired["type"], provider.r#type.as_deref()),
        (&desired["version"], provider.version.as_deref()),
    ];
    meta.deletion_timestamp.is_none()
        && fields.iter().all(|(desired, stored)| desired.as_str() == *stored)
        && desired["metadata"]["labels"]
            .as_object()
            .into_iter()
            .flatten()
            .all(has_label)
}

#[cfg(test)]
mod tests {
    use windlass_api_operator::BUILT_IN;
    use windlass_controller_runtime::Codec as _;

    use super::*;
    use crate::built_in::Own;

    fn built_ins(count: usize) -> BuiltIns {
        let all = BUILT_IN.iter().take(count).map(|is| Own {
            is: *is,
            definitions: Vec::new(),
        });
        BuiltIns::new(all)
    }

    fn stored(values: &[Value]) -> Vec<Arc<Provider>> {
        let read = |value: &Value| Arc::new(Provider::from_json(value).unwrap());
        values.iter().map(read).collect()
    }

    #[test]
    fn what_is_written_is_as_desired() {
        let all = built_ins(5);
        let first = plan(&all, &[]);
        assert_eq!(first.written.len(), 5);
        let core = &first.written[0];
        assert_eq!(core["metadata"]["name"], "cluster-api");
        assert_eq!(core["metadata"]["namespace"], NAMESPACE);
        assert_eq!(core["version"], "v1.14.0");
        let second = plan(&all, &stored(&first.written));
        assert!(second.written.is_empty() && second.deleted.is_empty() && second.others.is_empty());
        // What others changed is put back.
        let mut changed = first.written.clone();
        changed[0]["version"] = "v1.0.0".into();
        changed[1]["metadata"]["labels"] = Value::Null;
        assert_eq!(plan(&all, &stored(&changed)).written, first.written[..2]);
    }

    #[test]
    fn entries_of_others_stay_and_are_named() {
        let core = entry(BUILT_IN[0].type_, "cluster-api", "capi-system", "v1.13.0");
        let other = entry(BUILT_IN[3].type_, "aws", "capa-system", "v2.0.0");
        let plan = plan(&built_ins(1), &stored(&[core, other]));
        assert!(plan.written.is_empty() && plan.deleted.is_empty());
        let [(_, message)] = plan.others.as_slice() else {
            panic!("{plan:?}");
        };
        for words in [
            "CoreProvider cluster-api",
            "capi-system",
            "v1.13.0",
            "kubectl -n capi-system delete",
        ] {
            assert!(message.contains(words), "{words}: {message}");
        }
    }

    #[test]
    fn what_is_no_longer_built_in_leaves_the_inventory() {
        let before = plan(&built_ins(5), &[]).written;
        let now = plan(&built_ins(2), &stored(&before));
        let names: Vec<_> = now
            .deleted
            .iter()
            .filter_map(|gone| gone.metadata.name.as_deref())
            .collect();
        assert_eq!(names, ["control-plane-kubeadm", "infrastructure-docker", "addon-helm"]);
    }
}
