//! A simulated etcd cluster: the member list, the leader and the alarms, answered per member as etcd answers.
//!
//! No key is stored; the simulated API server keeps its objects elsewhere. Only what control plane management asks is here. As in etcd,
//! a cluster without a quorum has no leader and changes nothing, and one learner at a time may join.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::{Request, Response, Status};
use windlass_etcd::proto::cluster_server::Cluster;
use windlass_etcd::proto::maintenance_server::Maintenance;
use windlass_etcd::proto::{
    AlarmMember, AlarmRequest, AlarmResponse, AlarmType, Member, MemberAddRequest, MemberAddResponse,
    MemberListRequest, MemberListResponse, MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest,
    MemberRemoveResponse, MemberUpdateRequest, MemberUpdateResponse, MoveLeaderRequest, MoveLeaderResponse,
    ResponseHeader, StatusRequest, StatusResponse, alarm_request::AlarmAction,
};
use windlass_etcd::quorum;

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
    most_missing: usize,
    /// It runs elsewhere: machines run without members.
    elsewhere: bool,
}

impl State {
    fn of_name(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    fn voters(&self) -> impl Iterator<Item = &Member> + Clone {
        self.members.iter().filter(|member| !member.is_learner)
    }

    fn runs(&self, member: &Member) -> bool {
        self.running.contains(&member.name)
    }

    /// After each change: notes how many voters are missing, and elects a leader if there is none that runs and a quorum does.
    fn settle(&mut self) {
        let all = self.voters().count();
        let running = self.voters().filter(|member| self.runs(member)).count();
        self.most_missing = self.most_missing.max(all - running);
        let leads = self
            .voters()
            .any(|member| member.id == self.leader && self.runs(member));
        if !quorum::holds(all, running) {
            self.leader = 0;
        } else if !leads {
            let next = self.voters().find(|member| self.runs(member));
            self.leader = next.map_or(0, |member| member.id);
            self.term += 1;
        }
    }
}

/// Why a member does not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JoinError {
    /// There is another learner, as etcd allows one by default.
    #[error("etcdserver: too many learner members in cluster")]
    TooManyLearners,
    /// The others have no quorum.
    #[error("etcdserver: unhealthy cluster")]
    Unhealthy,
}

/// What etcd is like, and was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdState {
    /// The names of the members, and whether they vote and run.
    pub members: BTreeMap<String, bool>,
    /// The name of the leader, if there is one.
    pub leader: Option<String>,
    /// The greatest number of voters that were missing at the same time.
    pub most_missing: usize,
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

    /// The etcd of a cluster that runs elsewhere, of which nothing is here: control plane machines join it without a member.
    pub(crate) fn elsewhere(cluster_id: u64) -> Self {
        let etcd = Self::new(cluster_id);
        etcd.0.lock().elsewhere = true;
        etcd
    }

    /// Whether it runs elsewhere.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.0.lock().elsewhere
    }

    /// Adds a started member with that name, or finds it again; the first one leads. A learner does not vote until it is promoted.
    pub(crate) fn join(&self, name: &str, id: u64, learner: bool) -> Result<(), JoinError> {
        let mut state = self.0.lock();
        if state.of_name(name).is_none() && !state.elsewhere {
            if state.members.iter().any(|member| member.is_learner) {
                return Err(JoinError::TooManyLearners);
            }
            if state.leader == 0 && !state.members.is_empty() {
                return Err(JoinError::Unhealthy);
            }
            state.members.push(Member {
                id,
                name: name.to_owned(),
                peer_ur_ls: vec![format!("https://{name}:2380")],
                client_ur_ls: vec![format!("https://{name}:2379")],
                is_learner: learner,
            });
            state.revision += 1;
        }
        state.running.insert(name.to_owned());
        state.settle();
        Ok(())
    }

    /// A learner becomes a voter.
    pub(crate) fn promote(&self, name: &str) {
        let mut state = self.0.lock();
        for member in &mut state.members {
            member.is_learner &= member.name != name;
        }
        state.settle();
    }

    /// A member stops without leaving first: the others elect a leader and go on listing it.
    pub(crate) fn stop(&self, name: &str) {
        let mut state = self.0.lock();
        state.running.remove(name);
        state.settle();
    }

    /// A member that stopped runs again.
    pub(crate) fn start(&self, name: &str) {
        let mut state = self.0.lock();
        if state.of_name(name).is_some() || state.elsewhere {
            state.running.insert(name.to_owned());
            state.settle();
        }
    }

    /// The machine of a member is switched off for good. A cluster that loses its last running member is gone.
    pub(crate) fn lose(&self, name: &str) {
        self.stop(name);
        let mut state = self.0.lock();
        if state.running.is_empty() {
            state.members.clear();
            state.leader = 0;
        }
    }

    /// A member raises an alarm, or it ends.
    pub(crate) fn alarm(&self, name: &str, alarm: AlarmType, raised: bool) {
        let mut state = self.0.lock();
        let Some(member_id) = state.of_name(name).map(|member| member.id) else {
            return;
        };
        let alarm = AlarmMember {
            member_id,
            alarm: alarm.into(),
        };
        state.alarms.retain(|old| *old != alarm);
        if raised {
            state.alarms.push(alarm);
        }
    }

    /// What it is like, and was.
    pub(crate) fn state(&self) -> EtcdState {
        let state = self.0.lock();
        let well = |member: &Member| (member.name.clone(), !member.is_learner && state.runs(member));
        let mut leaders = state.members.iter().filter(|member| member.id == state.leader);
        EtcdState {
            members: state.members.iter().map(well).collect(),
            leader: leaders.next().map(|member| member.name.clone()),
            most_missing: state.most_missing,
        }
    }

    /// Whether a member with that name runs, or its machine where etcd is elsewhere.
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
        let answer = answer(&mut state, header).map(Response::new);
        state.settle();
        answer
    }

    /// [`Self::with`], for requests that need a quorum.
    fn agreed<T>(
        &self,
        answer: impl FnOnce(&mut State, ResponseHeader) -> Result<T, Status>,
    ) -> Result<Response<T>, Status> {
        self.with(|state, header| {
            if state.leader == 0 {
                return Err(Status::unavailable("etcdserver: no leader"));
            }
            answer(state, header)
        })
    }
}

/// The code that etcd gives a refusal.
fn refused(refused: quorum::Refused) -> Status {
    match refused {
        quorum::Refused::NotEnoughStarted => Status::failed_precondition(refused.to_string()),
        quorum::Refused::Unhealthy => Status::unavailable(refused.to_string()),
    }
}

fn member_not_found() -> Status {
    Status::not_found("etcdserver: member not found")
}

#[tonic::async_trait]
impl Cluster for Endpoint {
    async fn member_add(&self, request: Request<MemberAddRequest>) -> Result<Response<MemberAddResponse>, Status> {
        let request = request.into_inner();
        self.agreed(|state, header| {
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
        self.agreed(|state, header| {
            let leaving = state.members.iter().find(|member| member.id == id);
            let leaving = leaving.ok_or_else(member_not_found)?;
            if !leaving.is_learner {
                let others = state.voters().filter(|member| member.id != id);
                let staying = quorum::Staying {
                    voters: others.clone().count(),
                    started: others.clone().filter(|member| !member.name.is_empty()).count(),
                    connected: others.filter(|member| state.runs(member)).count(),
                };
                quorum::may_leave(state.runs(leaving), staying).map_err(refused)?;
            }
            state.members.retain(|member| member.id != id);
            state.alarms.retain(|alarm| alarm.member_id != id);
            state.revision += 1;
            state.settle();
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
        self.agreed(|state, header| {
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
        self.agreed(|state, header| {
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
        self.agreed(|state, header| {
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

    fn join(etcd: &EtcdCluster, names: &[&str]) {
        for (name, id) in names.iter().zip(1..) {
            etcd.join(name, id, false).unwrap();
        }
    }

    #[tokio::test]
    async fn the_first_member_leads_and_hands_over() {
        let etcd = EtcdCluster::new(7);
        join(&etcd, &["a", "b"]);
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
        join(&etcd, &["a", "b"]);
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
        join(&etcd, &["a", "b", "c"]);
        etcd.stop("a");
        assert!(!etcd.runs("a"));
        assert_eq!(etcd.state().members.len(), 3);
        assert_eq!(leader(&etcd.endpoint("b")).await, 2);
        etcd.stop("b");
        assert_eq!((etcd.state().leader, etcd.state().most_missing), (None, 2));
        let c = etcd.endpoint("c");
        let refused = c.member_list(Request::new(MemberListRequest::default())).await;
        assert_eq!(refused.unwrap_err().message(), "etcdserver: no leader");
        assert_eq!(etcd.join("d", 4, false), Err(JoinError::Unhealthy));
        etcd.start("a");
        assert!(etcd.state().leader.is_some());
        for name in ["a", "b", "c"] {
            etcd.lose(name);
        }
        assert!(etcd.state().members.is_empty());
    }

    #[tokio::test]
    async fn a_learner_has_no_vote_and_keeps_others_out() {
        let etcd = EtcdCluster::new(7);
        join(&etcd, &["a"]);
        etcd.join("b", 2, true).unwrap();
        assert_eq!(etcd.join("c", 3, false), Err(JoinError::TooManyLearners));
        etcd.stop("b");
        assert_eq!(etcd.state().most_missing, 0);
        etcd.start("b");
        etcd.promote("b");
        etcd.join("c", 3, false).unwrap();
        assert!(etcd.state().members.values().all(|votes| *votes));
    }

    #[test]
    fn machines_run_without_members_where_etcd_is_elsewhere() {
        let etcd = EtcdCluster::elsewhere(7);
        join(&etcd, &["a", "b"]);
        etcd.stop("a");
        assert!(!etcd.runs("a") && etcd.runs("b"));
        etcd.start("a");
        assert!(etcd.runs("a"));
        assert_eq!(etcd.state(), EtcdState::default());
    }

    #[test]
    fn joining_twice_lists_once() {
        let etcd = EtcdCluster::new(7);
        join(&etcd, &["a", "a"]);
        assert_eq!(etcd.0.lock().members.len(), 1);
    }
}
