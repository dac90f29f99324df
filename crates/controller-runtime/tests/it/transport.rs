//! Clients over the network, against a server with scripted answers.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass_controller_runtime::{Metrics, transport};

const NOT_NOW: &str = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// A server that gives these answers in order. Returns its address and the requests that it received.
async fn server(answers: Vec<&'static str>) -> (kube::Config, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut answers = answers.into_iter();
        while let Ok((mut stream, _)) = listener.accept().await {
            while let Some(request) = read(&mut stream).await {
                kept.lock().unwrap().push(request);
                let answer = answers.next().expect("no more requests than answers");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    let mut config = kube::Config::new(url.parse().unwrap());
    // Time passes at once in these tests.
    config.connect_timeout = None;
    (config, asked)
}

/// The next request's head; its body is as long as these tests make it.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(format!("{head}{}", String::from_utf8(body).unwrap()))
}

async fn post(client: &kube::Client) -> Result<serde_json::Value, kube::Error> {
    let request = http::Request::post("/api/v1/namespaces").body(b"body".to_vec());
    client.request(request.unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_patient_client_sends_the_same_request_again_when_the_server_is_not_ready() {
    let (config, asked) = server(vec![NOT_NOW, NOT_NOW, DONE]).await;
    let client = transport::connect_patiently(&config, &Metrics::new()).unwrap();
    post(&client).await.unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    assert!(
        asked
            .iter()
            .all(|request| *request == asked[0] && request.ends_with("body"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_patient_client_gives_up_at_last() {
    let answers = 1 + usize::try_from(transport::ASK_AGAIN).unwrap();
    let (config, asked) = server(vec![NOT_NOW; answers]).await;
    let client = transport::connect_patiently(&config, &Metrics::new()).unwrap();
    let error = post(&client).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 429));
    assert_eq!(asked.lock().unwrap().len(), answers);
}

#[tokio::test]
async fn the_client_of_a_controller_gets_refusals_at_once() {
    let (config, asked) = server(vec![NOT_NOW]).await;
    let client = transport::connect(&config, &Metrics::new()).unwrap();
    let error = post(&client).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 429));
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_client_acts_as_whom_its_kubeconfig_names() {
    let (mut config, asked) = server(vec![DONE]).await;
    config.auth_info.impersonate = Some("jane".to_owned());
    config.auth_info.impersonate_groups = Some(vec!["a".to_owned(), "b".to_owned()]);
    post(&transport::connect(&config, &Metrics::new()).unwrap())
        .await
        .unwrap();
    let asked = asked.lock().unwrap();
    for header in ["impersonate-user: jane", "impersonate-group: a", "impersonate-group: b"] {
        assert!(
            asked[0].lines().any(|line| line == header),
            "{header} is not in {}",
            asked[0]
        );
    }
}

/// A proxy that connects to what it is asked for, or refuses. Returns its address and the first line of each request.
async fn proxy(answer: &'static str) -> (http::Uri, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://me:hush@{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = read(&mut stream).await.unwrap();
            kept.lock().unwrap().push(head.clone());
            stream.write_all(answer.as_bytes()).await.unwrap();
            let Some(target) = head.split(' ').nth(1) else { continue };
            let Ok(mut server) = TcpStream::connect(target).await else {
                continue;
            };
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut stream, &mut server).await });
        }
    });
    (address.parse().unwrap(), asked)
}

#[tokio::test]
async fn the_proxy_of_a_kubeconfig_is_asked_to_connect() {
    let (mut config, asked) = server(vec![DONE]).await;
    let (address, connects) = proxy("HTTP/1.1 200 Connection established\r\n\r\n").await;
    config.proxy_url = Some(address);
    post(&transport::connect(&config, &Metrics::new()).unwrap())
        .await
        .unwrap();
    assert_eq!(asked.lock().unwrap().len(), 1, "the server has answered");
    let connects = connects.lock().unwrap();
    let authority = config.cluster_url.authority().unwrap();
    let first = format!("connect {authority} http/1.1\r\n");
    assert!(connects[0].starts_with(&first), "{connects:?}");
    assert!(connects[0].contains("proxy-authorization: basic "), "{connects:?}");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let (mut config, asked) = server(Vec::new()).await;
    let (address, _) = proxy("HTTP/1.1 403 Forbidden\r\n\r\n").await;
    config.proxy_url = Some(address);
    let client = transport::connect(&config, &Metrics::new()).unwrap();
    let error = windlass_http_client::causes(&post(&client).await.unwrap_err());
    assert!(
        error.contains("proxy http://127.0.0.1:") && error.contains("403 Forbidden"),
        "{error}"
    );
    assert!(!error.contains("hush"), "{error}");
    assert!(asked.lock().unwrap().is_empty());
    config.proxy_url = Some("https://127.0.0.1:1".parse().unwrap());
    assert!(transport::connect(&config, &Metrics::new()).is_err());
}
