//! The classes of hostile requests.

use std::fmt::Write as _;

use clap::ValueEnum;
use http::{HeaderValue, Request};
use serde_json::{Value, json};

use super::world::{STRANGERS, TENANTS};

/// A request with its body.
pub(super) type Sent = Request<Vec<u8>>;

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const ITEMS: &str = "/apis/example.com/v1/namespaces/default/items";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// A class of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Class {
    /// Bodies with repeated fields below a long name, by users without rights.
    Duplicates,
    /// 200 headers, and names that are not ASCII.
    Headers,
    /// Connections that begin a handshake and stop.
    HalfOpen,
    /// Watches, more than a user may have.
    Watches,
    /// Owner references, all of them controllers.
    Owners,
    /// Rules of a definition that cost as much as they may.
    Rules,
    /// Long texts for a regular expression.
    Patterns,
    /// Roles with many combinations.
    Roles,
    /// Services with many ports.
    Ports,
    /// JSON patches that move items of a long list.
    Patches,
    /// Applied lists with many keys.
    Lists,
    /// Many field managers.
    Managers,
    /// Long selectors for many objects.
    Selectors,
}

impl Class {
    pub(super) const ALL: [Self; 13] = [
        Self::Duplicates,
        Self::Headers,
        Self::HalfOpen,
        Self::Watches,
        Self::Owners,
        Self::Rules,
        Self::Patterns,
        Self::Roles,
        Self::Ports,
        Self::Patches,
        Self::Lists,
        Self::Managers,
        Self::Selectors,
    ];

    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// How many requests there are if there are `usual` of most classes.
    pub(super) fn count(self, usual: u32) -> u32 {
        match self {
            Self::Watches => usual * 20,
            _ => usual,
        }
    }

    /// The user and the request with a number.
    pub(super) fn request(self, number: u32) -> (String, Sent) {
        let at = usize::try_from(number).unwrap_or(0);
        let (tenant, stranger) = (
            format!("tenant-{}", at % TENANTS),
            format!("stranger-{}", at % STRANGERS),
        );
        match self {
            Self::Duplicates => (stranger, post(REVIEWS, duplicates())),
            Self::Headers | Self::HalfOpen => (stranger, headers(at)),
            Self::Watches => (
                "tenant-0".to_owned(),
                get(&format!("{MAPS}?watch=true&resourceVersion=0&labelSelector=app%3Db")),
            ),
            Self::Owners => (tenant, post(&format!("{MAPS}?dryRun=All"), owners())),
            Self::Rules => (
                tenant,
                post(
                    &format!("{ITEMS}?dryRun=All"),
                    item(&json!({"numbers": (0..300).collect::<Vec<u32>>()})),
                ),
            ),
            Self::Patterns => (
                tenant,
                post(
                    &format!("{ITEMS}?dryRun=All"),
                    item(&json!({"words": ["a".repeat(1_000_000), "b1".repeat(500_000)]})),
                ),
            ),
            Self::Roles => (
                tenant,
                post(
                    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles?dryRun=All",
                    role(20 + 60 * (at % 2)),
                ),
            ),
            Self::Ports => (
                tenant,
                post("/api/v1/namespaces/default/services?dryRun=All", ports(at)),
            ),
            Self::Patches => (
                tenant,
                patch(&format!("{ITEMS}/list?dryRun=All"), "json-patch+json", moves()),
            ),
            Self::Lists => {
                let path = format!("{ITEMS}/keyed-{}?fieldManager=a&force=true", at % TENANTS);
                (tenant, patch(&path, "apply-patch+yaml", keyed(at)))
            }
            Self::Managers => (tenant, post(&format!("{MAPS}?dryRun=All"), managers())),
            Self::Selectors => (tenant, get(&format!("{MAPS}?labelSelector={}", selector(at)))),
        }
    }
}

fn get(path: &str) -> Sent {
    built(Request::get(path), Vec::new())
}

pub(super) fn post(path: &str, body: String) -> Sent {
    built(
        Request::post(path).header("content-type", "application/json"),
        body.into(),
    )
}

fn patch(path: &str, kind: &str, body: String) -> Sent {
    built(
        Request::patch(path).header("content-type", format!("application/{kind}")),
        body.into(),
    )
}

/// The paths and headers here are always valid.
fn built(request: http::request::Builder, body: Vec<u8>) -> Sent {
    request.body(body).unwrap_or_default()
}

fn duplicates() -> String {
    format!(
        "{{\"{}\":{{\"a\":1{}}}}}",
        "k".repeat(100_000),
        ",\"a\":1".repeat(450_000)
    )
}

fn headers(at: usize) -> Sent {
    let mut request = post(REVIEWS, "{}".to_owned());
    if at.is_multiple_of(2) {
        for number in 0..200 {
            let name = http::HeaderName::try_from(format!("x-{number}"));
            request
                .headers_mut()
                .extend(name.ok().map(|name| (name, HeaderValue::from_static("a"))));
        }
        return request;
    }
    let value = HeaderValue::from_bytes("m\u{fc}ller".as_bytes());
    request.headers_mut().extend(
        value
            .ok()
            .map(|value| (http::HeaderName::from_static("impersonate-user"), value)),
    );
    request
}

fn object(kind: &str, metadata: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
}

fn item(fields: &Value) -> String {
    let mut item = object("Item", &json!({"name": "item"}));
    item["apiVersion"] = "example.com/v1".into();
    if let (Some(item), Some(fields)) = (item.as_object_mut(), fields.as_object()) {
        item.extend(fields.clone());
    }
    item.to_string()
}

fn owners() -> String {
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("p{at}"), "uid": at.to_string(), "controller": true});
    let owners: Vec<Value> = (0..35_000).map(owner).collect();
    object("ConfigMap", &json!({"name": "owned", "ownerReferences": owners})).to_string()
}

fn role(size: usize) -> String {
    let many = |prefix: &str| -> Vec<String> { (0..size).map(|at| format!("{prefix}{at}")).collect() };
    let mut role = object("Role", &json!({"name": "role"}));
    role["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    role["rules"] = json!([{"apiGroups": many("g"), "resources": many("r"), "verbs": many("v")}]);
    role.to_string()
}

fn ports(at: usize) -> String {
    let ports: Vec<Value> = (0..55_000)
        .map(|at| json!({"name": format!("p{at}"), "port": at % 65_535 + 1}))
        .collect();
    let mut service = object("Service", &json!({"name": "service"}));
    let kind = if at.is_multiple_of(2) { "NodePort" } else { "ClusterIP" };
    service["spec"] = json!({"type": kind, "ports": ports});
    service.to_string()
}

fn moves() -> String {
    let one = json!({"op": "move", "from": "/any/list/999999", "path": "/any/list/0"});
    Value::from(vec![one; 10_000]).to_string()
}

fn keyed(at: usize) -> String {
    let items: Vec<Value> = (0..90_000)
        .map(|number| json!({"name": (number + at).to_string()}))
        .collect();
    let mut item = json!({"apiVersion": "example.com/v1", "kind": "Item"});
    item["keyed"] = items.into();
    item.to_string()
}

fn managers() -> String {
    let entry = |at: usize| json!({"manager": format!("m{at}"), "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}});
    let entries: Vec<Value> = (0..22_000).map(entry).collect();
    object("ConfigMap", &json!({"name": "managed", "managedFields": entries})).to_string()
}

/// A list of values, or many requirements that all hold.
fn selector(at: usize) -> String {
    let mut text = String::new();
    if at.is_multiple_of(2) {
        text.push_str("app+in+(");
        for number in 0..5_000 {
            let _ = write!(text, "v{number},");
        }
        text.push_str("a)");
    } else {
        for number in 0..4_000 {
            let _ = write!(text, "!k{number},");
        }
        text.push_str("app");
    }
    text
}
