//! Connections to API servers: direct, or through the proxy of a kubeconfig.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use crate::dial::tunnel;
use crate::error::Error;
use crate::proxies::{Proxies, Proxy};
use crate::reach::{Lookup, PROXY, Reach, SERVER, is_tls};
use crate::url::{Scheme, Url};

/// Opens TCP connections to a server. A proxy is asked to connect (`CONNECT`), so that TLS ends at the server.
#[derive(Clone, Debug)]
pub struct Tunnel {
    connector: HttpConnector<Lookup>,
    /// Checks what is connected to: the proxy, if there is one, else the server.
    lookup: Lookup,
    proxy: Option<Arc<Proxy>>,
    /// The addresses that the server may have.
    reach: Reach,
}

impl Tunnel {
    /// Connections to `server`. `proxy` is the one of its kubeconfig, which `kube` fills with `HTTPS_PROXY` when the file has none. The
    /// proxy of the environment is not asked for local servers and those in `NO_PROXY`, the one of a file always. `reach` holds for the
    /// server and for the proxy of a file.
    pub fn new(
        server: &Uri,
        proxy: Option<&Uri>,
        environment: &Proxies,
        reach: Reach,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let proxy = proxy.map(|uri| Proxy::parse(&uri.to_string())).transpose()?;
        let of_file = proxy.as_ref().is_some_and(|proxy| !environment.has(proxy));
        let proxy = match proxy {
            Some(_) if !of_file => environment.route(&Url::parse(&server.to_string())?).cloned(),
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
        let lookup = match &proxy {
            None => Lookup {
                reach: reach.clone(),
                field: SERVER,
                tls: is_tls(server),
            },
            Some(_) => Lookup {
                reach: if of_file { reach.clone() } else { Reach::anywhere() },
                field: PROXY,
                tls: true,
            },
        };
        let mut connector = HttpConnector::new_with_resolver(lookup.clone());
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(timeout);
        Ok(Self {
            connector,
            lookup,
            proxy: proxy.map(Arc::new),
            reach,
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
        let (mut connector, lookup, reach) = (self.connector.clone(), self.lookup.clone(), self.reach.clone());
        let Some(proxy) = self.proxy.clone() else {
            return Box::pin(async move {
                // The connector looks up names only.
                lookup.check_literal(&to)?;
                Ok(connector.call(to).await?)
            });
        };
        Box::pin(async move {
            let failed = |why: String| io::Error::other(format!("proxy {}: {why}", proxy.url.origin()));
            reach.check_behind_proxy(&to)?;
            let address: Uri = proxy.url.origin().parse()?;
            lookup.check_literal(&address)?;
            let opened = connector.call(address).await;
            let mut stream = match opened {
                Ok(stream) => stream.into_inner(),
                Err(error) => match crate::refusal(&error) {
                    Some(refused) => return Err(refused.clone().into()),
                    None => return Err(failed(crate::causes(&error)).into()),
                },
            };
            let url = Url::parse(&to.to_string())?;
            tunnel(&mut stream, &url, &proxy).await.map_err(failed)?;
            Ok(TokioIo::new(stream))
        })
    }
}
