//! A fake etcd cluster for tests of member management.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Alarm, EtcdError, EtcdMembers, Member, MemberId, MemberList, Status, quorum};

/// The state of a fake etcd cluster.
#[derive(Clone, Debug, Default)]
pub struct FakeState {
    /// Identity of the cluster.
    pub cluster_id: u64,
    /// The member list.
    pub members: Vec<Member>,
    /// The leader.
    pub leader: MemberId,
    /// Active alarms.
    pub alarms: Vec<Alarm>,
    /// Members that do not answer.
    pub down: BTreeSet<MemberId>,
    /// The greatest id that was given.
    last_id: u64,
}

impl FakeState {
    /// The id of another member: as in etcd, none has that of a member that left.
    pub fn next_id(&mut self) -> MemberId {
        let highest = self.members.iter().map(|m| m.id.0).max().unwrap_or(0);
        self.last_id = self.last_id.max(highest) + 1;
        MemberId(self.last_id)
    }
}

/// A fake etcd cluster shared by the endpoints of its members.
#[derive(Clone, Debug, Default)]
pub struct FakeEtcd(Arc<Mutex<FakeState>>);

impl FakeEtcd {
    /// A cluster of started voters with the given names; ids count from one and the first leads.
    pub fn of(names: &[&str]) -> Self {
        let etcd = Self::default();
        etcd.state().cluster_id = 1;
        for name in names {
            etcd.join(name);
        }
        etcd
    }

    /// The state, mutable.
    pub fn state(&self) -> MutexGuard<'_, FakeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a started voter; the first one leads.
    pub fn join(&self, name: &str) -> MemberId {
        let mut state = self.state();
        let id = state.next_id();
        state.members.push(Member {
            id,
            name: name.to_owned(),
            ..Member::default()
        });
        if state.leader == MemberId::default() {
            state.leader = id;
        }
        id
    }

    /// The endpoint of the member with that name.
    pub fn endpoint(&self, name: &str) -> FakeEndpoint {
        FakeEndpoint {
            etcd: self.clone(),
            name: name.to_owned(),
        }
    }
}

/// One member's endpoint of a [`FakeEtcd`].
#[derive(Clone, Debug)]
pub struct FakeEndpoint {
    etcd: FakeEtcd,
    name: String,
}

impl FakeEndpoint {
    fn own_id(&self, call: &'static str) -> Result<MemberId, EtcdError> {
        let state = self.etcd.state();
        let own = state.members.iter().find(|m| m.name == self.name);
        match own.map(|m| m.id) {
            Some(id) if !state.down.contains(&id) => Ok(id),
            _ => Err(EtcdError::Unreachable {
                call,
                reason: format!("member {} is down", self.name),
            }),
        }
    }
}

#[tonic::async_trait]
impl EtcdMembers for FakeEndpoint {
    async fn members(&self) -> Result<MemberList, EtcdError> {
        let answered_by = self.own_id("MemberList")?;
        let state = self.etcd.state();
        Ok(MemberList {
            cluster_id: state.cluster_id,
            answered_by,
            members: state.members.clone(),
        })
    }

    async fn status(&self) -> Result<Status, EtcdError> {
        let member_id = self.own_id("Status")?;
        let state = self.etcd.state();
        Ok(Status {
            cluster_id: state.cluster_id,
            member_id,
            leader: state.leader,
            ..Status::default()
        })
    }

    async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError> {
        self.own_id("Alarm")?;
        Ok(self.etcd.state().alarms.clone())
    }

    async fn move_leader(&self, target: MemberId) -> Result<(), EtcdError> {
        let own = self.own_id("MoveLeader")?;
        let mut state = self.etcd.state();
        if state.leader != own {
            return Err(EtcdError::NotLeader);
        }
        if !state.members.iter().any(|m| m.id == target && !m.learner) {
            return Err(EtcdError::NoSuchMember(target));
        }
        state.leader = target;
        Ok(())
    }

    async fn remove_member(&self, id: MemberId) -> Result<(), EtcdError> {
        self.own_id("MemberRemove")?;
        let mut state = self.etcd.state();
        let Some(leaving) = state.members.iter().find(|m| m.id == id) else {
            return Err(EtcdError::NoSuchMember(id));
        };
        if !leaving.learner {
            let others = state.members.iter().filter(|m| m.id != id && !m.learner);
            let staying = quorum::Staying {
                voters: others.clone().count(),
                started: others.clone().filter(|m| m.is_started()).count(),
                connected: others.filter(|m| m.is_started() && !state.down.contains(&m.id)).count(),
            };
            let may_leave = quorum::may_leave(!state.down.contains(&id), staying);
            may_leave.map_err(|refused| EtcdError::Refused {
                call: "MemberRemove",
                reason: refused.to_string(),
            })?;
        }
        state.members.retain(|m| m.id != id);
        if state.leader == id {
            let votes = |m: &&Member| m.is_started() && !m.learner && !state.down.contains(&m.id);
            state.leader = state.members.iter().find(votes).map(|m| m.id).unwrap_or_default();
        }
        Ok(())
    }
}
