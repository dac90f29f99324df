//! Cases of single steps, and a small world in which the planner runs until it rests.

use windlass_testkit::seeds::simulate;

use super::*;

fn machine(available: bool) -> MachineView {
    let class = if available {
        DeletionClass::Ordinary
    } else {
        DeletionClass::Unhealthy
    };
    MachineView {
        deleting: false,
        available,
        up_to_date: available,
        updating: false,
        class,
    }
}

fn set(name: &str, age: i64, replicas: i32, available: usize, unavailable: usize) -> SetView {
    let machines: Vec<_> = std::iter::repeat_n(machine(true), available)
        .chain(std::iter::repeat_n(machine(false), unavailable))
        .collect();
    SetView {
        name: name.to_owned(),
        created: Timestamp::from_second(1_000_000 - age).unwrap(),
        replicas,
        have: i32::try_from(machines.len()).unwrap(),
        machines,
        moves: false,
    }
}

fn world(replicas: i32, max_surge: i32, max_unavailable: i32, new: SetView, old: Vec<SetView>) -> World {
    World {
        replicas,
        max_surge,
        max_unavailable,
        new,
        old,
    }
}

fn check(targets: &Targets, want: &[(&str, i32)]) {
    let want = want
        .iter()
        .map(|(name, replicas)| ((*name).to_owned(), *replicas))
        .collect();
    assert_eq!(targets.replicas, want);
}

#[test]
fn a_first_set_gets_all_replicas_at_once() {
    let w = world(3, 1, 0, set("new", 0, 0, 0, 0), vec![]);
    check(&rolling_update(&w), &[("new", 3)]);
}

#[test]
fn scaling_without_a_rollout_goes_there_directly() {
    let w = world(5, 1, 0, set("new", 0, 3, 3, 0), vec![]);
    check(&rolling_update(&w), &[("new", 5)]);
    let w = world(2, 1, 0, set("new", 0, 5, 5, 0), vec![]);
    check(&rolling_update(&w), &[("new", 2)]);
}

#[test]
fn a_rollout_surges_first_and_shrinks_when_the_new_machine_is_available() {
    let w = world(2, 1, 0, set("new", 0, 0, 0, 0), vec![set("old", 9, 2, 2, 0)]);
    check(&rolling_update(&w), &[("new", 1), ("old", 2)]);
    let w = world(2, 1, 0, set("new", 0, 1, 0, 1), vec![set("old", 9, 2, 2, 0)]);
    check(&rolling_update(&w), &[("new", 1), ("old", 2)]);
    let w = world(2, 1, 0, set("new", 0, 1, 1, 0), vec![set("old", 9, 2, 2, 0)]);
    check(&rolling_update(&w), &[("new", 1), ("old", 1)]);
}

#[test]
fn machines_being_deleted_still_count_against_the_surge() {
    let mut old = set("old", 9, 1, 2, 0);
    old.machines[1].deleting = true;
    let w = world(2, 1, 0, set("new", 0, 1, 1, 0), vec![old]);
    check(&rolling_update(&w), &[("new", 1), ("old", 1)]);
    let w = world(2, 1, 0, set("new", 0, 1, 1, 0), vec![set("old", 9, 1, 1, 0)]);
    check(&rolling_update(&w), &[("new", 2), ("old", 1)]);
}

#[test]
fn max_unavailable_shrinks_before_anything_new_is_there() {
    let w = world(3, 0, 1, set("new", 0, 0, 0, 0), vec![set("old", 9, 3, 3, 0)]);
    check(&rolling_update(&w), &[("new", 0), ("old", 2)]);
}

#[test]
fn the_oldest_set_gives_up_its_machines_first() {
    let w = world(
        3,
        0,
        1,
        set("new", 0, 0, 0, 0),
        vec![set("b", 5, 2, 2, 0), set("a", 9, 1, 1, 0)],
    );
    check(&rolling_update(&w), &[("new", 0), ("a", 0), ("b", 2)]);
}

#[test]
fn an_outage_does_not_take_the_old_machines_away() {
    let w = world(10, 1, 0, set("new", 0, 1, 0, 1), vec![set("old", 9, 10, 0, 10)]);
    check(&rolling_update(&w), &[("new", 1), ("old", 10)]);
}

#[test]
fn old_machines_that_are_not_available_make_room() {
    let w = world(3, 1, 0, set("new", 0, 1, 1, 0), vec![set("old", 9, 3, 2, 1)]);
    check(&rolling_update(&w), &[("new", 1), ("old", 2)]);
}

#[test]
fn a_deadlock_of_old_unavailable_machines_is_broken_one_at_a_time() {
    let mut old = set("old", 9, 3, 2, 1);
    old.machines[2].class = DeletionClass::Ordinary;
    let targets = rolling_update(&world(3, 1, 0, set("new", 0, 1, 1, 0), vec![old]));
    check(&targets, &[("new", 1), ("old", 2)]);
    assert_eq!(targets.notes.len(), 1);
}

#[test]
fn an_update_in_place_that_does_not_end_holds_up_nothing_else() {
    // One Machine of an old set is being updated for ever; the rest of the set can still go.
    let mut stuck = set("stuck", 5, 2, 1, 1);
    stuck.machines[1].updating = true;
    stuck.machines[1].class = DeletionClass::Updating;
    for (surge, replicas) in [(1, 12), (3, 12), (3, 13)] {
        let mut old = vec![set("old", 9, 11, 11, 0), stuck.clone()];
        for set in &mut old {
            set.moves = true;
        }
        let targets = rolling_update(&world(replicas, surge, 0, set("new", 0, 0, 0, 0), old));
        let total: i32 = targets.replicas.values().sum();
        assert_ne!(
            (targets.replicas["stuck"], total),
            (2, 13),
            "{surge} of {replicas}: {targets:?}"
        );
    }
}

#[test]
fn a_pending_scale_down_is_counted_at_its_worst() {
    // One Machine of the old set will still go: nothing else may.
    let w = world(3, 1, 1, set("new", 0, 1, 1, 0), vec![set("old", 9, 1, 3, 0)]);
    check(&rolling_update(&w), &[("new", 1), ("old", 1)]);
}

#[test]
fn on_delete_replaces_what_the_user_deleted() {
    let mut old = set("old", 9, 3, 3, 0);
    let w = world(3, 0, 0, set("new", 0, 0, 0, 0), vec![old.clone()]);
    check(&on_delete(&w), &[("new", 0), ("old", 3)]);
    old.machines[0].deleting = true;
    let w = world(3, 0, 0, set("new", 0, 0, 0, 0), vec![old.clone()]);
    check(&on_delete(&w), &[("new", 0), ("old", 2)]);
    let w = world(3, 0, 0, set("new", 0, 0, 0, 0), vec![set("old", 9, 2, 2, 0)]);
    check(&on_delete(&w), &[("new", 1), ("old", 2)]);
}

#[test]
fn on_delete_scales_old_sets_down_with_the_deployment() {
    let w = world(2, 0, 0, set("new", 0, 1, 1, 0), vec![set("old", 9, 2, 2, 0)]);
    check(&on_delete(&w), &[("new", 1), ("old", 1)]);
}

#[test]
fn a_paused_rollout_scales_in_proportion() {
    let w = world(8, 0, 1, set("new", 0, 1, 1, 0), vec![set("old", 9, 3, 3, 0)]);
    let targets = paused(&w);
    assert_eq!(targets.replicas.values().sum::<i32>(), 8);
    check(&targets, &[("new", 2), ("old", 6)]);
    let w = world(8, 0, 1, set("new", 0, 4, 4, 0), vec![]);
    check(&paused(&w), &[("new", 8)]);
}

/// A linear congruential generator: the seeds of the simulation are all the chance there is.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

/// MachineSets that follow their replicas, and Machines that come up and go away, in an order that the dice choose.
fn step_machines(set: &mut SetView, dice: &mut Dice) -> bool {
    let alive = i32::try_from(set.machines.iter().filter(|m| !m.deleting).count()).unwrap();
    let mut moved = true;
    if alive < set.replicas && dice.roll(2) == 0 {
        set.machines.push(machine(false));
    } else if alive > set.replicas && dice.roll(2) == 0 {
        let candidates = set.machines.iter_mut().filter(|m| !m.deleting);
        let victim = candidates.min_by_key(|m| (m.class, dice.roll(100))).unwrap();
        victim.deleting = true;
        victim.available = false;
    } else if let Some(coming) = set.machines.iter_mut().find(|m| !m.deleting && !m.available) {
        if dice.roll(2) == 0 {
            *coming = machine(true);
        }
    } else if let Some(gone) = set.machines.iter().position(|m| m.deleting) {
        set.machines.remove(gone);
    } else {
        moved = alive != set.replicas;
    }
    set.have = set.replicas.min(0).max(i32::try_from(set.machines.len()).unwrap());
    moved
}

/// What the simulation knows of a Machine that has moved beside what the planner sees.
#[derive(Default)]
struct Moved {
    /// Machines of the new set that are not counted in its replicas yet.
    arrived: i32,
}

/// An old set gives a Machine to the new one, or a Machine of the new one is updated.
fn step_moves(w: &mut World, moved: &mut Moved, dice: &mut Dice) -> bool {
    if let Some(updated) = w.new.machines.iter_mut().find(|m| m.updating)
        && dice.roll(2) == 0
    {
        *updated = machine(true);
        return true;
    }
    let mut any = false;
    for set in w.old.iter_mut().filter(|set| set.moves) {
        let alive = count(set.alive());
        if alive <= set.replicas || dice.roll(2) == 0 {
            continue;
        }
        // Any Machine that is up: those without a Node stay.
        let movable: Vec<usize> = (0..set.machines.len())
            .filter(|i| !set.machines[*i].deleting && set.machines[*i].available)
            .collect();
        if movable.is_empty() {
            continue;
        }
        set.machines.remove(movable[dice.roll(movable.len())]);
        set.have = count(set.machines.iter());
        w.new.machines.push(MachineView {
            updating: true,
            class: DeletionClass::Updating,
            ..machine(false)
        });
        w.new.have += 1;
        moved.arrived += 1;
        any = true;
    }
    any
}

/// A rollout in which the Machines of some sets are updated in place. Returns how many were made.
fn roll_out_in_place(mut w: World, seed: u64) -> usize {
    let mut dice = Dice(seed);
    let mut moved = Moved::default();
    let mut made = 0;
    for _ in 0..5000 {
        // The planner counts what has arrived, and writes replicas and count together.
        w.new.replicas += std::mem::take(&mut moved.arrived);
        let complete = w.new.replicas >= w.replicas;
        let mut planned = w.clone();
        for set in &mut planned.old {
            set.moves = set.moves && !complete && set.have > 0;
        }
        let targets = rolling_update(&planned);
        let mut changed = false;
        for (set, planned) in w.old.iter_mut().zip(&planned.old) {
            let target = targets.replicas[&set.name];
            changed |= set.replicas != target;
            if dice.roll(3) > 0 {
                set.replicas = target;
                set.moves = planned.moves;
            }
        }
        changed |= w.new.replicas != targets.replicas["new"];
        w.new.replicas = targets.replicas["new"];
        let all_move: Vec<bool> = w.old.iter().map(|set| set.moves).collect();
        changed |= step_moves(&mut w, &mut moved, &mut dice);
        for (set, moves) in w.old.iter_mut().zip(all_move) {
            if !moves {
                changed |= step_machines(set, &mut dice);
            }
        }
        let before = w.new.machines.len();
        // What has arrived is no surplus.
        w.new.replicas += moved.arrived;
        changed |= step_machines(&mut w.new, &mut dice);
        w.new.replicas -= moved.arrived;
        made += w.new.machines.len().saturating_sub(before);
        for set in &mut w.old {
            set.moves = true;
        }
        invariants(&w, seed);
        if !changed && w.old.iter().all(|set| set.have == 0) {
            assert_eq!(w.new.available(), w.replicas, "seed {seed}");
            return made;
        }
    }
    panic!("seed {seed}: the rollout did not come to rest: {w:?}");
}

#[test]
fn rollouts_in_place_end_within_the_same_limits_and_make_one_machine_at_most() {
    simulate(0..300, 300, |seed| {
        let mut dice = Dice(seed ^ 0xfeed);
        let replicas = 1 + dice.roll(9);
        let (surge, unavailable) = [(1, 0), (0, 1), (1, 1), (3, 0), (2, 2)][dice.roll(5)];
        let first = dice.roll(replicas + 1);
        let as_i32 = |n: usize| i32::try_from(n).unwrap();
        let mut old = vec![
            set("a", 9, as_i32(first), first, 0),
            set("b", 5, as_i32(replicas - first), replicas - first, 0),
        ];
        for set in &mut old {
            set.moves = true;
        }
        let made = roll_out_in_place(
            world(as_i32(replicas), surge, unavailable, set("new", 0, 0, 0, 0), old),
            seed,
        );
        assert!(made <= 1, "seed {seed}: {made} Machines were made");
    });
}

fn invariants(w: &World, seed: u64) {
    let all = || w.old.iter().chain([&w.new]);
    let have: i32 = all().map(|set| set.have).sum();
    let available: i32 = all().map(SetView::available).sum();
    assert!(have <= w.replicas + w.max_surge, "seed {seed}: {have} Machines: {w:?}");
    assert!(
        available >= w.replicas - w.max_unavailable,
        "seed {seed}: {available} available: {w:?}"
    );
}

fn roll_out(mut w: World, seed: u64) {
    let mut dice = Dice(seed);
    for _ in 0..5000 {
        let targets = rolling_update(&w);
        let mut moved = false;
        for set in w.old.iter_mut().chain([&mut w.new]) {
            let target = targets.replicas[&set.name];
            // A set may learn late of what is asked of it.
            if set.replicas != target {
                moved = true;
                if dice.roll(3) > 0 {
                    set.replicas = target;
                }
            }
        }
        let mut order: Vec<usize> = (0..=w.old.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, dice.roll(i + 1));
        }
        for i in order {
            let set = if i == w.old.len() { &mut w.new } else { &mut w.old[i] };
            moved |= step_machines(set, &mut dice);
        }
        invariants(&w, seed);
        if !moved && w.old.iter().all(|set| set.have == 0) {
            assert_eq!(w.new.available(), w.replicas, "seed {seed}");
            return;
        }
    }
    panic!("seed {seed}: the rollout did not come to rest: {w:?}");
}

#[test]
fn every_rollout_ends_and_never_surges_or_starves_beyond_its_limits() {
    simulate(0..300, 300, |seed| {
        let mut dice = Dice(seed ^ 0xabcd);
        let replicas = 1 + dice.roll(9);
        let (surge, unavailable) = [(1, 0), (0, 1), (1, 1), (3, 0), (2, 2)][dice.roll(5)];
        let first = dice.roll(replicas + 1);
        let as_i32 = |n: usize| i32::try_from(n).unwrap();
        let old = vec![
            set("a", 9, as_i32(first), first, 0),
            set("b", 5, as_i32(replicas - first), replicas - first, 0),
        ];
        roll_out(
            world(as_i32(replicas), surge, unavailable, set("new", 0, 0, 0, 0), old),
            seed,
        );
    });
}
