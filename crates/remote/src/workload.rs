//! What is known of a workload cluster.

use jiff::Timestamp;

/// What is known of a workload cluster, or of something in it. "Cannot tell" is not "is not there": a plan has to match on all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload<T> {
    /// Nothing was tried since this process started, or nothing can be tried yet. Nothing is known.
    NotTried(String),
    /// The cluster does not answer. What is in it now is unknown.
    Down(Outage),
    /// The cluster answers, and this was found.
    Up(T),
}

/// Since when, and why, a workload cluster does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The first failure since the last success, as far as this process knows; the last success when nothing has failed since.
    pub since: Timestamp,
    /// The last success, as far as this process knows.
    pub last_success: Option<Timestamp>,
    /// The failure, for people.
    pub why: String,
}

impl<T> Workload<T> {
    /// What was found, when the cluster answers.
    pub fn up(&self) -> Option<&T> {
        match self {
            Self::Up(found) => Some(found),
            Self::NotTried(_) | Self::Down(_) => None,
        }
    }

    /// Why nothing is known, when it is not.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Up(_) => None,
            Self::NotTried(why) | Self::Down(Outage { why, .. }) => Some(why),
        }
    }

    /// Changes what was found.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Workload<U> {
        match self {
            Self::NotTried(why) => Workload::NotTried(why),
            Self::Down(outage) => Workload::Down(outage),
            Self::Up(found) => Workload::Up(f(found)),
        }
    }
}
