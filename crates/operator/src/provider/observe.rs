//! Reads what is cheap: caches, and what is kept of the provider.

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Map, Value};
use windlass_api_operator::inventory;
use windlass_controller_runtime::{Crd, Cx, Gvk, ObjectKey, Seen, gvk_from, key_of};

use super::Observed;
use super::declaration::{Declaration, Said};
use super::facts::{Facts, InUse, Installed, Unread};
use crate::awaited::Awaited;
use crate::claims::rival;
use crate::kept::vouched::Vouched;
use crate::kept::{self, Kept, Unreadable};
use crate::names::VOUCHED;
use crate::objects::{ObjectRef, hex, short_hash};
use crate::peers::{self, Peer};
use crate::ports::Operator;
use crate::prepare::read::labelled;

/// Fields of a specification whose change does not make another release. The others are hashed.
const BESIDE: [&str; 3] = ["version", "fetchConfig", "paused"];

/// Reads everything that needs no download and no rendering.
pub(super) fn observe<'a>(cx: &'a Cx, operator: &'a Operator, declaration: Declaration) -> BoxFuture<'a, Observed> {
    Box::pin(async move {
        let facts = facts(cx, operator, &declaration).await;
        Observed { declaration, facts }
    })
}

async fn facts(cx: &Cx, operator: &Operator, declaration: &Declaration) -> Facts {
    let (me, whose) = (declaration.me.clone(), &declaration.whose);
    let tracker = &operator.0.tracker;
    // Changes that come while this reads count for the next reconcile.
    let stirred = operator.0.waits.stirred(whose);
    let (peers, holder) = operator.0.claims.observe(&me, || peers::all_but(cx, &me.uid));
    let kept = kept(cx, operator, &me, &peers).await;
    let current = kept.as_ref().ok().and_then(|kept| kept.current.as_ref());
    let nothing = kept.as_ref().is_ok_and(|kept| kept.current.is_none());
    let spec = spec_of(declaration.object.value());
    let (declared, spec, locked) = effective(declaration, spec, current.map(|current| &current.manager));
    let deployments = current.map(|current| current.index.iter().filter(|object| object.is_deployment()));
    let running = deployments.into_iter().flatten();
    let running = running
        .map(|object| (object.name.clone(), tracker.running(object)))
        .collect();
    // The Secrets may have gone with the namespace. What the status says tells such a provider from one that was never installed.
    // So do Secrets that others have changed: what was in them is found by its labels.
    let built_ins = operator.0.built_ins.clone();
    // Of what is built in, nothing is installed: its objects are those of this process.
    let is_built_in = built_ins.find(me.type_, &me.key.name).is_some();
    let is_lost = me.deleting
        && !is_built_in
        && kept.as_ref().is_ok_and(|kept| {
            let nothing = kept.current.is_none() && kept.next.is_none();
            (nothing && me.is_installed()) || !kept.strange.is_empty()
        })
        && rival(&me, &peers, holder.as_deref()).is_none();
    let lost = if is_lost {
        labelled(cx, me.type_, &me.key).await
    } else {
        Ok(Vec::new())
    };
    let in_use = match (current, &lost) {
        _ if is_built_in => Ok(Vec::new()),
        (Some(current), _) if me.deleting => in_use(cx, &current.index).await,
        (None, Ok(lost)) => in_use(cx, lost).await,
        _ => Ok(Vec::new()),
    };
    Facts {
        declared,
        generation: declaration.meta().generation.unwrap_or(0),
        conditions: declaration.conditions.clone(),
        hash: hash_of(&spec),
        manager: spec.get("manager").cloned().unwrap_or_default(),
        version: version_in(declaration.object.value()),
        locked,
        inventory: if nothing && !me.deleting && !is_built_in {
            inventory(cx, &me).await
        } else {
            Ok(Vec::new())
        },
        watched: tracker.is_complete(whose),
        doubted: tracker.is_doubted(whose),
        drifted: tracker.drifted(whose),
        repairs: tracker.repairs(whose),
        stirred,
        looked: operator.0.waits.looked_at(whose),
        holder,
        running,
        in_use,
        lost,
        fetched: None,
        rendered: None,
        renewed: None,
        kept,
        peers,
        built_ins,
        me,
    }
}

/// The installed version, as the status says it.
fn version_in(object: &Value) -> Option<String> {
    object["status"]["installedVersion"].as_str().map(str::to_owned)
}

/// The specification without empty fields: `manager: {}` means the same as no `manager`.
fn spec_of(object: &Value) -> Map<String, Value> {
    let mut spec = object["spec"].clone();
    prune(&mut spec);
    match spec {
        Value::Object(spec) => spec,
        _ => Map::new(),
    }
}

fn prune(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.values_mut().for_each(prune);
        fields.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|fields| !fields.is_empty()));
    }
}

fn hash_of(spec: &Map<String, Value>) -> String {
    let told = spec.iter().filter(|(field, _)| !BESIDE.contains(&field.as_str()));
    let told: Map<String, Value> = told.map(|(field, value)| (field.clone(), value.clone())).collect();
    hex(&short_hash(Value::Object(told).to_string().as_bytes()))
}

/// The specification that counts: while `debug` is on, and was when the provider was installed, its manager's settings stay as they
/// were then.
fn effective(
    declaration: &Declaration,
    spec: Map<String, Value>,
    installed: Option<&Value>,
) -> (Said, Map<String, Value>, bool) {
    let is_debug = |manager: Option<&Value>| manager.is_some_and(|manager| manager["debug"] == true);
    let now = spec.get("manager");
    let held = is_debug(installed) && is_debug(now) && installed != now;
    if let (true, Some(installed)) = (held, installed) {
        let mut changed = spec.clone();
        changed.insert("manager".to_owned(), installed.clone());
        let mut whole = declaration.object.value().clone();
        whole["spec"] = Value::Object(changed.clone());
        if let Some(said) = (declaration.read)(whole) {
            return (said, changed, true);
        }
    }
    (declaration.said.clone(), spec, false)
}

/// What is kept of a provider; from memory where it was read before, and the digests in the declaration are those of then.
pub(super) async fn kept(cx: &Cx, operator: &Operator, me: &Peer, peers: &[Peer]) -> Result<Arc<Kept>, Unread> {
    if let Some(kept) = operator.0.kept.lock().get(&me.uid)
        && kept.vouched.stored == me.vouched
    {
        return Ok(kept.clone());
    }
    let selector = kept::selector(me.type_, &me.key.name);
    let secrets = match cx.list::<Secret>(&me.key.namespace, &selector).await {
        Seen::Found(secrets) => secrets,
        Seen::NotFound => Vec::new(),
        Seen::Failed(why) => return Err(Unread { why, stored: None }),
    };
    // What another declaration of the same name has, through the other API, is none of ours.
    let theirs = |owner: &str| peers.iter().any(|peer| peer.uid == owner);
    let damaged = |error: Unreadable| Unread {
        why: error.to_string(),
        stored: Some(Awaited::labelled("v1", "Secret", &me.key.namespace, &selector)),
    };
    let vouched = Vouched::read(me.vouched.as_deref());
    let mut kept = kept::from_secrets(secrets.clone(), &vouched, theirs).map_err(damaged)?;
    if !kept.strange.is_empty() {
        // A process that has ended by now may have written later than the cache knows.
        let live = vouched_now(cx, me).await.map_err(|why| Unread { why, stored: None })?;
        if live != me.vouched {
            kept = kept::from_secrets(secrets, &Vouched::read(live.as_deref()), theirs).map_err(damaged)?;
        }
    }
    let kept = Arc::new(kept);
    operator.0.kept.lock().insert(me.uid.clone(), kept.clone());
    Ok(kept)
}

/// The digests in a declaration as it is stored.
async fn vouched_now(cx: &Cx, me: &Peer) -> Result<Option<String>, String> {
    let gvk = gvk_from(me.api.api_version(), me.type_.inventory());
    match cx.read_value(&gvk, &me.key).await {
        Seen::Found(live) => Ok(live["metadata"]["annotations"][VOUCHED].as_str().map(str::to_owned)),
        Seen::NotFound => Ok(None),
        Seen::Failed(why) => Err(why),
    }
}

async fn inventory(cx: &Cx, me: &Peer) -> Result<Vec<Installed>, String> {
    let selector = "clusterctl.cluster.x-k8s.io/core=inventory";
    let all = match cx.list::<inventory::Provider>("", selector).await {
        Seen::Found(all) => all,
        Seen::NotFound => Vec::new(),
        Seen::Failed(why) => return Err(why),
    };
    let same = all.into_iter().filter(|provider| {
        provider.provider_type() == Some(me.type_) && provider.provider_name.as_deref() == Some(me.key.name.as_str())
    });
    let mut found: Vec<_> = same
        .map(|provider| Installed {
            namespace: key_of(&provider.metadata).namespace,
            is_built_in: crate::inventory::is_ours(&provider.metadata),
            version: provider.version.unwrap_or_default(),
        })
        .collect();
    found.sort_by_key(|installed| installed.namespace == me.key.namespace);
    Ok(found)
}

/// Objects of the kinds that these definitions define, but for those that were installed with them. Only kinds within namespaces
/// count: workload clusters are nowhere else.
async fn in_use(cx: &Cx, index: &[ObjectRef]) -> Result<Vec<InUse>, String> {
    let own: Vec<_> = index.iter().map(ObjectRef::identity).collect();
    let mut found = Vec::new();
    for definition in index.iter().filter(|object| object.is_definition()) {
        let key = ObjectKey::new("", definition.name.as_str());
        let Some(crd) = cx.cache::<Crd>().get(&key) else {
            continue;
        };
        let served = crd.spec.versions.iter().find(|version| version.served);
        let (Some(version), "Namespaced") = (served, crd.spec.scope.as_str()) else {
            continue;
        };
        let gvk = Gvk {
            group: crd.spec.group.clone(),
            version: version.name.clone(),
            kind: crd.spec.names.kind.clone(),
        };
        let limit = u32::try_from(own.len()).unwrap_or(100).saturating_add(2).min(500);
        let objects = match cx.metadata_of(&gvk, "", limit).await {
            Seen::Found(objects) => objects,
            Seen::NotFound => continue,
            Seen::Failed(why) => return Err(why),
        };
        let keys = objects.iter().map(key_of);
        let is_own = |key: &ObjectKey| {
            let identity = (
                gvk.group.clone(),
                gvk.kind.clone(),
                key.namespace.clone(),
                key.name.clone(),
            );
            own.contains(&identity)
        };
        let mut users = keys.filter(|key| !is_own(key));
        if let Some(example) = users.next() {
            found.push(InUse {
                api_version: gvk.api_version(),
                kind: gvk.kind.clone(),
                example,
                more: users.next().is_some(),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_api_operator::management::InfrastructureProvider;

    fn provider(spec: &Value) -> Declaration {
        let object: InfrastructureProvider = serde_json::from_value(json!({
            "apiVersion": "management.cluster.x-k8s.io/v1alpha1", "kind": "InfrastructureProvider",
            "metadata": {"name": "aws", "namespace": "capa-system"}, "spec": spec,
        }))
        .unwrap();
        Declaration::of(&object)
    }

    // OP-015, OP-109, OP-112
    #[test]
    fn what_was_not_changed_does_not_count() {
        let check = |a: Value, b: Value, same: bool| {
            let hash = |spec: &Value| hash_of(&spec_of(provider(spec).object.value()));
            assert_eq!(hash(&a) == hash(&b), same, "{a} {b}");
        };
        check(json!({}), json!({"manager": {}}), true);
        check(json!({}), json!({"manager": {"health": {}}}), true);
        check(json!({}), json!({"version": "v1.0.0", "paused": true}), true);
        check(
            json!({}),
            json!({"fetchConfig": {"url": "https://github.com/a/b/releases"}}),
            true,
        );
        check(json!({}), json!({"secretName": "a"}), false);
        check(json!({}), json!({"manager": {"verbosity": 2}}), false);
        check(json!({}), json!({"deployment": {"replicas": 0}}), false);
    }

    // OP-207, OP-208
    #[test]
    fn debug_holds_the_settings_of_the_manager() {
        let check = |spec: Value, installed: Value, locked: bool, verbosity: Option<i64>| {
            let object = provider(&spec);
            let (declared, _, found) = effective(&object, spec_of(object.object.value()), Some(&installed));
            assert_eq!((found, declared.unwrap().manager.verbosity), (locked, verbosity));
        };
        let debug = json!({"debug": true, "verbosity": 2});
        check(
            json!({"manager": {"debug": true, "verbosity": 3}}),
            debug.clone(),
            true,
            Some(2),
        );
        check(
            json!({"manager": {"debug": false, "verbosity": 3}}),
            debug.clone(),
            false,
            Some(3),
        );
        check(
            json!({"manager": {"debug": true, "verbosity": 2}}),
            debug,
            false,
            Some(2),
        );
        check(
            json!({"manager": {"debug": true, "verbosity": 3}}),
            json!({}),
            false,
            Some(3),
        );
    }
}
