//! Members of etcd that are only read.

use windlass_cluster_cache::ReadOnly;
use windlass_etcd::{Alarm, EtcdError, EtcdMembers, GrpcEtcd, MemberId, MemberList, Status, async_trait};
use windlass_meta::ObjectKey;

/// A member that refuses changes, and remembers them.
pub(super) struct ReadOnlyEtcd {
    pub(super) etcd: GrpcEtcd,
    pub(super) cluster: ObjectKey,
    pub(super) read_only: ReadOnly,
}

impl ReadOnlyEtcd {
    fn refuse(&self, call: &'static str, member: MemberId) -> EtcdError {
        self.read_only.refuse(&self.cluster, format!("etcd {call} {member}"));
        let reason = "nothing is written to workload clusters here".to_owned();
        EtcdError::Refused { call, reason }
    }
}

#[async_trait]
impl EtcdMembers for ReadOnlyEtcd {
    async fn members(&self) -> Result<MemberList, EtcdError> {
        self.etcd.members().await
    }

    async fn status(&self) -> Result<Status, EtcdError> {
        self.etcd.status().await
    }

    async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError> {
        self.etcd.alarms().await
    }

    async fn move_leader(&self, target: MemberId) -> Result<(), EtcdError> {
        Err(self.refuse("MoveLeader", target))
    }

    async fn remove_member(&self, id: MemberId) -> Result<(), EtcdError> {
        Err(self.refuse("MemberRemove", id))
    }
}
