//! Conversion of custom objects between versions, as their definition describes it: by apiVersion, by webhook, or in this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use windlass_schema::Schema;
use windlass_smd::go_type;

use crate::codec::go_wording::unregistered;
use crate::crds::registry::Custom;
use crate::error::ApiError;
use crate::http::webhook_client::{Endpoint, Unanswered, WebhookServices};
use crate::objects::converter::Converter;
use crate::state::Inner;
use windlass_objects::metadata::{meta, strings, text};
use windlass_objects::names::{check_annotations, check_labels};

/// The timeout of a conversion webhook.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The kinds that kube-apiserver can decode in place of a response; the expected one is first.
const KINDS: [&str; 3] = [
    "ConversionReview",
    "CustomResourceDefinition",
    "CustomResourceDefinitionList",
];
const VERSIONS: [&str; 2] = ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"];

/// The versions of a definition.
pub(crate) fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The versions of a definition, prepared for conversion.
#[derive(Debug)]
pub(crate) struct Conversion {
    kind: String,
    /// By version.
    schemas: BTreeMap<String, Arc<Schema>>,
    /// Objects written after this revision have the form of their version's schema.
    pub(crate) since: u64,
    /// Cancelled when the definition is changed or deleted.
    pub(crate) retired: CancellationToken,
    /// The schemas in the form of the definition, by version.
    raw: BTreeMap<String, Value>,
    /// For each version, the first version with the same schema.
    alike: BTreeMap<String, String>,
    webhook: Option<Webhook>,
    /// What converts in place of a webhook.
    converter: Option<Arc<dyn Converter>>,
}

#[derive(Debug)]
struct Webhook {
    endpoint: Arc<Endpoint>,
    /// The ConversionReview versions that the webhook supports.
    reviews: Vec<String>,
}

/// A conversion error; it has no reason.
fn refused(words: String) -> ApiError {
    ApiError::new(500, "", words)
}

impl Conversion {
    /// Parses a definition; `revision` is the one that wrote it.
    pub(crate) fn of(
        crd: &Value,
        kind: &str,
        schemas: BTreeMap<String, Arc<Schema>>,
        revision: u64,
        before: Option<&Self>,
    ) -> Self {
        let raw: BTreeMap<String, Value> = versions(crd)
            .iter()
            .filter_map(|v| {
                Some((
                    text(v, "name").to_owned(),
                    v.pointer("/schema/openAPIV3Schema")?.clone(),
                ))
            })
            .collect();
        let first = |schema: &Value| raw.iter().find(|(_, other)| *other == schema);
        let alike = raw
            .iter()
            .filter_map(|(version, schema)| Some((version.clone(), first(schema)?.0.clone())))
            .collect();
        let spec = crd.pointer("/spec/conversion").unwrap_or(&Value::Null);
        Self {
            alike,
            kind: kind.to_owned(),
            schemas,
            since: before
                .filter(|before| before.raw == raw)
                .map_or(revision, |before| before.since),
            raw,
            retired: CancellationToken::new(),
            webhook: (text(spec, "strategy") == "Webhook")
                .then(|| Webhook::of(spec, before.and_then(|b| b.webhook.as_ref()))),
            converter: None,
        }
    }

    /// The same conversion, with what converts in place of a webhook. A definition with a webhook keeps it.
    pub(crate) fn converting(mut self, converter: Option<&Arc<dyn Converter>>) -> Self {
        self.converter = converter.filter(|_| self.webhook.is_none()).cloned();
        self
    }

    /// What converts objects from one version to another one in this process, if it does.
    fn converter(&self, from: &str, to: &str) -> Option<&dyn Converter> {
        let known = self.converter.as_deref()?;
        (from != to && known.knows(&self.kind, from, to)).then_some(known)
    }

    /// Whether objects of some versions are converted in this process.
    pub(crate) fn has_converter(&self) -> bool {
        self.converter.is_some()
    }

    /// Whether objects are converted from one version to another one in this process.
    pub(crate) fn is_in_process(&self, from: &str, to: &str) -> bool {
        self.converter(from, to).is_some()
    }

    /// Converts an encoded object in this process; `None` if that is not how these versions are converted.
    pub(crate) fn encoded(
        &self,
        definitions: &Custom,
        object: &[u8],
        from: &str,
        wanted: &str,
    ) -> Option<Result<Vec<u8>, ApiError>> {
        let converted = self.converter(from, wanted)?.convert(object, wanted, definitions);
        Some(converted.map_err(|why| refused(format!("{} failed: {why}", self.what(from)))))
    }

    /// [`Self::encoded`] for a decoded object.
    pub(crate) fn decoded(
        &self,
        definitions: &Custom,
        object: &Value,
        wanted: &str,
    ) -> Option<Result<Value, ApiError>> {
        let from = text(object, "apiVersion");
        self.converter(from, wanted)?;
        let encoded = match serde_json::to_vec(object) {
            Ok(encoded) => self.encoded(definitions, &encoded, from, wanted)?,
            Err(error) => Err(ApiError::internal(error)),
        };
        Some(encoded.and_then(|bytes| serde_json::from_slice(&bytes).map_err(ApiError::internal)))
    }

    /// What a conversion is called in errors. Both servers have the same words.
    fn what(&self, from: &str) -> String {
        format!("conversion webhook for {from}, Kind={}", self.kind)
    }

    /// The schema of an apiVersion.
    pub(crate) fn schema(&self, api_version: &str) -> Option<&Arc<Schema>> {
        let (_, version) = api_version.split_once('/')?;
        self.schemas.get(version)
    }

    /// Whether objects of two versions differ only in their apiVersion.
    pub(crate) fn is_same(&self, a: &str, b: &str) -> bool {
        let first = |api_version: &str| self.alike.get(api_version.split_once('/')?.1);
        self.webhook.is_none() && !self.is_in_process(a, b) && first(a).is_some() && first(a) == first(b)
    }

    /// Converts objects to an apiVersion in one call. kube-apiserver calls the webhook for each object; errors here are worded
    /// the same.
    pub(crate) async fn convert(
        &self,
        server: &Inner,
        objects: Vec<Value>,
        wanted: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let Some(webhook) = &self.webhook else {
            let definitions = server.registry();
            let relabelled = |mut object: Value| {
                if let Some(map) = object.as_object_mut() {
                    map.insert("apiVersion".into(), wanted.into());
                }
                Ok(object)
            };
            return objects
                .into_iter()
                .map(|object| {
                    let converted = self.decoded(&definitions, &object, wanted);
                    converted.unwrap_or_else(|| relabelled(object))
                })
                .collect();
        };
        let from = objects.first().map_or(wanted, |object| text(object, "apiVersion"));
        let what = self.what(from);
        let answers = webhook
            .ask(&server.options.webhook_services, &objects, wanted)
            .await
            .map_err(|why| refused(format!("{what} failed: {why}")))?;
        if answers.len() != objects.len() {
            let (is, wanted) = (answers.len(), objects.len());
            let words = format!("{what} returned {is} objects, expected {wanted}");
            return Err(refused(words));
        }
        let mut out = Vec::with_capacity(answers.len());
        for (object, answer) in objects.iter().zip(answers) {
            let failed = |words: String| refused(format!("{what} returned {words}"));
            out.push(accept(object, answer, wanted).map_err(failed)?);
        }
        Ok(out)
    }
}

impl Webhook {
    fn of(spec: &Value, before: Option<&Self>) -> Self {
        let config = spec.pointer("/webhook/clientConfig").unwrap_or(&Value::Null);
        Self {
            endpoint: Endpoint::of(config, before.map(|before| &before.endpoint)),
            reviews: strings(spec.pointer("/webhook/conversionReviewVersions"))
                .into_iter()
                .map(str::to_owned)
                .collect(),
        }
    }

    async fn ask(&self, services: &WebhookServices, objects: &[Value], wanted: &str) -> Result<Vec<Value>, String> {
        let review = self
            .reviews
            .iter()
            .find(|version| matches!(version.as_str(), "v1" | "v1beta1"))
            .ok_or("no supported conversion review versions")?;
        let uid = uuid::Uuid::new_v4().to_string();
        let version = format!("apiextensions.k8s.io/{review}");
        let question = json!({
            "kind": "ConversionReview", "apiVersion": version,
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
        });
        let body = serde_json::to_vec(&question).map_err(|e| e.to_string())?;
        let answer = self.endpoint.post(services, TIMEOUT, body).await;
        let answer = answer.map_err(Unanswered::of_conversion)?;
        let answer: Value =
            serde_json::from_slice(&answer).map_err(|e| format!("couldn't get version/kind; json parse error: {e}"))?;
        check_answer(&answer, &uid, review)
    }
}

/// Checks a response.
fn check_answer(answer: &Value, uid: &str, review: &str) -> Result<Vec<Value>, String> {
    let (version, kind) = (text(answer, "apiVersion"), text(answer, "kind"));
    if !KINDS.contains(&kind) || !VERSIONS.contains(&version) {
        return Err(unregistered(kind, version));
    }
    if review == "v1" && (version, kind) != (VERSIONS[0], KINDS[0]) {
        return Err(format!(
            "expected webhook response of {}, Kind={}, got {version}, Kind={kind}",
            VERSIONS[0], KINDS[0]
        ));
    }
    let Some(response) = answer.get("response").filter(|r| r.is_object()) else {
        return Err("no response provided".to_owned());
    };
    let quoted = |text: &str| Value::from(text).to_string();
    if review == "v1" && text(response, "uid") != uid {
        return Err(format!(
            "expected response.uid={}, got {}",
            quoted(uid),
            quoted(text(response, "uid"))
        ));
    }
    let result = response.get("result").unwrap_or(&Value::Null);
    if text(result, "status") != "Success" {
        let message = text(result, "message");
        return Err(if message.is_empty() {
            format!("response.result.status was '{}', not 'Success'", text(result, "status"))
        } else {
            message.to_owned()
        });
    }
    let objects = response.get("convertedObjects").and_then(Value::as_array);
    Ok(objects.cloned().unwrap_or_default())
}

/// Accepts a converted object, except for most of its metadata.
fn accept(object: &Value, mut answer: Value, wanted: &str) -> Result<Value, String> {
    let at_index = |words: String| format!("invalid object at index 0: {words}");
    let version = text(&answer, "apiVersion");
    if version != wanted {
        return Err(at_index(format!(
            "invalid groupVersion (expected {wanted}, received {version})"
        )));
    }
    let (kind, is) = (text(object, "kind"), text(&answer, "kind"));
    if kind != is {
        return Err(at_index(format!("invalid kind (expected {kind}, received {is})")));
    }
    for (key, words) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (meta(object, key), meta(&answer, key));
        if before != after {
            return Err(format!(
                "invalid object: must have the same {words}: {before} != {after}"
            ));
        }
    }
    restore(object, &mut answer).map_err(|words| format!("invalid metadata: {words}"))?;
    Ok(answer)
}

/// Restores the metadata; only labels and annotations may change.
fn restore(object: &Value, answer: &mut Value) -> Result<(), String> {
    let given = match answer.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(map)) => map.clone(),
        Some(other) => {
            return Err(format!(
                "invalid metadata of type {} in converted object",
                go_type(other)
            ));
        }
    };
    let mut kept: Map<String, Value> = object
        .get("metadata")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for field in ["labels", "annotations"] {
        let Some(found) = given.get(field).filter(|v| !v.is_null()) else {
            kept.remove(field);
            continue;
        };
        let Value::Object(map) = found else {
            return Err(format!(
                "invalid metadata.{field} of type {} in converted object",
                go_type(found)
            ));
        };
        if let Some((key, value)) = map.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!(
                "metadata.{field}[{key}] must be a string, but is {} in converted object",
                go_type(value)
            ));
        }
        if kept.get(field) != Some(found) {
            let mut errors = windlass_schema::FieldErrors::new();
            if field == "labels" {
                check_labels(found, "metadata.labels", &mut errors);
            } else {
                check_annotations(found, "metadata.annotation", &mut errors);
            }
            match &errors[..] {
                [] => {}
                [one] => return Err(one.to_string()),
                many => {
                    let all: Vec<String> = many.iter().map(ToString::to_string).collect();
                    return Err(format!("[{}]", all.join(", ")));
                }
            }
        }
        kept.insert(field.to_owned(), found.clone());
    }
    if let Some(map) = answer.as_object_mut() {
        map.insert("metadata".into(), Value::Object(kept));
    }
    Ok(())
}
