//! Plays a case against a server.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use rand::RngExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::case::{Case, Step, Until, User};
use crate::hooks::{Answer as HookAnswer, Hooks};
use crate::normal::{Answer, Body, Normal};
use crate::path;
use crate::target::Target;
use crate::vars::Vars;

/// Time limit of one answer.
const PATIENCE: Duration = Duration::from_mins(1);
/// Time limit of a repeated request.
const EVENTUALLY: Duration = Duration::from_mins(1);

/// Headers that clients read.
const HEADERS: [&str; 4] = ["content-type", "warning", "location", "retry-after"];

/// The normalised answers of a server to a case, one value per step. The case's namespace is kept: deleting many namespaces would
/// slow down the server for the other cases.
pub async fn play(target: &Target, case: &Case, hooks: &Hooks, keep: bool) -> Result<Vec<Value>, String> {
    let id: String = (0..8)
        .map(|_| char::from(b'a' + rand::rng().random_range(0..26)))
        .collect();
    let namespace = format!("ns-{id}");
    let mut player = Player {
        target,
        hooks,
        vars: Vars::default(),
        normal: Normal::default(),
        open: BTreeMap::new(),
    };
    let address = target.url.trim_start_matches("https://");
    player.vars.set("hooks", json!(format!("{}/{id}", hooks.url)), true);
    player.vars.set("ca", json!(hooks.authority), true);
    player.vars.set("ns", json!(namespace), true);
    player.vars.set("id", json!(id), true);
    player.vars.set("server", json!(address), true);
    let needs_namespace = format!("{case:?}").contains("$ns");
    if needs_namespace {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        player.simple(Method::POST, "/api/v1/namespaces", Some(body)).await?;
    }
    let answers = case.hooks.clone().into_iter().map(|(name, answer)| {
        let patch = answer.patch.map(|patch| player.vars.fill_value(&patch));
        (name, HookAnswer { patch, ..answer })
    });
    hooks.set(&id, &answers.collect());
    let mut out = Vec::new();
    let mut failed = None;
    for (at, step) in case.steps.iter().enumerate() {
        match player.step(step).await {
            Ok(answer) => out.push(answer),
            Err(error) => {
                failed = Some(format!("step {}: {error}", at + 1));
                break;
            }
        }
    }
    if keep {
        // A server that is about to end needs no cleanup.
        return failed.map_or(Ok(out), Err);
    }
    player.open.clear();
    for path in &case.clean {
        player.simple(Method::DELETE, &player.vars.fill(path), None).await.ok();
    }
    failed.map_or(Ok(out), Err)
}

struct Player<'a> {
    target: &'a Target,
    hooks: &'a Hooks,
    vars: Vars,
    normal: Normal,
    open: BTreeMap<String, Watch>,
}

impl Player<'_> {
    async fn simple(&self, method: Method, path: &str, body: Option<Value>) -> Result<(), String> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.target.url))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .map_err(|e| e.to_string())?;
        let response = self.target.admin.request(request).await.map_err(|e| said(&e))?;
        let status = response.status();
        let answer = response.into_body().collect().await.map_err(|e| said(&e))?.to_bytes();
        if status.is_success() {
            Ok(())
        } else {
            Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&answer)))
        }
    }

    async fn step(&mut self, step: &Step) -> Result<Value, String> {
        if let Some(name) = &step.hooked {
            let id = self.vars.fill("$id");
            let answer = Answer {
                status: 200,
                headers: BTreeMap::new(),
                body: Body::Events(self.hooks.asked(&id, name)),
            };
            return Ok(self.normal.answer(answer, step, &self.vars));
        }
        let answer = match (&step.send, &step.watch, &step.read) {
            (Some(send), None, None) => self.send(step, send).await?,
            (None, Some(path), None) => match self.watch(step, path).await? {
                Started::Refused(answer) => answer,
                Started::Watch(mut watch, answer) => {
                    if let Some(name) = &step.open {
                        self.open.insert(name.clone(), watch);
                        answer
                    } else {
                        Answer {
                            body: watch.read(step).await?,
                            ..answer
                        }
                    }
                }
            },
            (None, None, Some(name)) => {
                let watch = self
                    .open
                    .get_mut(name)
                    .ok_or_else(|| format!("no watch {name} is open"))?;
                let body = watch.read(step).await?;
                Answer {
                    status: 200,
                    headers: BTreeMap::new(),
                    body,
                }
            }
            _ => return Err("a step is one of send, watch, read and hooked".to_owned()),
        };
        for (name, at) in &step.save {
            let value = match at.strip_prefix("header:") {
                Some(name) => answer
                    .headers
                    .get(&name.to_lowercase())
                    .and_then(|v| v.first())
                    .map(|v| json!(v)),
                None => answer.body.json().and_then(|body| path::get(&body, at).cloned()),
            };
            let value = value.ok_or_else(|| format!("nothing to save at {at}: {answer:?}"))?;
            self.vars.set(name, value, true);
        }
        Ok(self.normal.answer(answer, step, &self.vars))
    }

    async fn send(&self, step: &Step, send: &str) -> Result<Answer, String> {
        let (method, path) = send
            .split_once(' ')
            .ok_or_else(|| format!("{send:?} is no verb and path"))?;
        let method = Method::from_bytes(method.as_bytes()).map_err(|e| e.to_string())?;
        let path = self.vars.fill(path);
        let begun = Instant::now();
        loop {
            let response = self.request(step, &method, &path).await?;
            let status = response.status();
            let headers = headers(step, &response);
            let bytes = timeout(PATIENCE, response.into_body().collect())
                .await
                .map_err(|_| format!("{send}: the answer does not end"))?
                .map_err(|e| said(&e))?
                .to_bytes();
            let answer = Answer {
                status: status.as_u16(),
                body: Body::of(&bytes, &headers),
                headers,
            };
            let there = step.reaches.as_ref().is_none_or(|name| self.reached(name));
            if there && step.until.as_ref().is_none_or(|until| self.is_met(until, &answer)) {
                return Ok(answer);
            }
            if begun.elapsed() > EVENTUALLY {
                return Err(format!("{send}: {:?} does not come true; last: {answer:?}", step.until));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Whether a webhook of the case has received a review.
    fn reached(&self, name: &str) -> bool {
        !self.hooks.asked(&self.vars.fill("$id"), name).is_empty()
    }

    fn is_met(&self, until: &Until, answer: &Answer) -> bool {
        match until {
            Until::Status(status) => *status == answer.status,
            Until::Values(values) => {
                let body = answer.body.json().unwrap_or_default();
                values
                    .iter()
                    .all(|(at, want)| path::get(&body, at).unwrap_or(&Value::Null) == &self.vars.fill_value(want))
            }
        }
    }

    async fn watch(&self, step: &Step, path: &str) -> Result<Started, String> {
        let path = self.vars.fill(path);
        let response = self.request(step, &Method::GET, &path).await?;
        let headers = headers(step, &response);
        let status = response.status().as_u16();
        if response.status() == StatusCode::OK {
            let answer = Answer {
                status,
                headers,
                body: Body::Events(Vec::new()),
            };
            return Ok(Started::Watch(
                Watch {
                    body: response.into_body(),
                    buffer: Vec::new(),
                },
                answer,
            ));
        }
        let bytes = response.into_body().collect().await.map_err(|e| said(&e))?.to_bytes();
        Ok(Started::Refused(Answer {
            status,
            body: Body::of(&bytes, &headers),
            headers,
        }))
    }

    async fn request(&self, step: &Step, method: &Method, path: &str) -> Result<Response<Incoming>, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.target.url));
        let mut client = &self.target.admin;
        match &step.user {
            None => {}
            Some(User::Name(_)) => client = &self.target.anonymous,
            Some(User::Token { token }) => {
                client = &self.target.anonymous;
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            Some(User::Impersonated { user, groups }) => {
                request = request.header("Impersonate-User", self.vars.fill(user));
                for group in groups {
                    request = request.header("Impersonate-Group", self.vars.fill(group));
                }
            }
        }
        let body = match (&step.body, &step.text) {
            (Some(body), _) => Some(self.vars.fill_value(body).to_string()),
            (None, Some(text)) => Some(self.vars.fill(text)),
            (None, None) => None,
        };
        let has = |name: &str| step.headers.keys().any(|key| key.eq_ignore_ascii_case(name));
        if body.is_some() && !has("content-type") {
            let kind = step.patch.map_or("application/json", crate::case::Patch::content_type);
            request = request.header(header::CONTENT_TYPE, kind);
        }
        if !has("accept") {
            request = request.header(header::ACCEPT, "application/json");
        }
        if !has("user-agent") {
            request = request.header(header::USER_AGENT, "parity/1.0 (test)");
        }
        for (name, value) in &step.headers {
            request = request.header(name, self.vars.fill(value));
        }
        let request = request
            .body(Full::from(Bytes::from(body.unwrap_or_default())))
            .map_err(|e| e.to_string())?;
        timeout(PATIENCE, client.request(request))
            .await
            .map_err(|_| format!("{method} {path}: no answer"))?
            .map_err(|e| format!("{method} {path}: {}", said(&e)))
    }
}

/// The headers of a response that count for a step.
fn headers(step: &Step, response: &Response<Incoming>) -> BTreeMap<String, Vec<String>> {
    let mut names: Vec<String> = HEADERS.iter().map(ToString::to_string).collect();
    names.extend(step.see.iter().map(|name| name.to_lowercase()));
    names.extend(
        step.save
            .values()
            .filter_map(|at| at.strip_prefix("header:"))
            .map(str::to_lowercase),
    );
    let read = |name: &String| -> Vec<String> {
        let values = response.headers().get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    };
    names
        .into_iter()
        .map(|name| (name.clone(), read(&name)))
        .filter(|(_, values)| !values.is_empty())
        .collect()
}

enum Started {
    Refused(Answer),
    Watch(Watch, Answer),
}

/// An open watch.
struct Watch {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Watch {
    async fn read(&mut self, step: &Step) -> Result<Body, String> {
        let mut events: Vec<Value> = Vec::new();
        while step.events.is_none_or(|wanted| events.len() < wanted) {
            match timeout(PATIENCE, self.next()).await {
                Ok(Ok(Some(event))) => {
                    if step.bookmarks || !is_plain_bookmark(&event) {
                        events.push(event);
                    }
                }
                Ok(Ok(None)) if step.events.is_none() => break,
                Ok(Ok(None)) => {
                    events.push(json!("the server ended the watch"));
                    break;
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    events.push(json!("nothing more came"));
                    break;
                }
            }
        }
        // An event that has arrived beyond the expected number is an unexpected one.
        if step.events.is_some() && step.read.is_some() {
            while let Some(Ok(Some(event))) = self.next().now_or_never() {
                if step.bookmarks || !is_plain_bookmark(&event) {
                    events.push(event);
                }
            }
        }
        Ok(Body::Events(events))
    }

    async fn next(&mut self) -> Result<Option<Value>, String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return serde_json::from_slice(&line)
                    .map(Some)
                    .map_err(|e| format!("an event is no JSON: {e}"));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(said(&error)),
                None => return Ok(None),
            }
        }
    }
}

fn is_plain_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"].is_null()
}

/// An error with its causes.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += ": ";
        text += &error.to_string();
        cause = error.source();
    }
    text
}
