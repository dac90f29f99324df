//! Member management on one etcd endpoint: the trait, and its gRPC implementation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tonic::transport::Channel;
use tonic::{Code, Request, Response};

use crate::proto::cluster_client::ClusterClient;
use crate::proto::maintenance_client::MaintenanceClient;
use crate::proto::{self, alarm_request::AlarmAction};

/// The timeout of a call where no other is chosen.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// The identity of an etcd member, shown in hexadecimal as etcd's own tools do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// One entry of the member list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Identity within the cluster.
    pub id: MemberId,
    /// Name the member was started with (kubeadm: the Node name); empty until it has started.
    pub name: String,
    /// URLs for the other members.
    pub peer_urls: Vec<String>,
    /// URLs for clients; empty until the member has started.
    pub client_urls: Vec<String>,
    /// True while the member has no vote.
    pub learner: bool,
}

impl Member {
    /// Whether the member has started: an added member has no name until then.
    pub fn is_started(&self) -> bool {
        !self.name.is_empty()
    }
}

/// The member list, and the member that answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberList {
    /// Identity of the etcd cluster.
    pub cluster_id: u64,
    /// The member that answered.
    pub answered_by: MemberId,
    /// All members, learners included.
    pub members: Vec<Member>,
}

/// The status of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Identity of the etcd cluster.
    pub cluster_id: u64,
    /// The member that answered.
    pub member_id: MemberId,
    /// The member it follows; zero when there is none.
    pub leader: MemberId,
    /// The version of etcd.
    pub version: String,
    /// True while the member has no vote.
    pub learner: bool,
    /// Errors, alarms included, that the member reports.
    pub errors: Vec<String>,
}

/// The kinds of alarm etcd knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlarmKind {
    /// The space quota is used up: the cluster takes no writes.
    NoSpace,
    /// The data of the member differs from the others'.
    Corrupt,
    /// A kind this program does not know.
    Other(i32),
}

impl fmt::Display for AlarmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSpace => f.write_str("NOSPACE"),
            Self::Corrupt => f.write_str("CORRUPT"),
            Self::Other(number) => write!(f, "{number}"),
        }
    }
}

/// An alarm raised for one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// The member it is about.
    pub member: MemberId,
    /// What is wrong.
    pub kind: AlarmKind,
}

/// A failed call to etcd.
#[derive(Clone, Debug, Error)]
pub enum EtcdError {
    /// No answer: unreachable, or too slow.
    #[error("etcd did not answer {call}: {reason}; check that its pod runs and is ready")]
    Unreachable {
        /// The call that was made.
        call: &'static str,
        /// The transport's error.
        reason: String,
    },
    /// The member named in the call is not in the member list.
    #[error("etcd member {0} is not in the member list")]
    NoSuchMember(MemberId),
    /// Only the leader can move the leadership.
    #[error("the asked etcd member is not the leader")]
    NotLeader,
    /// etcd refused.
    #[error("etcd refused {call}: {reason}")]
    Refused {
        /// The call that was made.
        call: &'static str,
        /// etcd's error.
        reason: String,
    },
}

/// Member management on one etcd endpoint.
#[tonic::async_trait]
pub trait EtcdMembers: Send + Sync {
    /// The member list.
    async fn members(&self) -> Result<MemberList, EtcdError>;
    /// The status of this endpoint's member.
    async fn status(&self) -> Result<Status, EtcdError>;
    /// All active alarms.
    async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError>;
    /// Makes `target` the leader. Only the leader's endpoint can do this.
    async fn move_leader(&self, target: MemberId) -> Result<(), EtcdError>;
    /// Removes a member. A missing member is [`EtcdError::NoSuchMember`].
    async fn remove_member(&self, id: MemberId) -> Result<(), EtcdError>;
}

/// [`EtcdMembers`] over gRPC. Its log has each call at the level debug, and those that fail at the level warn.
#[derive(Clone, Debug)]
pub struct GrpcEtcd {
    cluster: ClusterClient<Channel>,
    maintenance: MaintenanceClient<Channel>,
    timeout: Duration,
    /// What the log calls the member.
    name: Arc<str>,
}

impl GrpcEtcd {
    /// Uses `channel`, which is connected to exactly one member.
    pub fn new(channel: Channel) -> Self {
        Self {
            cluster: ClusterClient::new(channel.clone()),
            maintenance: MaintenanceClient::new(channel),
            timeout: DEFAULT_CALL_TIMEOUT,
            name: Arc::default(),
        }
    }

    /// The same client with a name for the log.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The same client with another timeout of calls.
    #[must_use]
    pub fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether the member answers in time: within `limit` and the timeout of calls. That it does not is no failure for the log, as a
    /// connection that is kept may have ended long ago.
    pub async fn answers_within(&self, limit: Duration) -> bool {
        let mut request = Request::new(proto::StatusRequest {});
        request.set_timeout(limit.min(self.timeout));
        let answer = self.maintenance.clone().status(request).await;
        let failure = answer.as_ref().err().map(tonic::Status::message);
        tracing::debug!(member = &*self.name, failure, "asked etcd whether it answers");
        answer.is_ok()
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        request
    }

    /// The answer to a call. `expected` has the failures that callers know by name: they are no trouble.
    fn answer<T>(
        &self,
        call: &'static str,
        answer: Result<Response<T>, tonic::Status>,
        expected: impl FnOnce(&tonic::Status) -> Option<EtcdError>,
    ) -> Result<T, EtcdError> {
        let member = &*self.name;
        match answer {
            Ok(answer) => {
                tracing::debug!(member, call, "etcd answered");
                Ok(answer.into_inner())
            }
            Err(status) => Err(if let Some(error) = expected(&status) {
                tracing::debug!(member, call, reason = %error, "etcd did not do it");
                error
            } else {
                tracing::warn!(member, call, code = ?status.code(), reason = status.message(), "a call to etcd failed");
                failed(call, &status)
            }),
        }
    }
}

/// For calls whose failures have no names.
fn no_names(_: &tonic::Status) -> Option<EtcdError> {
    None
}

#[tonic::async_trait]
impl EtcdMembers for GrpcEtcd {
    async fn members(&self) -> Result<MemberList, EtcdError> {
        let request = self.request(proto::MemberListRequest { linearizable: true });
        let answer = self.cluster.clone().member_list(request).await;
        let answer = self.answer("MemberList", answer, no_names)?;
        let header = answer.header.unwrap_or_default();
        Ok(MemberList {
            cluster_id: header.cluster_id,
            answered_by: MemberId(header.member_id),
            members: answer.members.into_iter().map(Member::from).collect(),
        })
    }

    async fn status(&self) -> Result<Status, EtcdError> {
        let request = self.request(proto::StatusRequest {});
        let answer = self.maintenance.clone().status(request).await;
        let answer = self.answer("Status", answer, no_names)?;
        let header = answer.header.unwrap_or_default();
        Ok(Status {
            cluster_id: header.cluster_id,
            member_id: MemberId(header.member_id),
            leader: MemberId(answer.leader),
            version: answer.version,
            learner: answer.is_learner,
            errors: answer.errors,
        })
    }

    async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError> {
        let request = self.request(proto::AlarmRequest {
            action: AlarmAction::Get.into(),
            ..Default::default()
        });
        let answer = self.maintenance.clone().alarm(request).await;
        let answer = self.answer("Alarm", answer, no_names)?;
        Ok(answer.alarms.iter().filter_map(alarm).collect())
    }

    async fn move_leader(&self, target: MemberId) -> Result<(), EtcdError> {
        let request = self.request(proto::MoveLeaderRequest { target_id: target.0 });
        let answer = self.maintenance.clone().move_leader(request).await;
        let expected = |status: &tonic::Status| match failed("MoveLeader", status) {
            EtcdError::Refused { reason, .. } if reason.contains("not leader") => Some(EtcdError::NotLeader),
            _ => None,
        };
        self.answer("MoveLeader", answer, expected).map(drop)
    }

    async fn remove_member(&self, id: MemberId) -> Result<(), EtcdError> {
        let request = self.request(proto::MemberRemoveRequest { id: id.0 });
        let answer = self.cluster.clone().member_remove(request).await;
        let expected =
            |status: &tonic::Status| (status.code() == Code::NotFound).then_some(EtcdError::NoSuchMember(id));
        self.answer("MemberRemove", answer, expected).map(drop)
    }
}

impl From<proto::Member> for Member {
    fn from(member: proto::Member) -> Self {
        Self {
            id: MemberId(member.id),
            name: member.name,
            peer_urls: member.peer_ur_ls,
            client_urls: member.client_ur_ls,
            learner: member.is_learner,
        }
    }
}

fn alarm(alarm: &proto::AlarmMember) -> Option<Alarm> {
    let kind = match proto::AlarmType::try_from(alarm.alarm) {
        Ok(proto::AlarmType::None) => return None,
        Ok(proto::AlarmType::Nospace) => AlarmKind::NoSpace,
        Ok(proto::AlarmType::Corrupt) => AlarmKind::Corrupt,
        Err(_) => AlarmKind::Other(alarm.alarm),
    };
    Some(Alarm {
        member: MemberId(alarm.member_id),
        kind,
    })
}

fn failed(call: &'static str, status: &tonic::Status) -> EtcdError {
    let reason = if status.message().is_empty() {
        status.code().description().to_owned()
    } else {
        status.message().to_owned()
    };
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            EtcdError::Unreachable { call, reason }
        }
        _ => EtcdError::Refused { call, reason },
    }
}
