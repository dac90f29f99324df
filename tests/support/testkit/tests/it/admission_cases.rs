//! The rules of admission, case by case (`crates/admission/cases`): as pure functions, and through an API server. The server is the one of
//! the suite: the embedded one, which calls the rules in process, or a real one, which calls the webhooks.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::core::response::StatusCause;
use serde_json::{Value, json};
use windlass_admission::view;
use windlass_admission::{Change, Hook, Operation, Rule, Verdict};
use windlass_manager::FeatureGates;
use windlass_manager::registry::admission;
use windlass_manager::registry::kinds::find;
use windlass_testkit::{Env, Objects};

use crate::foreign_class::namespace;

/// The reasons of causes, by the words of an error with a field.
const REASONS: [(&str, &str); 9] = [
    ("Duplicate value", "FieldValueDuplicate"),
    ("Forbidden", "FieldValueForbidden"),
    ("Internal error", "InternalError"),
    ("Invalid value", "FieldValueInvalid"),
    ("Invalid value", "FieldValueTypeInvalid"),
    ("Required value", "FieldValueRequired"),
    ("Too long", "FieldValueTooLong"),
    ("Too many", "FieldValueTooMany"),
    ("Unsupported value", "FieldValueNotSupported"),
];

/// The cases of one file: they begin with the same object, beside the same others.
struct File {
    name: String,
    content: Value,
}

fn files() -> Vec<File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../crates/admission/cases");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let content = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        files.push(File { name, content });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn texts<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    list(value, name).iter().map(|text| text.as_str().unwrap()).collect()
}

/// A JSON merge patch.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut object[name], value);
        }
    }
}

/// Whether an object has all of these fields; none of those that are null.
fn has(object: &Value, expected: &Value) -> bool {
    match expected {
        Value::Null => object.is_null(),
        Value::Object(fields) => object.is_object() && fields.iter().all(|(name, value)| has(&object[name], value)),
        Value::Array(items) => {
            let have = object.as_array().map_or(&[] as &[Value], Vec::as_slice);
            have.len() == items.len() && have.iter().zip(items).all(|(have, item)| has(have, item))
        }
        other => object == other,
    }
}

/// One case, ready to run in a namespace.
struct Case<'a> {
    about: String,
    written: &'a Value,
    /// The object that is created, or there before.
    base: Value,
    /// The objects beside it.
    beside: Vec<Value>,
}

impl<'a> Case<'a> {
    fn new(file: &'a File, case: &'a Value, namespace: &str) -> Self {
        let is_namespaced =
            |object: &Value| find(object["kind"].as_str().unwrap()).is_none_or(|kind| kind.is_namespaced);
        let place = |object: &mut Value| {
            if is_namespaced(object) {
                object["metadata"]["namespace"] = json!(namespace);
            }
        };
        let mut base = file.content["base"].clone();
        if let Some(name) = case["named"].as_str() {
            base["metadata"]["name"] = json!(name);
        } else if !is_namespaced(&base) {
            // Its name is its own in the whole server.
            base["metadata"]["name"] = json!(namespace);
        } else if base["metadata"]["name"].is_null() {
            base["metadata"]["name"] = json!("x");
        }
        place(&mut base);
        merge(
            &mut base,
            &if case["old"].is_null() {
                json!({})
            } else {
                case["old"].clone()
            },
        );
        let mut beside: Vec<Value> = list(&file.content, "beside").to_vec();
        beside.iter_mut().for_each(place);
        Self {
            about: format!("{}: {}", file.name, case["name"].as_str().unwrap()),
            written: case,
            base,
            beside,
        }
    }

    fn is(&self, what: &str) -> bool {
        self.written[what] == true
    }

    /// The object that is written.
    fn new_object(&self, stored: &Value) -> Value {
        let mut new = stored.clone();
        merge(&mut new, &self.written["new"]);
        new
    }

    /// What others do before the write.
    fn changes(&self) -> &'a [Value] {
        list(self.written, "change")
    }

    /// An error about the case, unless something is so.
    fn expect(&self, is_so: bool, found: impl FnOnce() -> String) -> Result<(), String> {
        is_so
            .then_some(())
            .ok_or_else(|| format!("{}: {}", self.about, found()))
    }

    fn gets(&self, object: &Value) -> Result<(), String> {
        let expected = &self.written["gets"];
        self.expect(expected.is_null() || has(object, expected), || format!("{object:#}"))?;
        for label in texts(self.written, "labels") {
            let found = |pointer: &str| object.pointer(pointer).map(|labels| labels[label].clone());
            let (selector, template) = (
                found("/spec/selector/matchLabels"),
                found("/spec/template/metadata/labels"),
            );
            let name = Some(object["metadata"]["name"].clone());
            self.expect(selector == name && template == name, || format!("{object:#}"))?;
        }
        Ok(())
    }

    fn is_refused(&self, message: &str) -> Result<(), String> {
        let expected = texts(self.written, "refused");
        self.expect(!expected.is_empty(), || format!("refused: {message}"))?;
        for text in expected {
            self.expect(message.contains(text), || format!("no {text:?} in {message}"))?;
        }
        self.expect(!message.contains("hidden"), || message.to_owned())
    }

    /// A server tells each error as a cause as well, which programs read: with its field, its reason and its words. A case may name the
    /// end of the field only.
    fn has_causes(&self, status: &Status) -> Result<(), String> {
        let all: Vec<_> = status.details.iter().flat_map(|details| &details.causes).collect();
        for text in texts(self.written, "refused") {
            let Some((field, words)) = text.split_once(": ").filter(|(field, _)| !field.contains(' ')) else {
                continue;
            };
            let type_ = words.split(':').next().unwrap_or_default();
            let reasons: Vec<_> = REASONS.iter().filter(|(name, _)| *name == type_).collect();
            let is_it = |cause: &&StatusCause| {
                let is_named = cause.field.ends_with(field) && cause.message.starts_with(words);
                is_named && reasons.iter().any(|(_, reason)| cause.reason == *reason)
            };
            self.expect(
                reasons.is_empty() || all.iter().copied().any(|cause| is_it(&cause)),
                || format!("no cause of {field} with {words:?} in {all:?}"),
            )?;
        }
        Ok(())
    }

    fn warns(&self, warnings: &str) -> Result<(), String> {
        let mut expected = texts(self.written, "warns").into_iter();
        expected.try_for_each(|text| self.expect(warnings.contains(text), || format!("no {text:?} in {warnings}")))
    }

    fn passes(&self, object: &Value) -> Result<(), String> {
        self.expect(self.is_expected_to_pass(), || "passes".to_owned())?;
        self.gets(object)
    }

    fn is_expected_to_pass(&self) -> bool {
        self.written["refused"].is_null()
    }
}

fn describe(verdict: &Verdict) -> String {
    let errors: Vec<String> = verdict.errors.iter().map(ToString::to_string).collect();
    verdict.forbidden.clone().unwrap_or_else(|| errors.join(", "))
}

/// The case as pure functions.
fn pure(case: &Case<'_>, rules: &[Rule]) -> Result<(), String> {
    let rule = rules.iter().find(|rule| case.base["kind"] == rule.kind).unwrap();
    let mut beside = case.beside.clone();
    for change in case.changes() {
        let is_it =
            |object: &&mut Value| object["kind"] == change["kind"] && object["metadata"]["name"] == change["name"];
        let object = beside.iter_mut().find(is_it).unwrap();
        for part in ["spec", "status"] {
            if !change[part].is_null() {
                merge(&mut object[part], &change[part]);
            }
        }
    }
    // A class that nothing has reconciled yet.
    for object in &mut beside {
        object["metadata"]["generation"] = json!(1);
    }
    let view = view::Objects(beside.into_iter().map(Arc::new).collect());
    let resource = rule.qualified();
    let dry_run = case.is("dryRun");
    let write = |operation, old: &Value, new: &Value| -> Result<(Verdict, Value), String> {
        let mut object = new.clone();
        let nothing = Value::Null;
        let change = |new| Change {
            resource: &resource,
            operation,
            dry_run,
            old,
            new,
            view: &view,
        };
        let verdict = rule.complete(&change(&nothing), &mut object).unwrap();
        if !verdict.is_allowed() {
            return Ok((verdict, object));
        }
        let mut again = object.clone();
        rule.complete(&change(&nothing), &mut again).unwrap();
        case.expect(again == object, || {
            format!("what is complete is completed again: {again:#}")
        })?;
        Ok((rule.check(&change(&object)).unwrap(), object))
    };
    let before = || {
        let (verdict, object) = write(Operation::Create, &Value::Null, &case.base)?;
        case.expect(verdict.is_allowed(), || format!("before: {}", describe(&verdict)))?;
        Ok::<_, String>(object)
    };
    let (verdict, object) = if let Some(replicas) = case.written["scale"].as_i64() {
        let check = rule.admission.scale.ok_or("scale is not checked")?;
        let refused = check(replicas, &before()?);
        let verdict = Verdict {
            forbidden: refused,
            ..Verdict::default()
        };
        (verdict, Value::Null)
    } else if case.is("delete") {
        write(Operation::Delete, &before()?, &Value::Null)?
    } else if case.is("update") {
        let old = before()?;
        write(Operation::Update, &old, &case.new_object(&old))?
    } else {
        write(Operation::Create, &Value::Null, &case.new_object(&case.base))?
    };
    case.warns(&verdict.warnings.concat())?;
    if !verdict.is_allowed() {
        return case.is_refused(&describe(&verdict));
    }
    case.passes(&object)
}

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    Objects::new(client.clone()).dynamic_in(object["kind"].as_str().unwrap(), namespace)
}

async fn put_status(client: &Client, object: &Value, name: &str, status: &Value) {
    let patch = Patch::Merge(json!({"status": status}));
    let patched = api(client, object)
        .patch_status(name, &PatchParams::default(), &patch)
        .await;
    patched.unwrap_or_else(|error| panic!("{name}: {error}"));
}

async fn create(client: &Client, object: &Value) -> Result<Value, kube::Error> {
    let mut bare = object.clone();
    bare.as_object_mut().unwrap().remove("status");
    let bare = serde_json::from_value(bare).unwrap();
    let made = api(client, object).create(&PostParams::default(), &bare).await?;
    Ok(serde_json::to_value(made).unwrap())
}

/// What a server answers to a write.
struct Answer {
    object: Result<Value, Box<Status>>,
    warnings: String,
}

/// The write of a case.
async fn write(client: &Client, case: &Case<'_>, dry_run: bool) -> Answer {
    let (all, name) = (api(client, &case.base), case.base["metadata"]["name"].as_str().unwrap());
    let dry_run = if dry_run { "?dryRun=All" } else { "" };
    let one = format!("{}/{name}", all.resource_url());
    let (method, url, body) = if let Some(replicas) = case.written["scale"].as_i64() {
        let scale = json!({"spec": {"replicas": replicas}});
        (Method::PATCH, format!("{one}/scale"), scale)
    } else if case.is("delete") {
        (Method::DELETE, one, json!({}))
    } else if case.is("update") {
        (Method::PATCH, one, case.written["new"].clone())
    } else {
        let new = case.new_object(&case.base);
        (Method::POST, all.resource_url().to_owned(), new)
    };
    let media = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder().method(method).uri(format!("{url}{dry_run}"));
    let request = request
        .header(CONTENT_TYPE, media)
        .body(body.to_string().into_bytes().into());
    let answer = client.send(request.unwrap()).await.unwrap();
    let (is_done, warnings) = (answer.status().is_success(), answer.headers().get_all("warning"));
    let warnings = warnings.iter().map(|text| text.to_str().unwrap().replace("\\\"", "\""));
    let warnings = warnings.collect();
    let body = answer.into_body().collect_bytes().await.unwrap();
    let object = if is_done {
        Ok(serde_json::from_slice(&body).unwrap())
    } else {
        Err(serde_json::from_slice(&body).unwrap())
    };
    Answer { object, warnings }
}

/// The case through an API server.
async fn served(client: &Client, case: &Case<'_>) -> Result<(), String> {
    let is_there_before = case.is("update") || case.is("delete") || !case.written["scale"].is_null();
    let about = &case.about;
    let is_class = |object: &&Value| object["kind"] == "ClusterClass";
    // A Cluster is created after its class.
    for object in case.beside.iter().filter(is_class) {
        create(client, object)
            .await
            .unwrap_or_else(|error| panic!("{about}: {error}"));
    }
    if is_there_before {
        create(client, &case.base)
            .await
            .unwrap_or_else(|error| panic!("{about}: {error}"));
    }
    for object in case.beside.iter().filter(|object| !is_class(object)) {
        create(client, object)
            .await
            .unwrap_or_else(|error| panic!("{about}: {error}"));
        if !object["status"].is_null() {
            let name = object["metadata"]["name"].as_str().unwrap();
            put_status(client, object, name, &object["status"]).await;
        }
    }
    for change in case.changes() {
        let name = change["name"].as_str().unwrap();
        let is_it = |object: &&Value| object["kind"] == change["kind"] && object["metadata"]["name"] == name;
        let object = case.beside.iter().find(is_it).unwrap();
        if !change["spec"].is_null() {
            let patch = Patch::Merge(json!({"spec": change["spec"]}));
            api(client, object)
                .patch(name, &PatchParams::default(), &patch)
                .await
                .unwrap();
        }
        if !change["status"].is_null() {
            put_status(client, object, name, &change["status"]).await;
        }
    }
    if !case.is_expected_to_pass() && !case.beside.is_empty() {
        // The caches of the webhooks may be a moment behind.
        let mut looks = tokio::time::interval(Duration::from_millis(100));
        let waited = tokio::time::timeout(Duration::from_mins(1), async {
            while write(client, case, true)
                .await
                .object
                .err()
                .is_none_or(|status| status.code == 500)
            {
                looks.tick().await;
            }
        });
        assert!(waited.await.is_ok(), "{about}: passes");
    }
    let answer = write(client, case, case.is("dryRun")).await;
    case.warns(&answer.warnings)?;
    let written = match answer.object {
        Ok(written) => written,
        Err(status) => {
            assert!(matches!(status.code, 403 | 422), "{about}: {status:?}");
            if status.code == 422 {
                case.has_causes(&status)?;
            }
            return case.is_refused(&status.message);
        }
    };
    case.passes(&written)
}

/// A rule without one of its hooks.
fn without(rule: &Rule, hook: Hook) -> Rule {
    let mut rule = rule.clone();
    match hook {
        Hook::Complete => rule.admission.complete = None,
        Hook::Check => rule.admission.operations = &[],
        Hook::Scale => rule.admission.scale = None,
    }
    rule
}

#[test]
fn a_rule_that_is_not_asked_fails_a_case() {
    let (rules, files) = (admission::rules(&FeatureGates::default()), files());
    for rule in &rules {
        for hook in Hook::ALL.into_iter().filter(|hook| rule.has(*hook)) {
            let weak = [without(rule, hook)];
            let of_kind = files.iter().filter(|file| file.content["base"]["kind"] == rule.kind);
            let mut cases = of_kind.flat_map(|file| list(&file.content, "cases").iter().map(move |case| (file, case)));
            let fails = cases.any(|(file, case)| {
                let case = Case::new(file, case, "a");
                pure(&case, &weak).is_err()
            });
            assert!(fails, "nothing notices that {} is not asked", rule.name(hook));
        }
    }
}

/// Tries all cases, as functions and through a server.
async fn all(client: &Client) {
    let rules = admission::rules(&FeatureGates::default());
    let objects = Objects::new(client.clone());
    let (mut number, mut failed) = (0, Vec::new());
    let files = files();
    for file in &files {
        assert!(!list(&file.content, "cases").is_empty(), "{} has no case", file.name);
        for case in list(&file.content, "cases") {
            number += 1;
            let place = format!("case-{number}");
            let case = Case::new(file, case, &place);
            namespace(&objects, &place).await;
            // All cases are tried, so that one run tells of all that fail.
            let tried = async {
                pure(&case, &rules)?;
                served(client, &case).await
            };
            let tried = AssertUnwindSafe(tried).catch_unwind().await;
            let tried = tried.unwrap_or_else(|_| Err(format!("{}: see above", case.about)));
            failed.extend(tried.err());
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(number > 150, "{number}");
    let kinds: Vec<&Value> = files.iter().map(|file| &file.content["base"]["kind"]).collect();
    for rule in &rules {
        assert!(
            kinds.iter().any(|kind| **kind == rule.kind),
            "{} has no case",
            rule.kind
        );
    }
}

// TO-003, TO-013, TO-021, TO-026, TO-029, TO-040, TO-041, TO-044, TO-054, TO-073, TO-074, TO-075, TO-076, TO-077, TO-080, TO-082, TO-083,
// TO-084, TO-086, TO-087, TO-088, TO-094, TO-095, TO-096, TO-097, TO-098, TO-099, TO-100, TO-101, TO-102, TO-105, TO-106, TO-107, TO-110,
// TO-115, TO-116, TO-123, TO-125, TO-126, TO-129, TO-130, TO-132, TO-133, TO-136, TO-137, TO-138, TO-139, TO-141, TO-144, TO-160, TO-181,
// TO-182, TO-183, TO-184, TO-185, TO-186, TO-187, TO-189, TO-190, TO-192, TO-194, TO-195, TO-196, TO-197, TO-198, TO-199, TO-202,
// TO-203, TO-205, TO-206, TO-207, TO-209, TO-210, TO-211, TO-212, TO-213, TO-214, TO-215, TO-216, TO-217, TO-218, TO-219, TO-220, TO-221,
// TO-222, TO-223, TO-224, TO-226, TO-228, TO-229, TO-230, TO-231, TO-232, TO-235, TO-296, TO-302, TO-342, TO-349, TO-350, TO-360, CL-007,
// CL-011, CL-026, CL-029, CL-105
#[tokio::test]
async fn every_case_is_decided_the_same_as_a_function_and_by_a_server() {
    let env = Env::builder().without_controllers().start().await;
    all(env.client()).await;
    env.stop().await;
}

// CL-007, CL-011: the server calls the webhooks of a manager, as a real one does.
#[tokio::test]
async fn every_case_is_decided_the_same_by_webhooks() {
    let world = crate::admission_network::World::start().await;
    let webhooks = world.serve().await;
    windlass_testkit::is_admitting(world.objects.client()).await;
    all(world.objects.client()).await;
    webhooks.shutdown().await;
    world.server.stop().await;
}
