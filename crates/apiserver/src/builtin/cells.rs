//! What stands in the tables of built-in kinds: for each kind its cells, in the order of its columns.

mod pods;
mod text;

use serde_json::{Map, Value, json};

use self::text::{
    access_modes, age, containers, endpoints, external_addresses, images, involved, last_seen, list, node_roles,
    node_status, number, or, pairs, selector, service_ports, short_duration, string, subjects,
};
use crate::objects::object::{meta, text};
use crate::objects::resource::Resource;

const NONE: &str = "<none>";
const UNSET: &str = "<unset>";
const UNKNOWN: &str = "<unknown>";

/// The cells of an object.
pub(crate) fn cells(resource: &Resource, o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::with_capacity(resource.columns.len());
    let name = meta(o, "name");
    if resource.kind != "Event" {
        out.push(name.into());
    }
    let rest = match (resource.group.as_str(), resource.kind.as_str()) {
        ("", kind) => core(kind, o, now),
        ("apps", kind) => apps(kind, o, now),
        ("batch", kind) => batch(kind, o, now),
        ("events.k8s.io", _) => Some(event(o, now)),
        ("storage.k8s.io", kind) => storage(kind, o, now),
        ("networking.k8s.io" | "discovery.k8s.io", kind) => networking(kind, o, now),
        (_, kind) => other(kind, o, now),
    };
    // Kinds without cells of their own show when they were made, as it is written.
    out.extend(rest.unwrap_or_else(|| vec![meta(o, "creationTimestamp").into()]));
    out
}

fn core(kind: &str, o: &Value, now: jiff::Timestamp) -> Option<Vec<Value>> {
    let s = |p: &str| string(o, p);
    let old = age(o, now);
    let size = |p: &str| o.pointer(p).and_then(Value::as_object).map_or(0, Map::len);
    Some(match kind {
        "Namespace" => vec![s("/status/phase").into(), old],
        "Secret" => vec![s("/type").into(), size("/data").into(), old],
        "ConfigMap" => vec![(size("/data") + size("/binaryData")).into(), old],
        "ServiceAccount" => vec![old],
        "Event" => event(o, now),
        "Pod" => pods::cells(o, now),
        "Node" => {
            let info = |key: &str| or(s(&format!("/status/nodeInfo/{key}")), UNKNOWN);
            vec![
                node_status(o).into(),
                or(&node_roles(o), NONE),
                old,
                s("/status/nodeInfo/kubeletVersion").into(),
                or(text::address(o, "InternalIP"), NONE),
                or(text::address(o, "ExternalIP"), NONE),
                info("osImage"),
                info("kernelVersion"),
                info("containerRuntimeVersion"),
            ]
        }
        "Service" => vec![
            s("/spec/type").into(),
            or(s("/spec/clusterIP"), NONE),
            or(&external_addresses(o), NONE),
            or(&service_ports(o), NONE),
            old,
            or(&pairs(o.pointer("/spec/selector")), NONE),
        ],
        "Endpoints" => vec![or(&endpoints(o), NONE), old],
        "PersistentVolume" => {
            let claim = o.pointer("/spec/claimRef");
            let claim = claim.map(|c| format!("{}/{}", text(c, "namespace"), text(c, "name")));
            vec![
                s("/spec/capacity/storage").into(),
                access_modes(o, "/spec/accessModes").into(),
                s("/spec/persistentVolumeReclaimPolicy").into(),
                phase(o).into(),
                claim.unwrap_or_default().into(),
                s("/spec/storageClassName").into(),
                or(s("/spec/volumeAttributesClassName"), UNSET),
                s("/status/reason").into(),
                old,
                or(s("/spec/volumeMode"), UNSET),
            ]
        }
        "PersistentVolumeClaim" => {
            let bound = !s("/spec/volumeName").is_empty();
            let modes = if bound {
                access_modes(o, "/status/accessModes")
            } else {
                String::new()
            };
            let capacity = if bound { s("/status/capacity/storage") } else { "" };
            vec![
                phase(o).into(),
                s("/spec/volumeName").into(),
                capacity.into(),
                modes.into(),
                s("/spec/storageClassName").into(),
                or(s("/spec/volumeAttributesClassName"), UNSET),
                old,
                or(s("/spec/volumeMode"), UNSET),
            ]
        }
        "ReplicationController" => replicas(o, old, &pairs(o.pointer("/spec/selector"))),
        "PodTemplate" => vec![
            containers(o, "/template").into(),
            images(o, "/template").into(),
            pairs(o.pointer("/template/metadata/labels")).into(),
        ],
        "ResourceQuota" => {
            let (mut requests, mut limits) = (Vec::new(), Vec::new());
            for (name, used) in o
                .pointer("/status/hard")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                let have = o.pointer("/status/used").and_then(|u| u[name].as_str()).unwrap_or("0");
                let shown = format!("{name}: {have}/{}", used.as_str().unwrap_or(""));
                let to = if name.starts_with("limits") {
                    &mut limits
                } else {
                    &mut requests
                };
                to.push(shown);
            }
            vec![requests.join(", ").into(), limits.join(", ").into(), old]
        }
        _ => return None,
    })
}

fn phase(o: &Value) -> &str {
    if crate::objects::object::is_deleting(o) {
        "Terminating"
    } else {
        string(o, "/status/phase")
    }
}

fn replicas(o: &Value, old: Value, selector: &str) -> Vec<Value> {
    vec![
        number(o, "/spec/replicas").into(),
        number(o, "/status/replicas").into(),
        number(o, "/status/readyReplicas").into(),
        old,
        containers(o, "/spec/template").into(),
        images(o, "/spec/template").into(),
        selector.into(),
    ]
}

fn apps(kind: &str, o: &Value, now: jiff::Timestamp) -> Option<Vec<Value>> {
    let n = |p: &str| number(o, p);
    let old = age(o, now);
    let ready = || format!("{}/{}", n("/status/readyReplicas"), n("/spec/replicas"));
    let (names, pictures) = (containers(o, "/spec/template"), images(o, "/spec/template"));
    Some(match kind {
        "Deployment" => vec![
            ready().into(),
            n("/status/updatedReplicas").into(),
            n("/status/availableReplicas").into(),
            old,
            names.into(),
            pictures.into(),
            selector(o.pointer("/spec/selector")).into(),
        ],
        "ReplicaSet" => replicas(o, old, &selector(o.pointer("/spec/selector"))),
        "StatefulSet" => vec![ready().into(), old, names.into(), pictures.into()],
        "DaemonSet" => vec![
            n("/status/desiredNumberScheduled").into(),
            n("/status/currentNumberScheduled").into(),
            n("/status/numberReady").into(),
            n("/status/updatedNumberScheduled").into(),
            n("/status/numberAvailable").into(),
            or(&pairs(o.pointer("/spec/template/spec/nodeSelector")), NONE),
            old,
            names.into(),
            pictures.into(),
            selector(o.pointer("/spec/selector")).into(),
        ],
        "ControllerRevision" => {
            let owner = list(o, "/metadata/ownerReferences")
                .iter()
                .find(|r| r["controller"] == Value::Bool(true));
            let owner = owner.map(|r| {
                let group = text(r, "apiVersion").split_once('/').map_or("", |(g, _)| g);
                crate::error::qualified(group, &text(r, "kind").to_lowercase()) + "/" + text(r, "name")
            });
            vec![or(&owner.unwrap_or_default(), NONE), n("/revision").into(), old]
        }
        _ => return None,
    })
}

fn batch(kind: &str, o: &Value, now: jiff::Timestamp) -> Option<Vec<Value>> {
    let old = age(o, now);
    Some(match kind {
        "Job" => {
            let (done, all) = (number(o, "/status/succeeded"), o.pointer("/spec/completions"));
            let completions = match (all.and_then(Value::as_i64), number(o, "/spec/parallelism")) {
                (Some(all), _) => format!("{done}/{all}"),
                (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
                (None, _) => format!("{done}/1"),
            };
            let time = |p: &str| string(o, p).parse::<jiff::Timestamp>().ok();
            let duration = time("/status/startTime").map(|start| {
                let end = time("/status/completionTime").unwrap_or(now);
                short_duration(end.as_second() - start.as_second())
            });
            vec![
                text::job_status(o).into(),
                completions.into(),
                duration.unwrap_or_default().into(),
                old,
                containers(o, "/spec/template").into(),
                images(o, "/spec/template").into(),
                selector(o.pointer("/spec/selector")).into(),
            ]
        }
        "CronJob" => {
            let template = "/spec/jobTemplate/spec/template";
            let suspended = o.pointer("/spec/suspend") == Some(&Value::Bool(true));
            let last = o.pointer("/status/lastScheduleTime").and_then(Value::as_str);
            let last = last.map_or_else(|| NONE.into(), |time| text::since(time, now));
            vec![
                string(o, "/spec/schedule").into(),
                or(string(o, "/spec/timeZone"), NONE),
                if suspended { "True" } else { "False" }.into(),
                list(o, "/status/active").len().into(),
                last,
                old,
                containers(o, template).into(),
                images(o, template).into(),
                or(
                    &o.pointer("/spec/jobTemplate/spec/selector")
                        .map(|s| selector(Some(s)))
                        .unwrap_or_default(),
                    NONE,
                ),
            ]
        }
        _ => return None,
    })
}

/// An event of either group.
fn event(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let at = |keys: &[&str]| {
        keys.iter()
            .find_map(|k| o.get(*k).filter(|v| !v.is_null()))
            .unwrap_or(&Value::Null)
    };
    let words = |keys: &[&str]| at(keys).as_str().unwrap_or("").trim().to_owned();
    let source = at(&["source", "deprecatedSource"]);
    let reporter = words(&["reportingComponent", "reportingController"]);
    let mut from = vec![text(source, "component").to_owned(), text(source, "host").to_owned()];
    if from[0].is_empty() {
        from = vec![reporter, words(&["reportingInstance"])];
    }
    from.retain(|f| !f.is_empty());
    let series = o.pointer("/series/count").and_then(Value::as_i64);
    let count = series
        .or_else(|| at(&["count", "deprecatedCount"]).as_i64())
        .unwrap_or(1);
    let about = at(&["involvedObject", "regarding"]);
    vec![
        last_seen(o, now),
        words(&["type"]).into(),
        words(&["reason"]).into(),
        involved(about).into(),
        text(about, "fieldPath").into(),
        from.join(", ").into(),
        words(&["message", "note"]).into(),
        text::first_seen(o, now),
        count.max(1).into(),
        meta(o, "name").into(),
    ]
}

fn storage(kind: &str, o: &Value, now: jiff::Timestamp) -> Option<Vec<Value>> {
    let old = age(o, now);
    let flag = |p: &str| (o.pointer(p) == Some(&Value::Bool(true))).into();
    Some(match kind {
        "StorageClass" => vec![
            string(o, "/provisioner").into(),
            string(o, "/reclaimPolicy").into(),
            string(o, "/volumeBindingMode").into(),
            flag("/allowVolumeExpansion"),
            old,
        ],
        "VolumeAttachment" => vec![
            string(o, "/spec/attacher").into(),
            string(o, "/spec/source/persistentVolumeName").into(),
            string(o, "/spec/nodeName").into(),
            flag("/status/attached"),
            old,
        ],
        "CSINode" => vec![list(o, "/spec/drivers").len().into(), old],
        "CSIDriver" => {
            let join = |p: &str, key: &str| {
                let items = list(o, p).iter().map(|i| i.as_str().unwrap_or_else(|| text(i, key)));
                or(&items.collect::<Vec<_>>().join(","), UNSET)
            };
            vec![
                o.pointer("/spec/attachRequired").cloned().unwrap_or(Value::Bool(true)),
                flag("/spec/podInfoOnMount"),
                flag("/spec/storageCapacity"),
                join("/spec/tokenRequests", "audience"),
                flag("/spec/requiresRepublish"),
                join("/spec/volumeLifecycleModes", ""),
                old,
            ]
        }
        "VolumeAttributesClass" => vec![string(o, "/driverName").into(), old],
        _ => return None,
    })
}

fn networking(kind: &str, o: &Value, now: jiff::Timestamp) -> Option<Vec<Value>> {
    let old = age(o, now);
    Some(match kind {
        "Ingress" => {
            let hosts: Vec<&str> = list(o, "/spec/rules")
                .iter()
                .map(|r| text(r, "host"))
                .filter(|h| !h.is_empty())
                .collect();
            let secure = !list(o, "/spec/tls").is_empty();
            vec![
                or(string(o, "/spec/ingressClassName"), NONE),
                or(&text::first_few(&hosts, ","), "*"),
                text::ingress_addresses(o).into(),
                if secure { "80, 443" } else { "80" }.into(),
                old,
            ]
        }
        "IngressClass" => {
            let parameters = o.pointer("/spec/parameters").map(|p| {
                let kind = crate::error::qualified(text(p, "apiGroup"), text(p, "kind"));
                format!("{kind}/{}", text(p, "name"))
            });
            vec![
                string(o, "/spec/controller").into(),
                or(&parameters.unwrap_or_default(), NONE),
                old,
            ]
        }
        "NetworkPolicy" => vec![or(&selector(o.pointer("/spec/podSelector")), NONE), old],
        "EndpointSlice" => {
            let ports: Vec<String> = list(o, "/ports")
                .iter()
                .map(|p| p["port"].as_i64().map_or_else(|| "*".to_owned(), |n| n.to_string()))
                .collect();
            let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
            let addresses: Vec<&str> = list(o, "/endpoints")
                .iter()
                .flat_map(|e| crate::objects::object::strings(e.get("addresses")))
                .collect();
            vec![
                string(o, "/addressType").into(),
                or(&text::first_few(&ports, ","), UNSET),
                or(&text::first_few(&addresses, ","), UNSET),
                old,
            ]
        }
        _ => return None,
    })
}

fn other(kind: &str, o: &Value, now: jiff::Timestamp) -> Option<Vec<Value>> {
    let old = age(o, now);
    let s = |p: &str| string(o, p);
    Some(match kind {
        "Lease" => vec![s("/spec/holderIdentity").into(), old],
        "RoleBinding" | "ClusterRoleBinding" => vec![
            format!("{}/{}", s("/roleRef/kind"), s("/roleRef/name")).into(),
            old,
            subjects(o, "User").into(),
            subjects(o, "Group").into(),
            subjects(o, "ServiceAccount").into(),
        ],
        "PodDisruptionBudget" => {
            let share = |p: &str| {
                o.pointer(p)
                    .map_or_else(|| "N/A".to_owned(), crate::objects::jsonpath::text_of)
            };
            vec![
                share("/spec/minAvailable").into(),
                share("/spec/maxUnavailable").into(),
                number(o, "/status/disruptionsAllowed").into(),
                old,
            ]
        }
        "PriorityClass" => vec![
            number(o, "/value").into(),
            (o["globalDefault"] == Value::Bool(true)).into(),
            old,
            s("/preemptionPolicy").into(),
        ],
        "RuntimeClass" => vec![s("/handler").into(), old],
        "HorizontalPodAutoscaler" if text(o, "apiVersion") == "autoscaling/v1" => {
            let mut new = o.clone();
            super::autoscaler::to_v2(&mut new);
            new["apiVersion"] = "autoscaling/v2".into();
            return other(kind, &new, now);
        }
        "HorizontalPodAutoscaler" => {
            let least = o
                .pointer("/spec/minReplicas")
                .map_or_else(|| UNSET.to_owned(), crate::objects::jsonpath::text_of);
            vec![
                format!("{}/{}", s("/spec/scaleTargetRef/kind"), s("/spec/scaleTargetRef/name")).into(),
                text::metrics(o).into(),
                least.into(),
                number(o, "/spec/maxReplicas").into(),
                number(o, "/status/currentReplicas").into(),
                old,
            ]
        }
        "CertificateSigningRequest" => {
            let duration = o.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
            vec![
                old,
                or(s("/spec/signerName"), NONE),
                s("/spec/username").into(),
                duration.map_or_else(|| NONE.to_owned(), short_duration).into(),
                text::request_state(o).into(),
            ]
        }
        "APIService" => {
            let service = o.pointer("/spec/service");
            let service = service.map_or_else(
                || "Local".to_owned(),
                |s| format!("{}/{}", text(s, "namespace"), text(s, "name")),
            );
            let available = text::condition(o, "Available").map(|c| match text(c, "status") {
                "True" => "True".to_owned(),
                status => format!("{status} ({})", text(c, "reason")),
            });
            vec![
                service.into(),
                available.unwrap_or_else(|| "Unknown".to_owned()).into(),
                old,
            ]
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            vec![json!(list(o, "/webhooks").len()), old]
        }
        _ => return None,
    })
}
