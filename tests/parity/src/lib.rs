//! The same requests to the embedded API server and to kube-apiserver, and whether they answer alike.
//!
//! A case ([`case`]) is a sequence of requests. It is played ([`play`]) against a server ([`target`]); what differs by chance is
//! taken out of the answers ([`normal`]), and two of them are compared ([`differ`]). What kube-apiserver answered is kept beside the
//! cases ([`recording`]), so that every machine can hold the embedded server against it; with kube-apiserver at hand the recordings
//! are checked, too. A difference that is meant is a line, with its reason, in `allow.yaml` ([`allow`]).

pub mod allow;
pub mod case;
pub mod differ;
pub mod hooks;
pub mod normal;
mod path;
pub mod play;
pub mod recording;
pub mod run;
pub mod target;
mod vars;
