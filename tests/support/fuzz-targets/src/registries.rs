//! The answers of a registry to the requests for a provider's files, in turn, separated by zero bytes: each a line with its status, lines with
//! headers, an empty line, a body. The first byte of the input says what is asked for.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use windlass_api_operator::ProviderType;
use windlass_http_client::Secret;
use windlass_provider_repository::{
    Client, Credentials, Error, Files, Names, OciCredentials, Repository, Settings, Source,
};

use crate::served::RUNTIME;

/// Most answers of an input.
const ANSWERS: usize = 80;
/// The password of the user, which no error shows.
const PASSWORD: &str = "hidden-from-every-error";
/// The longest message of an error.
const LONGEST: usize = 8 << 10;
/// The artifact without a version, with a tag, and with a digest.
const ADDRESSES: [&str; 3] = [
    "http://registry.test/providers/x",
    "http://registry.test/providers/x:v1.0.0",
    "http://registry.test/providers/x@sha256:0000000000000000000000000000000000000000000000000000000000000000",
];

/// The answers that the registry still has for the current input.
static LEFT: Mutex<VecDeque<Vec<u8>>> = Mutex::new(VecDeque::new());
/// One input at a time has the registry.
static TURN: Mutex<()> = Mutex::new(());
static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let address = RUNTIME.block_on(serve());
    let settings = Settings {
        hosts: [("*".to_owned(), address)].into(),
        ..Settings::default()
    };
    Client::new(settings).expect("a client")
});

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let answers: Vec<&[u8]> = rest.split(|byte| *byte == 0).take(ANSWERS).collect();
    let source = Source::oci(ADDRESSES[usize::from(first % 3)]).expect("an address");
    let secret = |text: &str| Some(Secret::new(text));
    let oci = OciCredentials {
        username: secret("user"),
        password: secret(PASSWORD),
        ..OciCredentials::default()
    };
    let credentials = if first & 4 == 0 {
        Credentials::default()
    } else {
        Credentials {
            oci,
            ..Credentials::default()
        }
    };
    let names = Names::new(ProviderType::Infrastructure, "x");
    let repository = Repository::new(CLIENT.clone(), source, names, credentials).expect("a repository");
    ready(&answers);
    match RUNTIME.block_on(repository.versions()) {
        Ok(versions) => {
            let bytes: usize = versions.iter().map(String::len).sum();
            assert!(!versions.is_empty() && bytes <= data.len() + "v1.0.0".len());
            let again = windlass_provider_repository::candidates(&versions);
            assert_eq!(again.len(), versions.len(), "every version is one");
        }
        Err(error) => check(&error),
    }
    ready(&answers);
    match RUNTIME.block_on(repository.files("v1.0.0")) {
        Ok(files) => came(&files, &answers),
        Err(error) => check(&error),
    }
}

/// What was fetched is what the registry has sent.
fn came(files: &Files, answers: &[&[u8]]) {
    for text in [&files.components, &files.metadata] {
        let sent = answers.iter().any(|answer| answer.ends_with(text.as_bytes()));
        assert!(sent && !text.trim().is_empty(), "{text:?} was not sent");
    }
}

/// What a condition shows of an error.
fn check(error: &Error) {
    let text = error.to_string();
    assert!(
        text.len() <= LONGEST,
        "an error of {} bytes: {}",
        text.len(),
        &text[..text.floor_char_boundary(200)]
    );
    assert!(!text.contains(PASSWORD), "{text}");
    assert!(!error.reason().is_empty());
    let _ = error.retry_after();
}

fn ready(answers: &[&[u8]]) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    *left = answers.iter().map(|answer| answer.to_vec()).collect();
}

/// Starts the registry, which has no TLS and one request for each connection.
async fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // The client may have given up.
                let _ = respond(stream).await;
            });
        }
    });
    address
}

async fn respond(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    while !request.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        request.extend_from_slice(&piece[..read]);
    }
    let next = LEFT.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    stream.write_all(&message(&next.unwrap_or_default())).await?;
    stream.shutdown().await
}

/// An answer as it is sent. Without a valid status it is 404.
fn message(answer: &[u8]) -> Vec<u8> {
    let mut lines = answer.splitn(2, |byte| *byte == b'\n');
    let status = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let status = status.and_then(|line| line.trim().parse::<u16>().ok());
    let status = status.filter(|status| (200..600).contains(status)).unwrap_or(404);
    let mut rest = lines.next().unwrap_or_default();
    let mut headers = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if line.is_empty() {
            break;
        }
        headers.extend_from_slice(line);
        headers.extend_from_slice(b"\r\n");
    }
    let length = rest.len();
    let mut message = format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {length}\r\n").into_bytes();
    message.extend_from_slice(&headers);
    message.extend_from_slice(b"\r\n");
    message.extend_from_slice(rest);
    message
}
