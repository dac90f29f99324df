//! Connections to API servers: direct, or through the proxy of a kubeconfig.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use crate::dial::tunnel;
use crate::error::Error;
use crate::proxies::{Proxies, Proxy};
use crate::url::{Scheme, Url};

/// Opens TCP connections to a server. A proxy is asked to connect (`CONNECT`), so that TLS ends at the server.
#[derive(Clone, Debug)]
pub struct Tunnel {
    connector: HttpConnector,
    proxy: Option<Arc<Proxy>>,
}

impl Tunnel {
    /// Connections to `server`. `proxy` is the one of its kubeconfig, which `kube` fills with `HTTPS_PROXY` when the file has none. The
    /// proxy of the environment is not asked for local servers and those in `NO_PROXY`, the one of a file always.
    pub fn new(
        connector: HttpConnector,
        server: &Uri,
        proxy: Option<&Uri>,
        environment: &Proxies,
    ) -> Result<Self, Error> {
        let proxy = proxy.map(|uri| Proxy::parse(&uri.to_string())).transpose()?;
        let proxy = match proxy {
            Some(proxy) if environment.has(&proxy) => environment.route(&Url::parse(&server.to_string())?).cloned(),
            other => other,
        };
        if let Some(proxy) = &proxy
            && proxy.url.scheme == Scheme::Https
        {
            return Err(Error::invalid_url(
                &proxy.url.origin(),
                "proxies of API servers are http://HOST:PORT; the connection through them has TLS of its own",
            ));
        }
        Ok(Self {
            connector,
            proxy: proxy.map(Arc::new),
        })
    }
}

impl Service<Uri> for Tunnel {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Service::<Uri>::poll_ready(&mut self.connector, context).map_err(BoxError::from)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let mut connector = self.connector.clone();
        let Some(proxy) = self.proxy.clone() else {
            return Box::pin(async move { Ok(connector.call(to).await?) });
        };
        Box::pin(async move {
            let failed = |why: String| io::Error::other(format!("proxy {}: {why}", proxy.url.origin()));
            let address: Uri = proxy.url.origin().parse()?;
            let opened = connector.call(address).await;
            let mut stream = opened.map_err(|error| failed(crate::causes(&error)))?.into_inner();
            let url = Url::parse(&to.to_string())?;
            tunnel(&mut stream, &url, &proxy).await.map_err(failed)?;
            Ok(TokioIo::new(stream))
        })
    }
}
