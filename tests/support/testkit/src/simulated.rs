//! An API server in memory, without threads, sockets or files: in a runtime with a paused clock, nothing in it waits for real time.

use std::sync::Arc;

use serde_json::Value;
use windlass_apiserver::{ApiServer, Options, UserInfo};
use windlass_controller_runtime::{Metrics, transport};
use windlass_manager::registry::install::Conversion;
use windlass_meta::Clock;
use windlass_store::{Limits, Store};

use crate::server::define_with;

/// An embedded API server that lives as long as its runtime.
#[derive(Debug)]
pub struct Simulated(ApiServer);

impl Simulated {
    /// A server with these definitions. Its time stamps are those of `clock`.
    pub async fn start(definitions: &[Value], clock: impl Clock + 'static) -> Self {
        let mut options = Options::new(Store::memory(Limits::small()));
        options.clock = Arc::new(clock);
        let server = ApiServer::start(options).await.expect("a server in memory starts");
        let simulated = Self(server);
        define_with(&simulated.client(), definitions, Conversion::Webhook).await;
        simulated
    }

    /// An administrator's client.
    pub fn client(&self) -> kube::Client {
        let service = self.0.client_service(UserInfo::admin("kubernetes-admin"));
        transport::in_process(service, &Metrics::new())
    }
}
