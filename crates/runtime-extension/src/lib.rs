//! Runtime SDK extensions in Rust, for Cluster API v1.14 and Windlass.
//!
//! An extension is an HTTPS server. Cluster API asks it at certain points, the hooks: before a Cluster is deleted, while the templates of
//! a topology are patched, and at others. The extension answers each hook with a handler, an async function from the request of the hook
//! to its response:
//!
//! ```no_run
//! use tokio::net::TcpListener;
//! use windlass_runtime_extension::hooks::Response as _;
//! use windlass_runtime_extension::hooks::lifecycle::{BeforeClusterDelete, BeforeClusterDeleteResponse};
//! use windlass_runtime_extension::{CancellationToken, Extension, Handler, tls};
//!
//! # async fn is_archived(_: &str) -> bool { true }
//! # async fn run(stop: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
//! let handler = Handler::named("wait-for-archive").timeout_seconds(5);
//! let extension = Extension::new().handle(BeforeClusterDelete, handler, |request| async move {
//!     let name = request.cluster.metadata.name.unwrap_or_default();
//!     if is_archived(&name).await {
//!         BeforeClusterDeleteResponse::success()
//!     } else {
//!         BeforeClusterDeleteResponse::blocked(30, "the archive of the Cluster is not complete")
//!     }
//! })?;
//! let listener = TcpListener::bind("0.0.0.0:9443").await?;
//! extension.serve(listener, tls("/certificates")?, stop).await;
//! # Ok(())
//! # }
//! ```
//!
//! # What the crate does
//!
//! - Discovery. Cluster API reads the list of handlers when an ExtensionConfig is reconciled. [`Extension`] makes the answer from its
//!   handlers. [`Extension::handle`] refuses what Cluster API would refuse: bad or repeated names, and timeouts out of range.
//! - HTTP. A call is a POST to the path of the handler. Other requests get 404 or 405, a body that is not the request of the hook gets 400,
//!   and a body of more than 20 MiB gets 413. Cluster API treats each of these answers as an error of the call, shows the text in its log,
//!   and applies the failure policy of the handler.
//! - Time. Cluster API sends its timeout with each call. When it has passed, or when Cluster API has closed the connection, the future
//!   of the handler is dropped.
//! - Panics. A handler that panics answers 500. The message of the panic goes to the log and not to Cluster API.
//! - TLS. [`tls`] reads `tls.crt` and `tls.key` from a folder, as Kubernetes mounts a Secret of cert-manager, and uses renewed files
//!   without a restart. An extension that checks client certificates passes a configuration of its own to [`Extension::serve`].
//! - The end. When the token is cancelled, the server takes no new connections and completes running requests, which takes 30 s at most or the
//!   time of [`Extension::drain`].
//!
//! # What a handler does
//!
//! - It is quick. The reconcile of a Cluster waits for it. Slow work belongs into a task, and the handler blocks until the task is done.
//! - It can be called again at any time, also after a success, for example because a handler of another extension has blocked. The same
//!   request gets the same response.
//! - Its response has a status: [`Response::success`](hooks::Response::success), [`Response::failure`](hooks::Response::failure), or
//!   `blocked` for hooks that can block. A response without a status is sent as it is, and Cluster API treats it as a failure.
//! - Its messages are shown in conditions. They contain no secrets, no times and no counters.
//!
//! # Registration
//!
//! An ExtensionConfig names the Service, or the URL, and the CA certificates. A handler is known as `HANDLER.EXTENSIONCONFIG`, which is how
//! patches of ClusterClasses name it. The folder `examples/runtime-extension` of the repository has a complete extension with manifests.

mod call;
mod certificates;
mod extension;
mod handler;

pub use certificates::{BadCertificate, tls};
pub use extension::Extension;
pub use handler::{BadHandler, FailurePolicy, Handler};

/// For [`Extension::serve`] with a TLS configuration of its own, such as one that asks for client certificates.
pub use rustls;

/// Stops a server.
pub use tokio_util::sync::CancellationToken;

/// The hooks: their requests and responses.
pub use windlass_runtime_hooks as hooks;
