//! The planner in a world that misbehaves at random: connections are lost, nodes break, users delete Machines and change their minds,
//! the process ends between any two actions, and clocks jump by months. At every step etcd keeps its quorum, one Machine joins at
//! most, no second one initialises the cluster, and nothing is done to what cannot be seen; at last all is as it should be.

use jiff::SignedDuration;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use windlass_controlplane_kubeadm::plan::{Action, Plan};
use windlass_testkit::seeds::simulate;

use crate::sim::check_rest;
use crate::world::{World, set};

/// Steps of one simulation.
const STEPS: usize = 600;

struct Chaos {
    world: World,
    random: SmallRng,
    /// What happened, for the report of a failure.
    story: Vec<String>,
}

impl Chaos {
    fn new(seed: u64, replicas: i32) -> Self {
        Self {
            world: World::new(replicas),
            random: SmallRng::seed_from_u64(seed),
            story: Vec::new(),
        }
    }

    fn step(&mut self) {
        self.world.now += SignedDuration::from_secs(1);
        match self.random.random_range(0..100) {
            0..42 => self.reconcile(),
            42..82 => self.advance(),
            82..85 => self.lose_connection(),
            85..90 => self.connect(),
            90 => self.restart(),
            91 => self.break_node(),
            92 | 93 => self.find_unhealthy(),
            94 => self.heal(),
            95 => self.delete(),
            96 => self.jump(),
            97 => self.scale(),
            98 => self.upgrade(),
            _ => {}
        }
        self.world.check();
        self.one_joins();
    }

    fn tell(&mut self, what: &str) {
        self.story.push(format!("{} {what}", self.world.now));
    }

    /// One reconcile in two is cut off, as by the end of the process or a refused write.
    fn reconcile(&mut self) {
        let limit = match self.random.random_range(0..2) {
            0 => usize::MAX,
            _ => self.random.random_range(0..6),
        };
        let (members, initialized) = (self.world.members.len(), self.world.control_plane.initialized);
        let seen = self.world.reachable;
        let plan = self.world.reconcile(limit);
        let what = plan.actions.iter().filter(|action| weighs(action));
        let what: Vec<String> = what.map(brief).collect();
        if !what.is_empty() {
            self.tell(&format!("{} of {what:?}", limit.min(plan.actions.len())));
        }
        if members > 0 {
            assert!(!initializes(&plan), "a second Machine initialises: {:#?}", self.story);
        }
        if initialized && !seen {
            let blind = plan.actions.iter().find(|action| action.disruptive());
            assert_eq!(blind, None, "without sight: {:#?}", self.story);
        }
    }

    fn advance(&mut self) {
        if let Some(name) = self.any() {
            self.world.advance(&name);
        }
    }

    fn any(&mut self) -> Option<String> {
        let names: Vec<&String> = self.world.machines.keys().collect();
        let at = self.random.random_range(0..names.len().max(1));
        names.get(at).map(|name| (*name).clone())
    }

    fn lose_connection(&mut self) {
        if self.world.reachable {
            self.tell("the connection is lost");
            self.world.reachable = false;
            self.world.outage = Some((self.world.now, Some(self.world.now)));
        }
    }

    fn connect(&mut self) {
        if !self.world.reachable {
            self.tell("the connection is back");
            self.world.reachable = true;
        }
    }

    /// A new process has not tried a connection yet.
    fn restart(&mut self) {
        if !self.world.reachable {
            self.tell("the manager restarts");
            self.world.outage = None;
        }
    }

    /// Whether each Machine has a healthy member, so that etcd bears the loss of one.
    fn is_whole(&self) -> bool {
        let world = &self.world;
        let whole = |(name, progress): (&String, &u8)| *progress >= 3 && !world.broken.contains(name);
        world.members.len() >= 3
            && world.members.len() == world.machines.len()
            && world.progress.iter().all(whole)
            && world.machines.values().all(|machine| machine.deleted.is_none())
    }

    fn break_node(&mut self) {
        if self.is_whole()
            && let Some(name) = self.any()
        {
            self.tell(&format!("{name} breaks"));
            self.world.broken.push(name);
        }
    }

    /// A MachineHealthCheck marks what is broken.
    fn find_unhealthy(&mut self) {
        for name in self.world.broken.clone() {
            if self.mark(&name, "False") {
                self.tell(&format!("{name} is found unhealthy"));
            }
        }
    }

    fn mark(&mut self, name: &str, healthy: &str) -> bool {
        let now = self.world.now;
        let Some(machine) = self.world.machines.get_mut(name) else {
            return false;
        };
        if healthy == "False" && machine.deleted.is_none() {
            let new = set(
                &mut machine.conditions,
                "HealthCheckSucceeded",
                healthy,
                "UnhealthyNode",
                now,
            );
            let (kind, reason) = ("OwnerRemediated", "WaitingForRemediation");
            return set(&mut machine.conditions, kind, "False", reason, now) || new;
        }
        machine
            .conditions
            .retain(|condition| !["HealthCheckSucceeded", "OwnerRemediated"].contains(&condition.type_.as_str()));
        false
    }

    fn heal(&mut self) {
        for name in std::mem::take(&mut self.world.broken) {
            self.tell(&format!("{name} works again"));
            self.mark(&name, "True");
        }
    }

    /// A user deletes a Machine.
    fn delete(&mut self) {
        if self.is_whole()
            && let Some(name) = self.any()
        {
            let now = self.world.now;
            self.tell(&format!("a user deletes {name}"));
            if let Some(machine) = self.world.machines.get_mut(&name) {
                machine.deleted = Some(now);
            }
        }
    }

    fn jump(&mut self) {
        let days = self.random.random_range(1..90);
        self.tell(&format!("{days} days pass"));
        self.world.now += SignedDuration::from_hours(24 * days);
    }

    fn scale(&mut self) {
        self.world.control_plane.replicas = [1, 3, 5][self.random.random_range(0..3)];
        self.tell(&format!("{} replicas", self.world.control_plane.replicas));
    }

    fn upgrade(&mut self) {
        self.tell("upgrade");
        self.world.control_plane.version = "v1.36.0".into();
        self.world.control_plane.generation += 1;
    }

    fn one_joins(&self) {
        let joins = |(name, progress): &(&String, &u8)| {
            **progress < 2
                && self
                    .world
                    .machines
                    .get(*name)
                    .is_some_and(|machine| machine.deleted.is_none())
        };
        let joining: Vec<_> = self.world.progress.iter().filter(joins).collect();
        assert!(joining.len() <= 1, "{joining:?} join at once: {:#?}", self.story);
    }

    /// All faults end.
    fn settle(&mut self) {
        self.connect();
        self.heal();
        self.world.run();
        let version = self.world.control_plane.version.clone();
        let replicas = usize::try_from(self.world.control_plane.replicas).unwrap_or_default();
        check_rest(&self.world, replicas, &version, &format!("{:#?}", self.story));
        let before = format!("{:?}", self.world);
        self.world.reconcile(usize::MAX);
        assert_eq!(before, format!("{:?}", self.world), "a write at rest");
    }
}

/// The name of an action.
fn brief(action: &Action) -> String {
    let text = format!("{action:?}");
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}

fn weighs(action: &Action) -> bool {
    !matches!(
        action,
        Action::ApplyMachine { .. } | Action::SetMachineConditions { .. }
    )
}

fn initializes(plan: &Plan) -> bool {
    plan.actions.iter().any(|action| match action {
        Action::CreateMachine(new) => new
            .config
            .as_ref()
            .is_some_and(|config| config["spec"]["initConfiguration"].is_object()),
        _ => false,
    })
}

#[test]
fn a_control_plane_survives_whatever_happens_to_its_world() {
    simulate(0..12, 24, |seed| {
        let mut chaos = Chaos::new(seed, [1, 3, 3, 5][(seed % 4) as usize]);
        for _ in 0..STEPS {
            chaos.step();
        }
        chaos.settle();
    });
}
