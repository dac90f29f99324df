//! Cases of updates in place.

use serde_json::{Value, json};
use windlass_api::annotations::{PENDING_HOOKS, UPDATE_IN_PROGRESS};
use windlass_controller_runtime::Seen;
use windlass_controlplane_kubeadm::names::{DELETE_MACHINE, REMEDIATE_MACHINE};
use windlass_controlplane_kubeadm::plan::Action;
use windlass_controlplane_kubeadm::plan::in_place::Update;
use windlass_runtime_client::in_place::InPlace;

use crate::cases::{actions, check, name};
use crate::world::World;

/// Three Machines with an older version, none of which may be made beside them.
fn outdated() -> World {
    let mut world = World::settled(3);
    world.control_plane.max_surge = 0;
    world.control_plane.version = "v1.35.1".into();
    world.in_place = InPlace::Possible;
    world
}

fn update(world: &World) -> Update {
    let plan = world.plan();
    let found = plan.actions.iter().find_map(|action| match action {
        Action::BeginUpdate(update) => Some((**update).clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{plan:?}"))
}

#[test]
fn a_machine_that_would_be_deleted_is_updated_instead() {
    let world = outdated();
    let first = name(&world, 0);
    check(&world, &["kubeadm-config v1.35.1", "rbac", &format!("update {first}")]);
    let update = update(&world);
    assert_eq!(
        update.mark.unwrap()["metadata"]["annotations"],
        json!({ (UPDATE_IN_PROGRESS): "" })
    );
    assert_eq!(update.machine["spec"]["version"], "v1.35.1");
    for object in [&update.infra, &update.config] {
        assert_eq!(object["metadata"]["annotations"][UPDATE_IN_PROGRESS], "");
        assert_eq!(object["metadata"]["ownerReferences"][0]["name"], first.as_str());
    }
    assert!(update.config["spec"]["joinConfiguration"]["controlPlane"].is_object());
    assert!(update.config["spec"]["initConfiguration"].is_null());
    assert!(update.drops_init, "it is the first Machine");
    assert_eq!(
        update.hook["metadata"]["annotations"],
        json!({ (PENDING_HOOKS): "UpdateMachine" })
    );
}

#[test]
fn with_room_for_one_more_a_machine_is_made_first() {
    let mut world = outdated();
    world.control_plane.max_surge = 1;
    assert!(actions(&world).contains(&"join".to_owned()));
}

#[test]
fn all_machines_are_updated_one_after_the_other() {
    let mut world = outdated();
    let before: Vec<String> = world.machines.keys().cloned().collect();
    let mut updated = 0;
    for _ in 0..20 {
        let plan = world.reconcile(usize::MAX);
        updated += plan
            .actions
            .iter()
            .filter(|action| matches!(action, Action::BeginUpdate(_)))
            .count();
        let running = world.machines.values().filter(|machine| machine.is_updating()).count();
        assert!(running <= 1);
        if running == 1 {
            // Nothing else begins meanwhile.
            let plan = world.reconcile(usize::MAX);
            assert!(!plan.actions.iter().any(Action::disruptive), "{:?}", plan.actions);
            let finding = plan.health.unwrap();
            let machine = finding.machines.iter().find(|view| view.facts.is_updating()).unwrap();
            let finding = machine.finding("UpToDate").unwrap();
            assert_eq!(
                (&*finding.draft.reason, finding.draft.message.as_str()),
                ("Updating", "* In-place update in progress")
            );
        }
        world.end_updates();
    }
    assert_eq!(updated, 3);
    assert_eq!(before, world.machines.keys().cloned().collect::<Vec<_>>());
    assert!(world.machines.values().all(|machine| machine.version == "v1.35.1"));
    check(&world, &[]);
}

#[test]
fn an_update_that_was_interrupted_begins_again_before_anything_else() {
    let mut world = outdated();
    let second = name(&world, 1);
    let machine = world.machines.get_mut(&second).unwrap();
    machine.annotations.insert(UPDATE_IN_PROGRESS.to_owned(), String::new());
    // The extension is not asked again.
    world.in_place = InPlace::Unknown("it is down".to_owned());
    check(&world, &[&format!("update {second}")]);
    assert_eq!(update(&world).mark, None);
}

#[test]
fn what_cannot_be_updated_is_replaced() {
    let is_deleted = |world: &World| {
        let delete = format!("delete {} (", name(world, 0));
        actions(world).iter().any(|action| action.starts_with(&delete))
    };
    let mut world = outdated();
    world.in_place = InPlace::Impossible("no extension".to_owned());
    assert!(is_deleted(&world));
    // What a user asks for, its age, and a Machine that is not well.
    for key in [DELETE_MACHINE, REMEDIATE_MACHINE] {
        let mut world = outdated();
        let name = name(&world, 0);
        world
            .machines
            .get_mut(&name)
            .unwrap()
            .annotations
            .insert(key.to_owned(), String::new());
        assert!(is_deleted(&world), "{key}");
    }
    let mut world = outdated();
    world.control_plane.rollout_after = Some(world.now);
    assert!(is_deleted(&world));
    let mut world = outdated();
    world.broken.push(name(&world, 0));
    assert!(is_deleted(&world));
    let mut world = outdated();
    let name = name(&world, 0);
    world.machines.get_mut(&name).unwrap().infra = Seen::NotFound;
    assert!(is_deleted(&world));
}

#[test]
fn nothing_is_replaced_while_an_extension_cannot_be_asked() {
    let mut world = outdated();
    world.in_place = InPlace::Unknown("it is down".to_owned());
    check(&world, &[]);
    let plan = world.plan();
    let why = format!(
        "it cannot be told whether Machine {} can be updated in place: it is down",
        name(&world, 0)
    );
    assert_eq!(plan.blocked.unwrap().message, why);
    world.reconcile(usize::MAX);
    let conditions = world.last_status["conditions"].as_array().unwrap();
    let rolling = conditions
        .iter()
        .find(|condition| condition["type"] == "RollingOut")
        .unwrap();
    assert!(rolling["message"].as_str().unwrap().contains(&why), "{rolling:#}");
}

#[test]
fn nothing_goes_that_could_not_be_read_or_made_again() {
    let mut world = outdated();
    world.in_place = InPlace::Impossible("no extension".to_owned());
    world.template = Value::Null;
    let deletes = |world: &World| actions(world).iter().any(|action| action.starts_with("delete"));
    assert!(!deletes(&world), "there is no template");
    let mut world = outdated();
    let first = name(&world, 0);
    world.machines.get_mut(&first).unwrap().infra = Seen::Failed("not listed yet".to_owned());
    world.in_place = InPlace::Unknown("not listed yet".to_owned());
    assert!(!deletes(&world));
    // An infrastructure machine that a user has made is replaced, and not overwritten.
    let mut world = outdated();
    let Seen::Found(infra) = &mut world.machines.get_mut(&first).unwrap().infra else {
        panic!()
    };
    infra["metadata"]["annotations"] = Value::Null;
    assert!(deletes(&world));
}
