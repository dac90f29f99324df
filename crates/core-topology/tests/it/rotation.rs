//! Templates of Machines are replaced if and only if a dry run of the API server says that their spec changes: random changes of a
//! class, with webhooks over HTTPS that drop, add and rewrite fields and that refuse changes of existing templates.

mod subject;
mod world;

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use serde_json::Value;
use windlass_testkit::seeds;

use subject::{BOOTSTRAP, INFRASTRUCTURE, Subject};
use world::World;

/// Changes of each template in one run.
const ROUNDS: usize = 8;

/// A change of the template in the class, with the oracle's answer and what the topology made of it. Returns whether the template was
/// replaced.
async fn round(world: &World, subject: Subject, number: usize, random: &mut SmallRng) -> bool {
    let before = world.template_in_use(subject).await;
    let (what, wanted) = subject.change(&world.class_spec(subject).await, world.habits, random);
    let stored = world.class_as_stored(subject, &wanted).await;
    let as_is = world.dry_run(&before, &before["spec"]).await;
    let changed = world.dry_run(&before, &stored).await;
    let mark = format!("{}-{number}", subject.kind.to_lowercase());
    world.change_class(subject, &wanted, &mark).await;
    let after = world.template_with_mark(subject, &mark).await;
    let told = || {
        format!(
            "{what} of {} with {:?}\nclass: {stored:#}\nbefore: {:#}\nas it is: {as_is:#}\nchanged: {changed:#}\nafter: {:#}",
            subject.kind, world.habits, before["spec"], after["spec"]
        )
    };
    let is_replaced = before["metadata"]["uid"] != after["metadata"]["uid"];
    assert_eq!(is_replaced, as_is != changed, "{}", told());
    if !is_replaced {
        assert_eq!(after["spec"], before["spec"], "{}", told());
    }
    is_replaced
}

/// Returns how many changes of the class have replaced a template.
async fn run(seed: u64) -> usize {
    let mut random = SmallRng::seed_from_u64(seed);
    let world = World::start(&mut random).await;
    let untouched = world.other_references().await;
    let mut replaced = 0;
    for number in 0..ROUNDS {
        for subject in [INFRASTRUCTURE, BOOTSTRAP] {
            replaced += usize::from(round(&world, subject, number, &mut random).await);
        }
    }
    assert_eq!(
        world.other_references().await,
        untouched,
        "the templates of other places stay"
    );
    assert_eq!(
        world.refused(),
        Vec::<Value>::new(),
        "no template of Machines is changed in place"
    );
    world.stop().await;
    replaced
}

// TO-293, TO-294, TO-295, TO-361
#[test]
fn a_template_is_replaced_if_and_only_if_a_dry_run_changes_its_spec() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut counts = Vec::new();
    seeds::simulate(0..3, 2, |seed| counts.push(runtime.block_on(run(seed))));
    assert!(
        counts.iter().any(|count| (1..2 * ROUNDS).contains(count)),
        "some changes replace a template, and some do not: {counts:?}"
    );
}
