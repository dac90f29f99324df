//! The part of the etcd v3 API that control plane management needs.
//!
//! * [`proto`] holds the generated messages with client and server stubs (the simulated etcd serves the same ones).
//! * [`EtcdMembers`] is what a controller needs of one etcd endpoint; [`GrpcEtcd`] speaks it over a tonic channel.
//! * [`server::EtcdService`] serves one member's side of it.
//! * [`quorum`] says which membership changes are safe.
//! * [`testing`] holds a fake cluster.

mod client;
pub mod quorum;
pub mod server;
pub mod testing;

pub use tonic::async_trait;

pub use client::{Alarm, AlarmKind, EtcdError, EtcdMembers, GrpcEtcd, Member, MemberId, MemberList, Status};

/// Generated messages (`prost`) and stubs (`tonic_prost`) of the gRPC package `etcdserverpb`; `cargo xtask etcd` writes them.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated from proto/etcd.proto"
)]
pub mod proto {
    include!("../proto/etcdserverpb.rs");
}
