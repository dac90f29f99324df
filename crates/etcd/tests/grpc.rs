//! The client against a server made of the generated stubs, over real gRPC without a socket.

#![allow(clippy::unwrap_used, clippy::unnecessary_wraps, reason = "this is a test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::io::DuplexStream;
use tonic::transport::{Endpoint, Uri};
use tonic::{Request, Response, Status};
use windlass_etcd::proto::cluster_server::Cluster;
use windlass_etcd::proto::maintenance_server::Maintenance;
use windlass_etcd::proto::{self, alarm_request::AlarmAction};
use windlass_etcd::server::EtcdService;
use windlass_etcd::{AlarmKind, EtcdError, EtcdMembers, GrpcEtcd, MemberId};

/// Member 1 answers; members 1 to 3 exist and 1 leads.
#[derive(Clone)]
struct Server1(Arc<Mutex<(Vec<u64>, u64)>>);

fn header() -> Option<proto::ResponseHeader> {
    Some(proto::ResponseHeader {
        cluster_id: 77,
        member_id: 1,
        ..Default::default()
    })
}

#[tonic::async_trait]
impl Cluster for Server1 {
    async fn member_add(
        &self,
        _: Request<proto::MemberAddRequest>,
    ) -> Result<Response<proto::MemberAddResponse>, Status> {
        Err(Status::unimplemented("not needed"))
    }
    async fn member_remove(
        &self,
        request: Request<proto::MemberRemoveRequest>,
    ) -> Result<Response<proto::MemberRemoveResponse>, Status> {
        let id = request.into_inner().id;
        let mut state = self.0.lock().unwrap();
        if !state.0.contains(&id) {
            return Err(Status::not_found("etcdserver: member not found"));
        }
        state.0.retain(|m| *m != id);
        Ok(Response::new(proto::MemberRemoveResponse::default()))
    }
    async fn member_update(
        &self,
        _: Request<proto::MemberUpdateRequest>,
    ) -> Result<Response<proto::MemberUpdateResponse>, Status> {
        Err(Status::unimplemented("not needed"))
    }
    async fn member_list(
        &self,
        request: Request<proto::MemberListRequest>,
    ) -> Result<Response<proto::MemberListResponse>, Status> {
        assert!(request.into_inner().linearizable);
        let ids = self.0.lock().unwrap().0.clone();
        let members = ids.iter().map(|id| proto::Member {
            id: *id,
            name: format!("node-{id}"),
            peer_ur_ls: vec![format!("https://10.0.0.{id}:2380")],
            ..Default::default()
        });
        Ok(Response::new(proto::MemberListResponse {
            header: header(),
            members: members.collect(),
        }))
    }
    async fn member_promote(
        &self,
        _: Request<proto::MemberPromoteRequest>,
    ) -> Result<Response<proto::MemberPromoteResponse>, Status> {
        Err(Status::unimplemented("not needed"))
    }
}

#[tonic::async_trait]
impl Maintenance for Server1 {
    async fn alarm(&self, request: Request<proto::AlarmRequest>) -> Result<Response<proto::AlarmResponse>, Status> {
        assert_eq!(request.into_inner().action(), AlarmAction::Get);
        Ok(Response::new(proto::AlarmResponse {
            header: header(),
            alarms: vec![proto::AlarmMember {
                member_id: 2,
                alarm: proto::AlarmType::Nospace.into(),
            }],
        }))
    }
    async fn status(&self, _: Request<proto::StatusRequest>) -> Result<Response<proto::StatusResponse>, Status> {
        Ok(Response::new(proto::StatusResponse {
            header: header(),
            version: "3.6.0".into(),
            leader: self.0.lock().unwrap().1,
            ..Default::default()
        }))
    }
    async fn move_leader(
        &self,
        request: Request<proto::MoveLeaderRequest>,
    ) -> Result<Response<proto::MoveLeaderResponse>, Status> {
        let mut state = self.0.lock().unwrap();
        if state.1 != 1 {
            return Err(Status::failed_precondition("etcdserver: not leader"));
        }
        state.1 = request.into_inner().target_id;
        Ok(Response::new(proto::MoveLeaderResponse::default()))
    }
}

async fn client() -> GrpcEtcd {
    let server = Server1(Arc::new(Mutex::new((vec![1, 2, 3], 1))));
    let (near, far) = tokio::io::duplex(64 * 1024);
    let service = TowerToHyperService::new(EtcdService::new(server));
    let connection =
        hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(far), service);
    tokio::spawn(connection);
    client_over(near).await
}

async fn client_over(near: DuplexStream) -> GrpcEtcd {
    let mut near = Some(TokioIo::new(near));
    let connector = tower::service_fn(move |_: Uri| {
        let stream = near.take().ok_or_else(|| std::io::Error::other("used up"));
        async move { stream }
    });
    let endpoint = Endpoint::from_static("http://etcd");
    GrpcEtcd::new(endpoint.connect_with_connector(connector).await.unwrap())
}

#[tokio::test]
async fn members_status_and_alarms_are_read() {
    let etcd = client().await;
    let list = etcd.members().await.unwrap();
    assert_eq!((list.cluster_id, list.answered_by), (77, MemberId(1)));
    assert_eq!(list.members.len(), 3);
    assert_eq!(list.members[1].name, "node-2");
    assert_eq!(list.members[1].peer_urls, ["https://10.0.0.2:2380"]);
    let status = etcd.status().await.unwrap();
    assert_eq!((status.leader, status.version.as_str()), (MemberId(1), "3.6.0"));
    let alarms = etcd.alarms().await.unwrap();
    assert_eq!((alarms[0].member, alarms[0].kind), (MemberId(2), AlarmKind::NoSpace));
}

#[tokio::test]
async fn leadership_moves_once_and_members_are_removed_once() {
    let etcd = client().await;
    etcd.move_leader(MemberId(2)).await.unwrap();
    let again = etcd.move_leader(MemberId(3)).await.unwrap_err();
    assert!(matches!(again, EtcdError::NotLeader), "{again}");
    etcd.remove_member(MemberId(3)).await.unwrap();
    let again = etcd.remove_member(MemberId(3)).await.unwrap_err();
    assert!(matches!(again, EtcdError::NoSuchMember(MemberId(3))), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_hangs_has_as_long_as_was_chosen() {
    // It takes requests, and answers none.
    let (near, _far) = tokio::io::duplex(64 * 1024);
    let etcd = client_over(near).await;
    let mut waited = Vec::new();
    for etcd in [etcd.clone(), etcd.clone().with_call_timeout(Duration::from_secs(2))] {
        let begin = tokio::time::Instant::now();
        let error = etcd.members().await.unwrap_err();
        assert!(
            matches!(error, EtcdError::Unreachable { call: "MemberList", .. }),
            "{error}"
        );
        waited.push(begin.elapsed().as_secs());
        let begin = tokio::time::Instant::now();
        assert!(!etcd.answers_within(Duration::from_secs(3)).await);
        waited.push(begin.elapsed().as_secs());
    }
    assert_eq!(waited, [15, 3, 2, 2]);
}
