//! The first Machine, which runs `kubeadm init`.

use super::{Plan, Step, scale_up};
use crate::facts::Facts;

pub(super) fn plan(facts: &Facts, plan: &mut Plan) -> Step {
    // A control plane that was up once and has lost every Machine joins nothing: it starts again, as v1.14 does.
    scale_up::create(facts, &[], false, plan);
    Step::Ended
}
