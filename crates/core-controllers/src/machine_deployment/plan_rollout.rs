//! The rollout planner: how many replicas each MachineSet of a MachineDeployment should have next.
//!
//! Pure arithmetic over a small view of the world, so that a simulation can run it until it rests. Two promises hold as
//! long as no Machine fails by itself: Machines in existence never exceed `replicas + max_surge`, and available Machines
//! never fall below `replicas - max_unavailable`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_controller_runtime::Note;

use crate::shared::deletion_order::DeletionClass;

/// What the planner needs to know of one Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineView {
    /// The Machine has a deletion timestamp.
    pub(crate) deleting: bool,
    /// The Machine counts as available.
    pub(crate) available: bool,
    /// The Machine is as its set wants it.
    pub(crate) up_to_date: bool,
    /// The Machine is being updated in place.
    pub(crate) updating: bool,
    /// How early the MachineSet would choose it when scaling down.
    pub(crate) class: DeletionClass,
}

/// What the planner needs to know of one MachineSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetView {
    /// Name, the key of the plan.
    pub(crate) name: String,
    /// When it was created; the oldest set gives up its Machines first.
    pub(crate) created: Timestamp,
    /// `spec.replicas`.
    pub(crate) replicas: i32,
    /// The larger of what the set reports and what is seen of it.
    pub(crate) have: i32,
    /// Its Machines, those being deleted included.
    pub(crate) machines: Vec<MachineView>,
    /// Machines that it has too many go to the new set, where they are updated in place.
    pub(crate) moves: bool,
}

impl SetView {
    fn alive(&self) -> impl Iterator<Item = &MachineView> {
        self.machines.iter().filter(|machine| !machine.deleting)
    }

    fn available(&self) -> i32 {
        count(self.alive().filter(|machine| machine.available))
    }

    /// How many available Machines are left for certain once the set has been scaled to `target`: of Machines that the set
    /// may equally well choose, the available ones are taken to go first. A set that gives Machines away passes over those that have no Node
    /// yet, so it may choose any.
    fn surely_available_at(&self, target: i32) -> i32 {
        let mut alive: Vec<_> = self.alive().collect();
        let class = |machine: &MachineView| (!self.moves).then_some(machine.class);
        alive.sort_by_key(|machine| (class(machine), !machine.available));
        let doomed = usize::try_from(count(alive.iter()) - target).unwrap_or(0);
        count(alive.iter().skip(doomed).filter(|machine| machine.available))
    }

    fn has_unavailable(&self) -> bool {
        self.alive().any(|machine| !machine.available)
    }
}

/// The whole of a MachineDeployment as the planner sees it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// `spec.replicas`.
    pub(crate) replicas: i32,
    /// Machines allowed above `replicas`.
    pub(crate) max_surge: i32,
    /// Available Machines that may be missing from `replicas`.
    pub(crate) max_unavailable: i32,
    /// The set that carries the current template; one without replicas when it is only about to be created.
    pub(crate) new: SetView,
    /// All other sets.
    pub(crate) old: Vec<SetView>,
}

/// Desired replicas, by name of the MachineSet, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Targets {
    /// Every set of the world is here.
    pub(crate) replicas: BTreeMap<String, i32>,
    /// What held the rollout up, or what was forced.
    pub(crate) notes: Vec<Note>,
}

impl Targets {
    /// Nothing changes.
    pub(crate) fn keep(world: &World) -> Self {
        let all = world.old.iter().chain([&world.new]);
        Self {
            replicas: all.map(|set| (set.name.clone(), set.replicas)).collect(),
            notes: Vec::new(),
        }
    }

    /// The desired replicas of `set`.
    pub(crate) fn of(&self, set: &SetView) -> i32 {
        self.replicas.get(&set.name).copied().unwrap_or(set.replicas)
    }

    fn put(&mut self, set: &SetView, replicas: i32) {
        self.replicas.insert(set.name.clone(), replicas);
    }

    fn occupied(&self, set: &SetView) -> i32 {
        self.of(set).max(set.have)
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}

fn oldest_first(sets: &[SetView]) -> Vec<&SetView> {
    let mut sorted: Vec<_> = sets.iter().collect();
    sorted.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| a.name.cmp(&b.name)));
    sorted
}

/// The next step of a rolling update.
pub(crate) fn rolling_update(world: &World) -> Targets {
    let mut targets = Targets::keep(world);
    grow_new(world, world.replicas + world.max_surge, &mut targets);
    shrink_old(world, &mut targets);
    save_surge(world, &mut targets);
    // Last, when it is known that nothing else goes on.
    force_one(world, &mut targets);
    targets
}

/// The next step of a rollout in which the user deletes the old Machines.
pub(crate) fn on_delete(world: &World) -> Targets {
    let mut targets = Targets::keep(world);
    for set in &world.old {
        // A Machine that is going away is not to be replaced in its old set.
        targets.put(set, set.replicas.min(count(set.alive())));
    }
    let surplus = world.old.iter().map(|set| targets.of(set)).sum::<i32>() + world.new.replicas - world.replicas;
    let mut surplus = surplus.max(0);
    for set in oldest_first(&world.old) {
        let cut = surplus.min(targets.of(set));
        targets.put(set, targets.of(set) - cut);
        surplus -= cut;
    }
    grow_new(world, world.replicas, &mut targets);
    targets
}

/// Spreads a change of `replicas` over the sets of a MachineDeployment whose rollout is paused.
pub(crate) fn paused(world: &World) -> Targets {
    let mut targets = Targets::keep(world);
    let sets = || world.old.iter().chain([&world.new]);
    let active: Vec<_> = sets().filter(|set| set.replicas > 0).collect();
    let only = match active.as_slice() {
        [] => Some(&world.new),
        [one] => Some(*one),
        _ => None,
    };
    if let Some(set) = only {
        if !set.name.is_empty() {
            targets.put(set, world.replicas);
        }
        return targets;
    }
    let saturated = world.new.replicas == world.replicas && world.new.available() == world.replicas;
    if saturated {
        for set in &world.old {
            targets.put(set, 0);
        }
        return targets;
    }
    let allowed = if world.replicas > 0 {
        world.replicas + world.max_surge
    } else {
        0
    };
    let total: i32 = active.iter().map(|set| set.replicas).sum();
    let (low, high) = (world.replicas, allowed);
    let goal = total.clamp(low, high);
    proportionally(&active, total, goal, &mut targets);
    targets
}

fn proportionally(active: &[&SetView], total: i32, goal: i32, targets: &mut Targets) {
    if total == goal || total == 0 {
        return;
    }
    let mut biggest: Vec<_> = active.to_vec();
    biggest.sort_by(|a, b| b.replicas.cmp(&a.replicas).then_with(|| b.created.cmp(&a.created)));
    let mut left = goal;
    for set in &biggest {
        let share = i64::from(set.replicas) * i64::from(goal) / i64::from(total);
        let share = i32::try_from(share).unwrap_or(0);
        targets.put(set, share);
        left -= share;
    }
    for set in biggest.iter().cycle().take(usize::try_from(left).unwrap_or(0)) {
        targets.put(set, targets.of(set) + 1);
    }
}

fn grow_new(world: &World, ceiling: i32, targets: &mut Targets) {
    let new = &world.new;
    if new.replicas > world.replicas {
        targets.put(new, world.replicas);
        return;
    }
    let occupied: i32 = world.old.iter().chain([new]).map(|set| targets.occupied(set)).sum();
    let grow = (ceiling - occupied).min(world.replicas - new.replicas).max(0);
    targets.put(new, new.replicas + grow);
}

fn shrink_old(world: &World, targets: &mut Targets) {
    let all = || world.old.iter().chain([&world.new]);
    let at_least = world.replicas - world.max_unavailable;
    let surely = |targets: &Targets| -> i32 { all().map(|set| set.surely_available_at(targets.of(set))).sum() };

    // Machines of the new set that are not available yet slow the rollout down: should they never come up, what runs stays.
    let new_target = targets.of(&world.new);
    let new_missing = (new_target - world.new.surely_available_at(new_target)).max(0);
    let total: i32 = all().map(|set| targets.of(set)).sum();
    let mut budget = (total - at_least - new_missing).max(0);
    let mut spare = (surely(targets) - at_least).max(0);

    for set in oldest_first(&world.old) {
        let now = targets.of(set);
        let held = set.surely_available_at(now);
        let mut cut = now.min(budget);
        while cut > 0 && held - set.surely_available_at(now - cut) > spare {
            cut -= 1;
        }
        spare -= held - set.surely_available_at(now - cut);
        budget -= cut;
        targets.put(set, now - cut);
    }
}

/// While Machines are updated in place, new ones are not made beyond the desired number: but one, when nothing else can go on.
fn save_surge(world: &World, targets: &mut Targets) {
    let new = &world.new;
    let growth = targets.of(new) - new.replicas;
    let needed = (growth - world.max_surge).max(0);
    if !world.old.iter().any(|set| set.moves) || growth <= needed {
        return;
    }
    let first = needed == 0 && !goes_on(world, targets);
    let (growth, note) = if first {
        (
            1,
            "one Machine is made beyond the desired number, so that others can be updated in place",
        )
    } else {
        (
            needed,
            "no Machines are made beyond the desired number while others are updated in place",
        )
    };
    targets.put(new, new.replicas + growth);
    targets.notes.push(Note::new(note));
}

/// Whether Machines come, go or are updated: the rollout goes on without another Machine.
fn goes_on(world: &World, targets: &Targets) -> bool {
    let new = &world.new;
    let number = |test: &dyn Fn(&&MachineView) -> bool| count(new.machines.iter().filter(test));
    let shrinks = |set: &SetView| set.replicas < set.have || targets.of(set) < set.replicas;
    let mut all = world.old.iter().chain([new]).flat_map(|set| &set.machines);
    new.replicas != new.have
        || world.old.iter().any(shrinks)
        || all.any(|machine| machine.updating)
        || new.replicas != number(&|machine| machine.up_to_date)
        || new.replicas != number(&|machine| machine.available)
}

/// When the only Machines that are not available are old ones, waiting for them would wait for ever: one goes.
fn force_one(world: &World, targets: &mut Targets) {
    let pending = world
        .old
        .iter()
        .chain([&world.new])
        .any(|set| set.have != targets.of(set));
    if pending || world.new.has_unavailable() {
        return;
    }
    if let Some(set) = oldest_first(&world.old)
        .into_iter()
        .find(|set| set.has_unavailable() && targets.of(set) > 0)
    {
        targets.put(set, targets.of(set) - 1);
        targets.notes.push(Note::new(format!(
            "MachineSet {} is scaled down though availability is short: only old Machines are unavailable",
            set.name
        )));
    }
}

#[cfg(test)]
mod tests;
