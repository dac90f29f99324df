//! Sends the same requests to the embedded API server and to kube-apiserver, and compares the answers.
//!
//! A case ([`case`]) is a sequence of requests. It is played ([`play`]) against a server ([`target`]). Values that differ by
//! chance are removed from the answers ([`normal`]), and two transcripts are compared ([`differ`]). The answers of kube-apiserver
//! are stored beside the cases ([`recording`]), so that every machine can compare the embedded server with them. With
//! kube-apiserver at hand, the recordings are checked as well. An intended difference is a line, with its reason, in `allow.yaml`
//! ([`allow`]).

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
