//! HTTP properties of responses.

use std::io::Read as _;

use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiBody, ApiServer, Options, UserInfo};
use windlass_meta::NameSource;
use windlass_store::{Limits, Store};

use crate::support::server;

async fn ask(server: &ApiServer, request: http::request::Builder, body: &Value) -> Response<ApiBody> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request: Request<Full<bytes::Bytes>> = request.body(Full::from(body)).unwrap();
    server
        .client_service(UserInfo::admin("test"))
        .oneshot(request)
        .await
        .unwrap()
}

async fn get(server: &ApiServer, path: &str, headers: &[(header::HeaderName, &str)]) -> Response<ApiBody> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    ask(server, request, &Value::Null).await
}

async fn text(response: Response<ApiBody>) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

async fn post(server: &ApiServer, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let response = ask(server, request, body).await;
    let code = response.status().as_u16();
    (code, serde_json::from_slice(&text(response).await).unwrap())
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn what_is_large_is_compressed_for_who_takes_it() {
    let server = server().await;
    let large = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(200 << 10)}});
    assert_eq!(post(&server, MAPS, &large).await.0, 201);
    let small = json!({"metadata": {"name": "b"}});
    assert_eq!(post(&server, MAPS, &small).await.0, 201);
    let gzip = [(header::ACCEPT_ENCODING, "br, gzip;q=0.5")];
    let answer = get(&server, MAPS, &gzip).await;
    assert_eq!(answer.headers()[header::CONTENT_ENCODING], "gzip");
    assert_eq!(answer.headers()[header::VARY], "Accept-Encoding");
    let packed = text(answer).await;
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_end(&mut out)
        .unwrap();
    assert!(packed.len() < out.len() / 20);
    let list: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    for (path, headers) in [(MAPS.to_owned(), &[][..]), (format!("{MAPS}/b"), &gzip[..])] {
        let answer = get(&server, &path, headers).await;
        assert!(!answer.headers().contains_key(header::CONTENT_ENCODING), "{path}");
    }
}

#[tokio::test]
async fn people_get_lines() {
    let server = server().await;
    let lines = |text: Vec<u8>| text.split(|b| *b == b'\n').count() - 1;
    let path = "/api/v1/namespaces/default";
    assert_eq!(lines(text(get(&server, path, &[]).await).await), 0);
    assert!(lines(text(get(&server, &format!("{path}?pretty=true"), &[]).await).await) > 5);
    let curl = [(header::USER_AGENT, "curl/8.0")];
    assert!(lines(text(get(&server, path, &curl).await).await) > 5);
    assert_eq!(
        lines(text(get(&server, &format!("{path}?pretty=false"), &curl).await).await),
        0
    );
}

#[tokio::test]
async fn documents_are_kept_by_their_tag() {
    let server = server().await;
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for (path, accept) in [
        ("/openapi/v2", "application/json"),
        ("/openapi/v3/apis/apps/v1", "application/json"),
        ("/apis", aggregated),
    ] {
        let first = get(&server, path, &[(header::ACCEPT, accept)]).await;
        assert_eq!(first.status(), 200, "{path}");
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        let again = [(header::ACCEPT, accept), (header::IF_NONE_MATCH, tag.as_str())];
        let again = get(&server, path, &again).await;
        assert_eq!(
            (again.status().as_u16(), again.headers()[header::ETAG].to_str().unwrap()),
            (304, tag.as_str())
        );
        assert!(text(again).await.is_empty());
        let other = get(
            &server,
            path,
            &[(header::ACCEPT, accept), (header::IF_NONE_MATCH, "\"x\"")],
        )
        .await;
        assert_eq!(other.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn documents_are_found_by_their_hash() {
    let server = server().await;
    let index: Value = serde_json::from_slice(&text(get(&server, "/openapi/v3", &[]).await).await).unwrap();
    let place = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = get(&server, place, &[]).await;
    assert_eq!(document.status(), 200);
    assert_eq!(document.headers()[header::CACHE_CONTROL], "public, immutable");
    let moved = get(&server, "/openapi/v3/apis/apps/v1?hash=old", &[]).await;
    assert_eq!(
        (
            moved.status().as_u16(),
            moved.headers()[header::LOCATION].to_str().unwrap()
        ),
        (301, place)
    );
}

/// Generates the same suffix for every name.
#[derive(Debug)]
struct Stubborn;

impl NameSource for Stubborn {
    fn suffix(&self, _: usize) -> String {
        "abcde".to_owned()
    }
}

#[tokio::test]
async fn a_name_that_cannot_be_generated_is_an_error() {
    let mut options = Options::new(Store::memory(Limits::default()));
    options.names = std::sync::Arc::new(Stubborn);
    let server = ApiServer::start(options).await.unwrap();
    let object = json!({"metadata": {"generateName": "a-"}});
    assert_eq!(post(&server, MAPS, &object).await.1["metadata"]["name"], "a-abcde");
    let (code, status) = post(&server, MAPS, &object).await;
    assert_eq!((code, status["reason"].as_str().unwrap()), (409, "AlreadyExists"));
    assert_eq!(
        status["message"],
        "configmaps \"a-abcde\" already exists, the server was not able to generate a unique name for the object"
    );
}

#[tokio::test]
async fn an_object_has_a_size() {
    let server = server().await;
    let annotated = json!({"metadata": {"name": "a", "annotations": {"a": "x".repeat(300 << 10)}}});
    let (code, status) = post(&server, MAPS, &annotated).await;
    let words = "ConfigMap \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes";
    assert_eq!((code, status["message"].as_str().unwrap()), (422, words));
    let huge = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(3 << 20)}});
    let (code, status) = post(&server, MAPS, &huge).await;
    assert_eq!(
        (code, status["reason"].as_str().unwrap()),
        (413, "RequestEntityTooLarge")
    );
    assert_eq!(status["message"], "Request entity too large: limit is 3145728");
}

#[tokio::test]
async fn lists_of_the_past_go_on_with_the_present_when_it_is_forgotten() {
    let limits = Limits {
        log_events: 2,
        ..Limits::default()
    };
    let server = ApiServer::start(Options::new(Store::memory(limits))).await.unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(post(&server, MAPS, &json!({"metadata": {"name": name}})).await.0, 201);
    }
    let read = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).unwrap();
    let first = read(text(get(&server, &format!("{MAPS}?limit=1"), &[]).await).await);
    let token = first["metadata"]["continue"].as_str().unwrap();
    for name in ["d", "e", "f"] {
        assert_eq!(post(&server, MAPS, &json!({"metadata": {"name": name}})).await.0, 201);
    }
    let gone = get(&server, &format!("{MAPS}?limit=1&continue={token}"), &[]).await;
    assert_eq!(gone.status(), 410);
    let gone = read(text(gone).await);
    assert_eq!(gone["reason"], "Expired");
    let token = gone["metadata"]["continue"].as_str().unwrap();
    let rest = read(text(get(&server, &format!("{MAPS}?continue={token}"), &[]).await).await);
    let names: Vec<&str> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b", "c", "d", "e", "f"]);
    let exact = get(
        &server,
        &format!("{MAPS}?resourceVersion=3&resourceVersionMatch=Exact"),
        &[],
    )
    .await;
    assert_eq!(exact.status(), 410);
}

#[tokio::test]
async fn a_watch_of_a_kind_ends_with_its_definition() {
    let (server, client) = crate::support::start().await;
    crate::support::install(&client, &crate::support::widget_crd()).await;
    let watch = get(&server, "/apis/example.com/v1/widgets?watch=1", &[]).await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let deleted = ask(
        &server,
        Request::builder().method(Method::DELETE).uri(definition),
        &Value::Null,
    )
    .await;
    assert_eq!(deleted.status(), 200);
    // Only the end of the stream ends this.
    tokio::time::timeout(std::time::Duration::from_mins(1), text(watch))
        .await
        .unwrap();
}
