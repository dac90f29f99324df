//! The part of the etcd v3 API for control plane management.
//!
//! * [`proto`] has the generated messages with client and server stubs (the simulated etcd uses the same ones).
//! * [`EtcdMembers`] is a controller's interface to one etcd endpoint; [`GrpcEtcd`] implements it over a tonic channel.
//! * [`server::EtcdService`] serves the API of one member.
//! * [`quorum`] computes which membership changes are safe.
//! * [`testing`] has a fake cluster.

mod client;
pub mod quorum;
pub mod server;
pub mod testing;

pub use tonic::async_trait;

pub use client::{
    Alarm, AlarmKind, DEFAULT_CALL_TIMEOUT, EtcdError, EtcdMembers, GrpcEtcd, Member, MemberId, MemberList, Status,
};

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
