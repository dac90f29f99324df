//! A simulated etcd cluster: the member list, the leader and the alarms, answered per member as etcd answers.
//!
//! No key is stored; the simulated API server keeps its objects elsewhere. Only what control plane management asks is here.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::{Request, Response, Status};
use windlass_etcd::proto::cluster_server::Cluster;
use windlass_etcd::proto::maintenance_server::Maintenance;
use windlass_etcd::proto::{
    AlarmMember, AlarmRequest, AlarmResponse, Member, MemberAddRequest, MemberAddResponse, MemberListRequest,
    MemberListResponse, MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse,
    MemberUpdateRequest, MemberUpdateResponse, MoveLeaderRequest, MoveLeaderResponse, ResponseHeader, StatusRequest,
    StatusResponse, alarm_request::AlarmAction,
};

/// The version that simulated members say they run.
const VERSION: &str = "3.6.6";

/// The state of one simulated etcd cluster.
#[derive(Debug, Default)]
struct State {
    cluster_id: u64,
    revision: i64,
    term: u64,
    leader: u64,
    members: Vec<Member>,
    running: BTreeSet<String>,
    alarms: Vec<AlarmMember>,
}

/// A simulated etcd cluster, shared by its members.
#[derive(Clone, Debug, Default)]
pub(crate) struct EtcdCluster(Arc<Mutex<State>>);

impl EtcdCluster {
    /// An empty cluster with that identity.
    pub(crate) fn new(cluster_id: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            cluster_id,
            revision: 1,
            ..State::default()
        })))
    }

    /// Adds a started member with that name, or finds it again; the first one leads.
    pub(crate) fn join(&self, name: &str, id: u64) {
        let mut state = self.0.lock();
        state.running.insert(name.to_owned());
        if state.members.iter().any(|member| member.name == name) {
            return;
        }
        state.members.push(Member {
            id,
            name: name.to_owned(),
            peer_ur_ls: vec![format!("https://{name}:2380")],
            client_ur_ls: vec![format!("https://{name}:2379")],
            is_learner: false,
        });
        state.revision += 1;
        if state.leader == 0 {
            state.leader = id;
            state.term += 1;
        }
    }

    /// A member stops for good without leaving first, as a machine does that is switched off: the others elect a leader and go
    /// on listing it. A cluster that loses its last running member is gone.
    pub(crate) fn lose(&self, name: &str) {
        let mut guard = self.0.lock();
        let state = &mut *guard;
        state.running.remove(name);
        let lost = state
            .members
            .iter()
            .find(|member| member.name == name)
            .map(|member| member.id);
        if lost == Some(state.leader) {
            let next = state.members.iter().find(|member| state.running.contains(&member.name));
            state.leader = next.map_or(0, |member| member.id);
            state.term += 1;
        }
        if state.running.is_empty() {
            state.members.clear();
            state.leader = 0;
        }
    }

    /// Whether a member with that name runs.
    pub(crate) fn runs(&self, name: &str) -> bool {
        self.0.lock().running.contains(name)
    }

    /// The endpoint of one member.
    pub(crate) fn endpoint(&self, name: &str) -> Endpoint {
        Endpoint {
            cluster: self.clone(),
            name: name.to_owned(),
        }
    }
}

/// What one member serves.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    cluster: EtcdCluster,
    name: String,
}

impl Endpoint {
    /// Runs `answer` on the state with the header that etcd puts on every answer; a removed member answers nothing.
    fn with<T>(
        &self,
        answer: impl FnOnce(&mut State, ResponseHeader) -> Result<T, Status>,
    ) -> Result<Response<T>, Status> {
        let mut state = self.cluster.0.lock();
        let own = state
            .members
            .iter()
            .find(|member| member.name == self.name)
            .map(|member| member.id);
        let Some(member_id) = own.filter(|_| state.running.contains(&self.name)) else {
            return Err(Status::unavailable("etcdserver: server stopped"));
        };
        let header = ResponseHeader {
            cluster_id: state.cluster_id,
            member_id,
            revision: state.revision,
            raft_term: state.term,
        };
        answer(&mut state, header).map(Response::new)
    }
}

fn member_not_found() -> Status {
    Status::not_found("etcdserver: member not found")
}

#[tonic::async_trait]
impl Cluster for Endpoint {
    async fn member_add(&self, request: Request<MemberAddRequest>) -> Result<Response<MemberAddResponse>, Status> {
        let request = request.into_inner();
        self.with(|state, header| {
            let id = state.members.iter().map(|member| member.id).max().unwrap_or(0) + 1;
            let member = Member {
                id,
                peer_ur_ls: request.peer_ur_ls,
                is_learner: request.is_learner,
                ..Member::default()
            };
            state.members.push(member.clone());
            state.revision += 1;
            Ok(MemberAddResponse {
                header: Some(header),
                member: Some(member),
                members: state.members.clone(),
            })
        })
    }

    async fn member_remove(
        &self,
        request: Request<MemberRemoveRequest>,
    ) -> Result<Response<MemberRemoveResponse>, Status> {
        let id = request.into_inner().id;
        self.with(|state, header| {
            let before = state.members.len();
            state.members.retain(|member| member.id != id);
            if state.members.len() == before {
                return Err(member_not_found());
            }
            state.alarms.retain(|alarm| alarm.member_id != id);
            state.revision += 1;
            if state.leader == id {
                state.leader = state
                    .members
                    .iter()
                    .find(|member| !member.is_learner)
                    .map_or(0, |member| member.id);
                state.term += 1;
            }
            Ok(MemberRemoveResponse {
                header: Some(header),
                members: state.members.clone(),
            })
        })
    }

    async fn member_update(
        &self,
        request: Request<MemberUpdateRequest>,
    ) -> Result<Response<MemberUpdateResponse>, Status> {
        let request = request.into_inner();
        self.with(|state, header| {
            let member = state
                .members
                .iter_mut()
                .find(|member| member.id == request.id)
                .ok_or_else(member_not_found)?;
            member.peer_ur_ls = request.peer_ur_ls;
            state.revision += 1;
            Ok(MemberUpdateResponse {
                header: Some(header),
                members: state.members.clone(),
            })
        })
    }

    async fn member_list(&self, _: Request<MemberListRequest>) -> Result<Response<MemberListResponse>, Status> {
        self.with(|state, header| {
            Ok(MemberListResponse {
                header: Some(header),
                members: state.members.clone(),
            })
        })
    }

    async fn member_promote(
        &self,
        request: Request<MemberPromoteRequest>,
    ) -> Result<Response<MemberPromoteResponse>, Status> {
        let id = request.into_inner().id;
        self.with(|state, header| {
            let member = state
                .members
                .iter_mut()
                .find(|member| member.id == id)
                .ok_or_else(member_not_found)?;
            if !member.is_learner {
                return Err(Status::failed_precondition(
                    "etcdserver: can only promote a learner member",
                ));
            }
            member.is_learner = false;
            state.revision += 1;
            Ok(MemberPromoteResponse {
                header: Some(header),
                members: state.members.clone(),
            })
        })
    }
}

#[tonic::async_trait]
impl Maintenance for Endpoint {
    async fn alarm(&self, request: Request<AlarmRequest>) -> Result<Response<AlarmResponse>, Status> {
        let request = request.into_inner();
        self.with(|state, header| {
            let asked = AlarmMember {
                member_id: request.member_id,
                alarm: request.alarm,
            };
            let alarms = match request.action() {
                AlarmAction::Get => state.alarms.clone(),
                AlarmAction::Activate => {
                    if !state.alarms.contains(&asked) {
                        state.alarms.push(asked);
                    }
                    vec![asked]
                }
                AlarmAction::Deactivate => {
                    state.alarms.retain(|alarm| *alarm != asked);
                    vec![asked]
                }
            };
            Ok(AlarmResponse {
                header: Some(header),
                alarms,
            })
        })
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        self.with(|state, header| {
            let learner = state
                .members
                .iter()
                .any(|member| member.id == header.member_id && member.is_learner);
            Ok(StatusResponse {
                version: VERSION.to_owned(),
                leader: state.leader,
                raft_index: state.revision.unsigned_abs(),
                raft_applied_index: state.revision.unsigned_abs(),
                raft_term: state.term,
                is_learner: learner,
                header: Some(header),
                ..StatusResponse::default()
            })
        })
    }

    async fn move_leader(&self, request: Request<MoveLeaderRequest>) -> Result<Response<MoveLeaderResponse>, Status> {
        let target = request.into_inner().target_id;
        self.with(|state, header| {
            if header.member_id != state.leader {
                return Err(Status::failed_precondition("etcdserver: not leader"));
            }
            if !state
                .members
                .iter()
                .any(|member| member.id == target && !member.is_learner)
            {
                return Err(Status::failed_precondition("etcdserver: bad leader transferee"));
            }
            state.leader = target;
            state.term += 1;
            Ok(MoveLeaderResponse { header: Some(header) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn leader(endpoint: &Endpoint) -> u64 {
        endpoint
            .status(Request::new(StatusRequest {}))
            .await
            .unwrap()
            .into_inner()
            .leader
    }

    #[tokio::test]
    async fn the_first_member_leads_and_hands_over() {
        let etcd = EtcdCluster::new(7);
        etcd.join("a", 1);
        etcd.join("b", 2);
        let a = etcd.endpoint("a");
        assert_eq!(leader(&a).await, 1);
        a.move_leader(Request::new(MoveLeaderRequest { target_id: 2 }))
            .await
            .unwrap();
        assert_eq!(leader(&a).await, 2);
        let refused = a
            .move_leader(Request::new(MoveLeaderRequest { target_id: 1 }))
            .await
            .unwrap_err();
        assert_eq!(refused.message(), "etcdserver: not leader");
    }

    #[tokio::test]
    async fn a_removed_member_answers_nothing_and_the_rest_elect() {
        let etcd = EtcdCluster::new(7);
        etcd.join("a", 1);
        etcd.join("b", 2);
        let b = etcd.endpoint("b");
        b.member_remove(Request::new(MemberRemoveRequest { id: 1 }))
            .await
            .unwrap();
        assert_eq!(leader(&b).await, 2);
        assert!(etcd.endpoint("a").status(Request::new(StatusRequest {})).await.is_err());
    }

    #[tokio::test]
    async fn a_lost_leader_stays_listed_and_is_replaced() {
        let etcd = EtcdCluster::new(7);
        etcd.join("a", 1);
        etcd.join("b", 2);
        etcd.lose("a");
        assert!(!etcd.runs("a"));
        assert_eq!(etcd.0.lock().members.len(), 2);
        assert_eq!(leader(&etcd.endpoint("b")).await, 2);
        etcd.lose("b");
        assert!(etcd.0.lock().members.is_empty());
    }

    #[test]
    fn joining_twice_lists_once() {
        let etcd = EtcdCluster::new(7);
        etcd.join("a", 1);
        etcd.join("a", 9);
        assert_eq!(etcd.0.lock().members.len(), 1);
    }
}
