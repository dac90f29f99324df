use proptest::prelude::*;

use super::*;

const OLD: &str = "class-old";
const NEW: &str = "class-new";

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn stage(name: &str, size: Size, soak: i64) -> Stage {
    Stage {
        name: name.to_owned(),
        size,
        soak: SignedDuration::from_secs(soak),
    }
}

fn settings(stages: &[Stage]) -> Settings {
    Settings {
        stages: stages.to_vec(),
        deadline: SignedDuration::from_secs(100),
        most_unhealthy: 0,
        paused: None,
        abort: None,
    }
}

fn member(name: &str, stage: usize) -> Member {
    Member {
        key: ObjectKey::new("n", name),
        stage,
        revision: Has::This(OLD.to_owned()),
        is_new: false,
        is_younger: false,
        is_paused: false,
        is_stuck: false,
        health: Ok(()),
    }
}

/// A class, its Clusters, and what a controller remembers of them.
struct World {
    settings: Settings,
    target: &'static str,
    before: Before,
    members: Vec<Member>,
    now: i64,
}

impl World {
    fn new(settings: Settings, members: Vec<Member>) -> Self {
        Self {
            settings,
            target: NEW,
            before: Before {
                current: Some(OLD.to_owned()),
                current_exists: true,
                ..Before::default()
            },
            members,
            now: 0,
        }
    }

    /// One pass. What gets a revision is not healthy for the moment.
    fn pass(&mut self) -> (State, Vec<String>) {
        self.pass_and(false)
    }

    /// A wave that is only noted begins with the next pass, which the changed status brings at once.
    fn pass_and(&mut self, resumes: bool) -> (State, Vec<String>) {
        let wave = |before: &Before| before.wave.as_ref().map(|wave| (wave.number, wave.revision.clone()));
        let before = wave(&self.before);
        let (state, moved) = self.one_pass(resumes, true);
        if wave(&self.before) != before && moved.is_empty() {
            return self.one_pass(resumes, true);
        }
        (state, moved)
    }

    /// One pass of a process, which lives until the status is written or not.
    fn one_pass(&mut self, resumes: bool, lives: bool) -> (State, Vec<String>) {
        let now = Moment::at(time(self.now));
        let decision = decide(&self.settings, self.target, &self.before, &self.members, resumes, &now);
        for one in &decision.assignments {
            let member = self
                .members
                .iter_mut()
                .find(|member| member.key == one.cluster)
                .unwrap();
            member.revision = Has::This(one.revision.clone());
            member.health = Err("it rolls out".to_owned());
        }
        if lives {
            self.before = Before {
                current: Some(decision.current),
                current_exists: true,
                wave: decision.wave,
                failure: decision.failure,
            };
        }
        let moved = decision.assignments.into_iter().map(|one| one.cluster.name);
        (decision.state, moved.collect())
    }

    /// All are healthy, and have been for as long as is always waited.
    fn all_are_healthy(&mut self) {
        for member in &mut self.members {
            member.health = Ok(());
        }
        self.settles();
    }

    fn settles(&mut self) {
        self.pass();
        self.now += 2;
    }

    fn cluster(&mut self, name: &str) -> &mut Member {
        self.members.iter_mut().find(|member| member.key.name == name).unwrap()
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// A canary in a stage of its own, and four others, two at a time.
fn five() -> World {
    let stages = [
        stage("canary", Size::Count(5), 10),
        stage("others", Size::Percent(50), 0),
    ];
    let others = ["d", "b", "c", "e"].map(|name| member(name, 1));
    let members = others.into_iter().chain([member("z", 0)]).collect();
    World::new(settings(&stages), members)
}

#[test]
fn waves_follow_each_other_when_all_are_healthy_and_have_soaked() {
    let mut world = five();
    assert_eq!(world.pass(), (State::InProgress, names(&["z"])));
    assert_eq!(world.pass(), (State::InProgress, names(&[])));
    world.now = 5;
    world.all_are_healthy();
    assert_eq!(world.pass(), (State::Soaking, names(&[])));
    world.now = 14;
    assert_eq!(world.pass().0, State::Soaking);
    world.now = 15;
    assert_eq!(world.pass(), (State::InProgress, names(&["b", "c"])));
    world.all_are_healthy();
    assert_eq!(world.pass(), (State::InProgress, names(&["d", "e"])));
    assert_eq!(world.before.wave.as_ref().unwrap().number, 3);
    assert_eq!(world.before.current.as_deref(), Some(OLD));
    world.all_are_healthy();
    assert_eq!(world.pass(), (State::Complete, names(&[])));
    assert_eq!(world.before.current.as_deref(), Some(NEW));
    // What happens afterwards is no matter of the rollout.
    world.cluster("b").health = Err("it is broken".to_owned());
    assert_eq!(world.pass(), (State::Complete, names(&[])));
}

#[test]
fn health_that_is_lost_while_soaking_starts_the_time_again() {
    let mut world = five();
    world.pass();
    world.all_are_healthy();
    assert_eq!(world.pass().0, State::Soaking);
    world.now = 9;
    world.cluster("z").health = Err("it is broken".to_owned());
    assert_eq!(world.pass().0, State::InProgress);
    world.now = 20;
    world.all_are_healthy();
    assert_eq!(world.pass().0, State::Soaking);
    world.now = 29;
    assert_eq!(world.pass().0, State::Soaking);
    world.now = 30;
    assert_eq!(world.pass().1, names(&["b", "c"]));
}

#[test]
fn every_rule_of_time_is_scheduled() {
    let mut world = five();
    world.pass();
    world.pass();
    let deadline = |world: &World| {
        let now = Moment::at(time(world.now));
        decide(&world.settings, NEW, &world.before, &world.members, false, &now);
        now.next_deadline()
    };
    assert_eq!(deadline(&world), Some(time(100)));
    world.cluster("z").health = Ok(());
    world.now = 3;
    world.pass();
    assert_eq!(deadline(&world), Some(time(5)));
    world.now = 5;
    world.pass();
    assert_eq!(deadline(&world), Some(time(13)));
}

#[test]
fn a_cluster_that_is_not_healthy_in_time_stops_it_until_a_user_goes_on() {
    let mut world = five();
    world.pass();
    world.pass();
    world.now = 99;
    assert_eq!(world.pass().0, State::InProgress);
    world.now = 100;
    assert_eq!(world.pass(), (State::Failed, names(&[])));
    let failure = world.before.failure.clone().unwrap();
    assert_eq!(failure.clusters, [ObjectKey::new("n", "z")].into());
    // It has recovered, but a user decides.
    world.all_are_healthy();
    assert_eq!(world.pass(), (State::Failed, names(&[])));
    assert_eq!(world.pass_and(true).0, State::InProgress);
    world.now = 112;
    assert_eq!(world.pass().1, names(&["b", "c"]));
    // The deadline begins again when a user goes on while they are still broken.
    world.pass();
    world.now = 212;
    assert_eq!(world.pass().0, State::Failed);
    assert_eq!(world.pass_and(true).0, State::InProgress);
    world.now = 311;
    assert_eq!(world.pass().0, State::InProgress);
    world.now = 312;
    assert_eq!(world.pass().0, State::Failed);
}

#[test]
fn clusters_that_take_turns_in_being_unhealthy_fail_nothing() {
    let mut world = five();
    world.settings.stages[0].soak = SignedDuration::ZERO;
    world.pass();
    world.all_are_healthy();
    world.pass();
    for turn in 0..60 {
        let (broken, well) = if turn % 2 == 0 { ("b", "c") } else { ("c", "b") };
        world.cluster(broken).health = Err("it is broken".to_owned());
        world.cluster(well).health = Ok(());
        world.now += 10;
        assert_eq!(world.pass().0, State::InProgress, "{turn}");
    }
    world.now += 99;
    assert_eq!(world.pass().0, State::InProgress);
    world.now += 1;
    assert_eq!(world.pass().0, State::Failed);
    assert_eq!(
        world.before.failure.clone().unwrap().clusters,
        [ObjectKey::new("n", "c")].into()
    );
}

#[test]
fn so_many_may_stay_unhealthy() {
    let mut world = five();
    world.settings.most_unhealthy = 1;
    world.pass();
    world.pass();
    world.now = 100;
    world.settles();
    assert_eq!(world.pass().0, State::Soaking);
    world.now = 110;
    assert_eq!(world.pass().1, names(&["b", "c"]));
    world.cluster("b").health = Ok(());
    world.pass();
    world.now = 209;
    assert_eq!(world.pass().0, State::InProgress);
    world.now = 210;
    assert_eq!(world.pass().0, State::Failed);
    assert_eq!(world.before.failure.as_ref().unwrap().clusters.len(), 2);
    // The first one alone is no reason to wait for a wave that is healthy.
    world.before.failure = None;
    world.cluster("c").health = Ok(());
    world.settles();
    assert_eq!(world.pass().1, names(&["d", "e"]));
}

#[test]
fn a_newer_revision_goes_to_all_and_first_to_those_of_the_first_stage() {
    let mut world = five();
    world.pass();
    world.pass();
    world.now = 100;
    assert_eq!(world.pass().0, State::Failed);
    // The remedy is for Clusters that are broken.
    world.target = "class-mended";
    assert_eq!(world.pass(), (State::InProgress, names(&["z"])));
    assert_eq!(world.before.failure, None);
    assert_eq!(world.before.current.as_deref(), Some(OLD));
}

#[test]
fn a_class_that_is_changed_back_brings_back_those_that_were_changed() {
    let mut world = five();
    world.pass();
    world.cluster("c").health = Err("it was broken before".to_owned());
    world.target = OLD;
    assert_eq!(world.pass(), (State::InProgress, names(&["z"])));
    assert_eq!(world.pass().0, State::InProgress);
    world.cluster("z").health = Ok(());
    world.settles();
    assert_eq!(world.pass(), (State::Complete, names(&[])));
}

#[test]
fn a_pause_begins_nothing_and_its_time_does_not_count() {
    let mut world = five();
    world.pass();
    world.settings.paused = Some("spec.paused is set".to_owned());
    world.now = 500;
    assert_eq!(world.pass(), (State::Paused, names(&[])));
    world.settings.paused = None;
    assert_eq!(world.pass().0, State::InProgress);
    world.all_are_healthy();
    assert_eq!(world.pass().0, State::Soaking);
    world.settings.paused = Some("spec.paused is set".to_owned());
    world.now = 520;
    assert_eq!(world.pass(), (State::Paused, names(&[])));
    // What happened meanwhile is not known, so the soak time begins again.
    world.settings.paused = None;
    world.settles();
    assert_eq!(world.pass().0, State::Soaking);
    world.now = 530;
    assert_eq!(world.pass().1, names(&["b", "c"]));
}

#[test]
fn an_abort_leaves_the_rest_and_brings_back_what_went_by_choice() {
    let mut world = five();
    world.pass();
    world.all_are_healthy();
    world.now = 60;
    assert_eq!(world.pass().1, names(&["b", "c"]));
    let abort = |revision: &str, goes_back| Abort {
        revision: revision.to_owned(),
        goes_back,
    };
    world.settings.abort = Some(abort(NEW, false));
    assert_eq!(world.pass(), (State::Aborted, names(&[])));
    world.settings.abort = Some(abort(NEW, true));
    assert_eq!(world.pass(), (State::GoingBack, names(&["z"])));
    // Its deadline stops nothing: the way back is the remedy.
    world.pass();
    world.now = 160;
    world.settles();
    assert_eq!(world.pass(), (State::GoingBack, names(&["b", "c"])));
    world.all_are_healthy();
    assert_eq!(world.pass(), (State::Aborted, names(&[])));
    assert!(world.members.iter().all(|member| member.has(OLD)));
    // New Clusters get what the others have.
    let fresh = Member {
        revision: Has::None(None),
        is_new: true,
        is_younger: true,
        ..member("fresh", 1)
    };
    world.members.push(fresh);
    assert_eq!(world.pass(), (State::Aborted, names(&["fresh"])));
    assert!(world.cluster("fresh").has(OLD));
    // An abort of one revision has no effect on the next.
    world.all_are_healthy();
    world.target = "class-next";
    assert_eq!(world.pass(), (State::InProgress, names(&["z"])));
}

#[test]
fn a_process_that_dies_on_the_way_back_begins_no_second_wave() {
    let mut world = five();
    for name in ["z", "b", "c", "d"] {
        world.cluster(name).revision = Has::This(NEW.to_owned());
    }
    // One that never had the newer revision is not healthy for other reasons, and holds up nothing.
    world.cluster("e").health = Err("it was so before".to_owned());
    world.settings.abort = Some(Abort {
        revision: NEW.to_owned(),
        goes_back: true,
    });
    let moved = |world: &World| world.members.iter().filter(|member| member.has(OLD)).count() - 1;
    for lives in [false, true, false] {
        world.one_pass(false, lives);
    }
    assert_eq!(moved(&world), 1, "the wave of the canary");
    for _ in 0..5 {
        world.one_pass(false, true);
        assert_eq!(moved(&world), 1, "it waits for the wave that has begun");
    }
    // Also when nothing is left of the status.
    world.before = Before::default();
    for _ in 0..5 {
        world.one_pass(false, true);
        assert_eq!(moved(&world), 1, "it waits for what is not healthy");
    }
    world.cluster("z").health = Ok(());
    world.now = 100;
    world.pass();
    world.now = 102;
    assert_eq!(world.pass(), (State::GoingBack, names(&["b", "c"])));
}

#[test]
fn the_end_of_the_way_back_is_known() {
    let mut world = five();
    world.cluster("z").revision = Has::This(NEW.to_owned());
    world.settings.abort = Some(Abort {
        revision: NEW.to_owned(),
        goes_back: true,
    });
    assert_eq!(world.pass(), (State::GoingBack, names(&["z"])));
    world.all_are_healthy();
    let now = Moment::at(time(world.now));
    let decision = decide(&world.settings, NEW, &world.before, &world.members, false, &now);
    assert_eq!((decision.state, decision.is_back), (State::Aborted, true));
}

#[test]
fn an_abort_without_a_revision_to_go_back_to_leaves_clusters_alone() {
    let mut world = five();
    world.pass();
    world.settings.abort = Some(Abort {
        revision: NEW.to_owned(),
        goes_back: true,
    });
    world.before.current_exists = false;
    let now = Moment::at(time(0));
    let decision = decide(&world.settings, NEW, &world.before, &world.members, false, &now);
    assert_eq!((decision.state, decision.assignments.len()), (State::Aborted, 0));
    assert!(
        decision.message.contains("does not exist any more"),
        "{}",
        decision.message
    );
}

#[test]
fn clusters_without_a_revision_do_not_jump_the_queue() {
    let mut world = five();
    world.cluster("d").revision = Has::None(None);
    let fresh = Member {
        revision: Has::None(None),
        is_new: true,
        is_younger: true,
        health: Err("it comes up".to_owned()),
        ..member("fresh", 1)
    };
    world.members.push(fresh);
    assert_eq!(world.pass(), (State::InProgress, names(&["d", "fresh", "z"])));
    assert!(world.cluster("d").has(OLD) && world.cluster("fresh").has(NEW));
    // One that comes up for the first time holds nothing up.
    world.cluster("z").health = Ok(());
    world.cluster("d").health = Ok(());
    world.pass();
    world.now = 10;
    assert_eq!(world.pass().1, names(&["b", "c", "d"]));
    // One that lost its annotation keeps what its objects have.
    world.cluster("z").revision = Has::None(Some(NEW.to_owned()));
    assert_eq!(world.pass().1, names(&["z"]));
    assert!(world.cluster("z").has(NEW));
}

#[test]
fn a_lost_revision_moves_no_cluster_before_its_wave() {
    let lost = || {
        let mut world = five();
        for member in &mut world.members {
            member.revision = Has::Lost;
        }
        world
    };
    for known in [Some(OLD.to_owned()), None] {
        let mut world = lost();
        let before = Before {
            current: known,
            ..Before::default()
        };
        world.before = before.clone();
        world.settings.paused = Some("spec.paused is set".to_owned());
        assert_eq!(world.pass(), (State::Paused, names(&[])));
        world.before = before;
        world.settings.paused = None;
        assert_eq!(world.pass(), (State::InProgress, names(&["z"])));
    }
    // One that names none cannot be told from them.
    let mut world = lost();
    world.cluster("b").revision = Has::None(None);
    world.before = Before {
        current: Some(OLD.to_owned()),
        ..Before::default()
    };
    assert_eq!(world.pass(), (State::Held, names(&[])));
}

#[test]
fn a_cluster_that_its_own_revision_cannot_reconcile_gets_the_newest() {
    let mut world = five();
    let stuck = world.cluster("z");
    stuck.health = Err("its class does not exist".to_owned());
    stuck.is_stuck = true;
    assert_eq!(world.pass().1, names(&["z"]));
}

#[test]
fn the_first_rollout_takes_what_is_there() {
    let mut world = five();
    world.before = Before::default();
    for member in &mut world.members {
        member.revision = Has::None(None);
    }
    assert_eq!(world.pass().0, State::Complete);
    assert!(world.members.iter().all(|member| member.has(NEW)));
    assert_eq!(world.before.current.as_deref(), Some(NEW));
}

#[test]
fn a_status_that_is_lost_is_found_again() {
    let mut world = five();
    world.pass();
    world.before = Before::default();
    assert_eq!(world.pass(), (State::InProgress, names(&[])));
    assert_eq!(world.before.current.as_deref(), Some(OLD));
    let wave = world.before.wave.clone().unwrap();
    assert_eq!((wave.number, wave.stage.as_str()), (1, "canary"));
    world.before = Before::default();
    world.all_are_healthy();
    assert_eq!(world.pass().0, State::Soaking);
    world.now += 8;
    assert_eq!(world.pass().1, names(&["b", "c"]));
}

#[test]
fn what_cannot_be_changed_is_left_out_and_named() {
    let mut world = five();
    world.cluster("b").is_paused = true;
    world.cluster("c").health = Err("it was broken before".to_owned());
    world.pass();
    world.cluster("z").health = Ok(());
    world.pass();
    world.now = 10;
    assert_eq!(world.pass().1, names(&["d", "e"]));
    world.cluster("d").health = Ok(());
    world.cluster("e").health = Ok(());
    world.settles();
    let now = Moment::at(time(world.now));
    let decision = decide(&world.settings, NEW, &world.before, &world.members, false, &now);
    assert_eq!(decision.state, State::Held);
    let said = "the Clusters that are left cannot be changed: n/b (paused), n/c (it was broken before); mend them, or move them by hand";
    assert!(decision.message.starts_with(said), "{}", decision.message);
    world.cluster("b").is_paused = false;
    world.cluster("c").health = Ok(());
    assert_eq!(world.pass(), (State::InProgress, names(&["b", "c"])));
}

#[test]
fn a_stage_that_proves_nothing_holds_up_the_next_ones() {
    let mut world = five();
    world.cluster("z").health = Err("it was broken before".to_owned());
    assert_eq!(world.pass(), (State::Held, names(&[])));
    // A new Cluster proves nothing either.
    let fresh = Member {
        revision: Has::None(None),
        is_new: true,
        is_younger: true,
        ..member("fresh", 0)
    };
    world.members.push(fresh);
    assert_eq!(world.pass(), (State::Held, names(&["fresh"])));
    assert_eq!(world.pass(), (State::Held, names(&[])));
    // One that a user has paused does not.
    world.cluster("z").is_paused = true;
    assert_eq!(world.pass().1, names(&["b", "c"]));
}

#[test]
fn a_schedule_names_every_wave() {
    let world = five();
    let waves = schedule(&world.settings.stages, &world.members, NEW);
    let waves: Vec<_> = waves
        .iter()
        .map(|wave| {
            (
                wave.stage.as_str(),
                wave.clusters.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(
        waves,
        [
            ("canary", vec!["z"]),
            ("others", vec!["b", "c"]),
            ("others", vec!["d", "e"])
        ]
    );
}

proptest! {
    // What a wave may hold is never exceeded, whatever becomes of the Clusters, and all get there in the end.
    #[test]
    fn no_more_than_a_wave_is_on_its_way(
        stages in proptest::collection::vec((1usize..5, 0i64..20), 1..4),
        members in proptest::collection::vec(0usize..4, 0..20),
        steps in proptest::collection::vec((0usize..20, 0i64..40, any::<bool>()), 0..80),
    ) {
        let list: Vec<Stage> = stages.iter().enumerate()
            .map(|(index, (size, soak))| stage(&format!("s{index}"), Size::Count(*size), *soak))
            .collect();
        let most = stages.iter().map(|(size, _)| *size).max().unwrap();
        let members: Vec<Member> = members.iter().enumerate()
            .map(|(index, of)| member(&format!("c{index:02}"), of % list.len()))
            .collect();
        let mut world = World::new(settings(&list), members);
        for (which, pause, loses_status) in steps {
            world.now += pause;
            if loses_status {
                world.before.wave = None;
            }
            if let Some(one) = world.members.get_mut(which) {
                one.health = Ok(());
            }
            world.pass();
            let on_the_way = world.members.iter().filter(|member| member.has(NEW) && member.health.is_err()).count();
            prop_assert!(on_the_way <= most);
            let first_left = world.members.iter().filter(|member| !member.has(NEW)).map(|member| member.stage).min();
            let last_gone = world.members.iter().filter(|member| member.has(NEW)).map(|member| member.stage).max();
            prop_assert!(last_gone.is_none() || first_left.is_none() || last_gone <= first_left);
        }
        for _ in 0..100 {
            world.all_are_healthy();
            world.now += 20;
            world.pass_and(true);
        }
        world.settles();
        world.pass();
        prop_assert!(world.members.iter().all(|member| member.has(NEW)));
        prop_assert_eq!(world.before.current.as_deref(), Some(NEW));
    }

    // The same on the way back, though a process may die at any time, and nothing may be left of what it knew.
    #[test]
    fn no_more_than_a_wave_is_on_its_way_back(
        size in 1usize..4,
        members in proptest::collection::vec((0usize..3, any::<bool>()), 1..15),
        steps in proptest::collection::vec((0usize..15, 0i64..40, any::<bool>(), 0u8..20), 0..80),
    ) {
        let list: Vec<Stage> = (0..3).map(|index| stage(&format!("s{index}"), Size::Count(size), 0)).collect();
        let members: Vec<Member> = members.iter().enumerate().map(|(index, (of, is_new))| {
            let mut member = member(&format!("c{index:02}"), *of);
            if *is_new {
                member.revision = Has::This(NEW.to_owned());
            }
            member
        }).collect();
        let went: BTreeSet<ObjectKey> = members.iter().filter(|one| one.has(NEW)).map(|one| one.key.clone()).collect();
        let some_stayed = went.len() < members.len();
        let mut world = World::new(settings(&list), members);
        world.settings.deadline = SignedDuration::from_secs(1_000_000);
        world.settings.abort = Some(Abort { revision: NEW.to_owned(), goes_back: true });
        for (which, pause, lives, loses) in steps {
            world.now += pause;
            if loses == 0 && some_stayed {
                world.before = Before::default();
            }
            if let Some(one) = world.members.get_mut(which) {
                one.health = Ok(());
            }
            world.one_pass(false, lives);
            let on_the_way = world.members.iter()
                .filter(|member| went.contains(&member.key) && member.has(OLD) && member.health.is_err());
            prop_assert!(on_the_way.count() <= size);
        }
        for _ in 0..100 {
            world.all_are_healthy();
            world.pass();
        }
        prop_assert!(world.members.iter().all(|member| member.has(OLD)));
    }
}
