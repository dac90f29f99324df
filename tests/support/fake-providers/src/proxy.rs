//! A proxy on loopback.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// An HTTP proxy with fixed addresses for all hosts; it ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy; with a name and a password it requires them. `hosts` are those of a [`Forge`](crate::Forge).
    pub async fn start(hosts: BTreeMap<String, SocketAddr>, credentials: Option<(&str, &str)>) -> io::Result<Self> {
        let wanted = credentials.map(|(name, password)| {
            let pair = BASE64_STANDARD.encode(format!("{name}:{password}"));
            format!("proxy-authorization: basic {pair}").to_ascii_lowercase()
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let (hosts, wanted, log) = (hosts.clone(), wanted.clone(), Arc::clone(&log));
                // Errors of connections are the concern of both peers.
                connections.spawn(async move { drop(pass_on(stream, &hosts, wanted.as_deref(), &log).await) });
            }
        });
        Ok(Self { address, seen, task })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The first lines of the received requests.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(
    mut stream: TcpStream,
    hosts: &BTreeMap<String, SocketAddr>,
    wanted: Option<&str>,
    log: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let line = text.lines().next().unwrap_or_default().to_owned();
    log.lock().push(line.clone());
    if wanted.is_some_and(|wanted| !text.to_ascii_lowercase().contains(wanted)) {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
        return stream.write_all(refusal).await;
    }
    let tunnels = line.starts_with("CONNECT ");
    let Some(&address) = hosts.get(if tunnels { "*:443" } else { "*:80" }) else {
        return stream
            .write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            .await;
    };
    let mut other = TcpStream::connect(address).await?;
    if tunnels {
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    } else {
        other.write_all(&head).await?;
    }
    tokio::io::copy_bidirectional(&mut stream, &mut other).await?;
    Ok(())
}
