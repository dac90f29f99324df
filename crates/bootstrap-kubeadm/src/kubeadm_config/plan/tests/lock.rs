//! The init lock.

use super::*;

#[test]
fn the_lock_is_given_back_by_its_holder() {
    let held = |machine: &str| {
        let machine = machine.to_owned();
        world(true, INIT)
            .done()
            .with(|world| {
                world.seen.lock = Some(Seen::Found(Lock {
                    machine,
                    holder_exists: true,
                    uid: "lock-uid".to_owned(),
                }));
            })
            .plan()
    };
    assert_eq!(
        held("m1").actions,
        [Action::ReleaseLock {
            key: ObjectKey::new("default", "demo-lock"),
            uid: "lock-uid".to_owned()
        }]
    );
    assert_eq!(held("m2").actions, []);
}

#[test]
fn a_machine_whose_data_cannot_be_made_does_not_keep_the_init_lock() {
    const BROKEN: &str = "{files: [{path: /a, content: '{{', contentFormat: Template}]}";
    let held = Lock {
        machine: "m1".to_owned(),
        holder_exists: true,
        uid: "lock-uid".to_owned(),
    };
    let planned = |lock: Seen<Lock>| {
        let world = world(true, BROKEN).standalone().before_init();
        world.with(|world| world.seen.lock = Some(lock)).plan()
    };
    let plan = planned(Seen::Found(held.clone()));
    assert_eq!(names(&plan), ["release lock"]);
    assert!(why(&plan).is_some());
    assert_eq!(names(&planned(Seen::NotFound)), [""; 0]);
    // A damaged Secret is an obstacle, too; one that is still to come is not.
    let with = |ca: Seen<KeyMaterial>| {
        let world = world(true, INIT).before_init().with(|world| {
            world.seen.lock = Some(Seen::Found(held.clone()));
            world.material().certificates.insert(Purpose::ClusterCa, ca);
        });
        world.plan()
    };
    assert_eq!(names(&with(Seen::Failed("damaged".to_owned()))), ["release lock"]);
    assert_eq!(names(&with(Seen::NotFound)), [""; 0]);
    // The others are not told when the lock is gone.
    let other = Lock {
        machine: "other".to_owned(),
        ..held
    };
    assert_eq!(planned(Seen::Found(other)).requeue, Some(Duration::from_secs(30)));
}

#[test]
fn a_lock_that_is_gone_is_not_looked_for_again() {
    let released = ReleasedLocks::default();
    let seen = world(true, INIT).done().observed();
    let cluster = seen.cluster.found().unwrap();
    let held = Seen::Found(Lock {
        machine: "other".to_owned(),
        holder_exists: true,
        uid: "u".to_owned(),
    });
    released.found(cluster, &held, |_| true);
    released.found(cluster, &Seen::Failed("no answer".to_owned()), |_| true);
    assert!(!released.has(cluster));
    released.found(cluster, &Seen::NotFound, |_| true);
    assert!(released.has(cluster));
    // A Cluster of the same name that comes later has a lock of its own, and one that is not initialized may need it.
    let change = |edit: &dyn Fn(&mut Cluster)| {
        let mut other = Cluster::clone(cluster);
        edit(&mut other);
        other
    };
    assert!(!released.has(&change(&|other| other.metadata.uid = Some("later".to_owned()))));
    let before = change(&|other| other.status = None);
    assert!(!released.has(&before));
    released.found(&before, &Seen::NotFound, |_| false);
    assert!(
        released.has(cluster),
        "only what is found of an initialized Cluster counts"
    );
}

#[test]
fn an_init_lock_that_cannot_be_read_is_neither_taken_over_nor_forgotten() {
    let key = ObjectKey::new("default", "demo-lock");
    let map =
        |data: Value| serde_json::from_value::<ConfigMap>(json!({"metadata": {"uid": "u"}, "data": data})).unwrap();
    let read = |data: Value| lock(&key, map(data), |machine| machine == "m1");
    let found = read(json!({"lock-information": r#"{"machineName":"m1"}"#}));
    assert!(matches!(
        found,
        Seen::Found(Lock {
            holder_exists: true,
            ..
        })
    ));
    let damaged = read(json!({"lock-information": "{"}));
    assert!(damaged.failure().unwrap().contains("default/demo-lock"), "{damaged:?}");
    let taking = world(true, INIT)
        .before_init()
        .with(|world| world.seen.lock = Some(damaged.clone()))
        .plan();
    assert_eq!(names(&taking), [""; 0]);
    assert!(why(&taking).unwrap().contains("Failed to read the init lock"));
    // After its data was made, the Machine tries again to give the lock back.
    let giving = world(true, INIT)
        .done()
        .with(|world| world.seen.lock = Some(damaged))
        .plan();
    assert_eq!((names(&giving), &giving.data), (vec![], &Verdict::Available));
    assert!(why(&giving).unwrap().contains("Failed to read the init lock"));
}
