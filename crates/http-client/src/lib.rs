//! HTTP clients: the one place that configures TLS for them, opens their connections and limits their answers.
//!
//! There are two kinds of clients. [`Client`] opens a connection for each request: it knows proxies and redirects, and has an
//! [`Error`] for each thing that can go wrong, with host and cause. Provider repositories use it. [`Connections`] keeps connections
//! and shares them between requests; clients of API servers and of admission webhooks are built on it. Both use the TLS
//! configuration of [`tls`], with one crypto provider and one set of system CA certificates for the process.
//!
//! What stays with the users of this crate, because each needs it alone: caches and refusals of provider repositories, the queues
//! of requests to API servers (`controller-runtime`), the wording of webhook failures (`apiserver`), and the certificate checks of tunnels to pods
//! (`cluster-cache`). The TLS configuration of a kubeconfig is `kube`'s, which reads it. Servers configure their side of TLS themselves, and
//! clients of servers in this process have no connection at all.

mod client;
mod connections;
mod dial;
mod error;
mod proxies;
mod reach;
mod secret;
pub mod tls;
mod tunnel;
mod url;

pub use client::{Answer, Client, Request, Settings};
pub use connections::{Connections, Dial, DialError, Options, Pool, Target, read_all};
pub use error::{Error, causes, without_credentials};
pub use proxies::Proxies;
pub use reach::{Network, Reach, Refused, refusal};
pub use secret::Secret;
pub use tunnel::Tunnel;
pub use url::{Scheme, Url, encoded};
