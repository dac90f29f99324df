//! Releases: the effect of operations on a cluster, and the stored revisions.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass_fake_providers::ChartLike;
use windlass_helm::{Engine as _, Install, MARK, Options, Status, Uninstall, Upgrade, values};

use crate::player::{GOOD, hook, play};
use crate::support::{World, quick, simple, with_both};

/// The data of the chart's ConfigMap.
async fn map(world: &World) -> Value {
    world.cluster.get::<ConfigMap>("web").await["data"].clone()
}

// AD-095, AD-096, AD-097, AD-099, AD-104, AD-109, AD-115, AD-076, AD-077, AD-059
with_both!(a_release_goes_through_its_life);
async fn a_release_goes_through_its_life(world: World) -> World {
    let target = world.target();
    let (old, new) = (world.chart(&simple("1.0.0")).await, world.chart(&simple("1.1.0")).await);
    let options = quick();
    let first = world
        .helm
        .install(&target, &old, "greeting: hi\n", &options)
        .await
        .unwrap();
    assert_eq!((first.revision, first.status), (1, Status::Deployed));
    assert_eq!(map(&world).await["greeting"], "hi");
    // The cluster's own version, not that of helm's libraries.
    assert_eq!(map(&world).await["kube"], world.cluster.version().await);
    let release = world.cluster.newest(&target).await.unwrap();
    assert_eq!(
        (release.name.as_str(), release.namespace.as_str(), release.revision),
        ("web", world.cluster.namespace.as_str(), 1)
    );
    assert_eq!(
        (release.chart.as_str(), release.chart_version.as_str()),
        ("web", "1.0.0")
    );
    assert_eq!(release.app_version.as_deref(), Some("1.0"));
    assert_eq!(release.status, Status::Deployed);
    assert!(release.has_values(&values::parse("greeting: hi").unwrap()));
    assert!(release.first_deployed.is_some() && release.first_deployed == release.last_deployed);

    let second = world
        .helm
        .upgrade(&target, &new, "greeting: hey\n", &options)
        .await
        .unwrap();
    assert_eq!((second.revision, second.status), (2, Status::Deployed));
    assert_eq!(
        (&map(&world).await["greeting"], &map(&world).await["version"]),
        (&json!("hey"), &json!("1.1.0"))
    );
    // A change to an older chart is an upgrade, too.
    let third = world
        .helm
        .upgrade(&target, &old, "greeting: hey\n", &options)
        .await
        .unwrap();
    assert_eq!((third.revision, &map(&world).await["version"]), (3, &json!("1.0.0")));
    world.helm.rollback(&target, 2, &options).await.unwrap();
    assert_eq!(map(&world).await["version"], "1.1.0");
    let history = world.cluster.history(&target).await;
    let statuses: Vec<Status> = history.iter().map(|release| release.status).collect();
    assert_eq!(
        statuses,
        [
            Status::Superseded,
            Status::Superseded,
            Status::Superseded,
            Status::Deployed
        ]
    );
    assert_eq!(history[3].description, "Rollback to 2");

    world.helm.uninstall(&target, &options).await.unwrap();
    assert_eq!(world.cluster.newest(&target).await, None);
    assert_eq!(map(&world).await, Value::Null);
    let namespace: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(world.cluster.client.clone());
    assert!(namespace.get_opt(&world.cluster.namespace).await.unwrap().is_some());
    // AD-098: what is not there is uninstalled.
    world.helm.uninstall(&target, &options).await.unwrap();
    let counters = world.helm.counters();
    let verbs = ["version", "install", "upgrade", "rollback", "uninstall"];
    assert_eq!(verbs.map(|verb| counters.of(verb)), [1, 1, 2, 1, 2]);
    world
}

// AD-134
with_both!(a_release_says_whose_it_is_through_all_operations);
async fn a_release_says_whose_it_is_through_all_operations(world: World) -> World {
    let target = world.target();
    let chart = world.chart(&simple("1.0.0")).await;
    let is_ours = async || target.marker.is_on(&world.cluster.newest(&target).await.unwrap());
    world.helm.install(&target, &chart, "", &quick()).await.unwrap();
    assert!(is_ours().await);
    world
        .helm
        .upgrade(&target, &chart, "greeting: x", &quick())
        .await
        .unwrap();
    assert!(is_ours().await);
    world.helm.rollback(&target, 1, &quick()).await.unwrap();
    assert!(is_ours().await);
    let labels = world.cluster.newest(&target).await.unwrap().labels;
    assert_eq!(
        labels.iter().collect::<Vec<_>>(),
        [(&MARK.to_owned(), &"default.web".to_owned())]
    );

    let mut foreign = world.cluster.target("other");
    foreign.marker = windlass_helm::Marker::default();
    world.helm.install(&foreign, &chart, "", &quick()).await.unwrap();
    assert!(!target.marker.is_on(&world.cluster.newest(&foreign).await.unwrap()));
    world
}

// AD-089, AD-096: what is compared is what helm stores, or every look would make a revision.
with_both!(values_are_stored_as_the_data_that_they_are_compared_as);
async fn values_are_stored_as_the_data_that_they_are_compared_as(world: World) -> World {
    let target = world.target();
    let chart = world.chart(&simple("1.0.0")).await;
    let texts = [
        "",
        "# nothing\n",
        "greeting: yes please\nextra: {yes: no, on: 'on', port: 8080, mode: 0644, big: 12345678901234567, float: 1.0, small: 1e-7}\n",
        "extra: {empty: {}, list: [], text: '', none: ~, deep: {a: [1, {b: ~}]}}\n",
        "extra: {when: 2026-11-22, version: '1.10', v: 1.10, hex: 0x1F, signed: -1, quoted: '8080'}\n",
        "base: &b {x: 1}\nextra: {<<: *b, y: 2}\n",
        "extra:\n  text: |\n    two\n    lines\n  folded: >-\n    one\n    line\n",
        "extra: {gone: ~}\ngreeting: ~\n",
    ];
    world
        .helm
        .install(&target, &chart, "greeting: first", &quick())
        .await
        .unwrap();
    for text in texts {
        world.helm.upgrade(&target, &chart, text, &quick()).await.unwrap();
        let wanted = values::parse(text).unwrap();
        let stored = world.cluster.newest(&target).await.unwrap();
        assert!(
            stored.has_values(&wanted),
            "{text}\nstored: {:?}\nwanted: {wanted:?}",
            stored.values
        );
    }
    // Values removed from the declaration are removed from the release.
    world.helm.upgrade(&target, &chart, "", &quick()).await.unwrap();
    assert_eq!(map(&world).await["greeting"], "hello");
    world
}

/// A text passed to helm unchanged, to check that we parse YAML as it does.
const TRICKY: &str = "a: yes\nb: 'yes'\nc: 0644\nd: 1.0\ne: 12345678901234567\nf: ~\ng: 2026-11-22\nh: 1_000\ni: 0x1F\nj: !!str 5\nk: .5\n\
                      l: 1e3\nm: off\nnn: [y, N]\no: \"\\u00e9\"\np: 0o17\nq: 012345678\nr: '0644'\ns: +1\nt: 1e400x\n";

// AD-117
with_both!(values_are_read_as_helm_reads_them);
async fn values_are_read_as_helm_reads_them(world: World) -> World {
    let show = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  all: {{ toJson .Values | quote }}\n";
    // Helm reads the chart's own file without us.
    let own = ChartLike::new("own", "1.0.0")
        .file("values.yaml", TRICKY)
        .file("templates/map.yaml", show);
    let ours = ChartLike::new("ours", "1.0.0").file("templates/map.yaml", show);
    let shown = async |chart: &ChartLike, text: &str| {
        let target = world.cluster.target(chart.name());
        let chart = world.chart(chart).await;
        world.helm.install(&target, &chart, text, &quick()).await.unwrap();
        let map = world.cluster.get::<ConfigMap>(&target.release).await;
        let all: Value = serde_json::from_str(map["data"]["all"].as_str().unwrap()).unwrap();
        all
    };
    let (own, ours) = (shown(&own, "").await, shown(&ours, TRICKY).await);
    for (key, value) in own.as_object().unwrap() {
        let number = |value: &Value| value.as_f64();
        assert!(
            ours[key] == *value || (value.is_number() && number(&ours[key]) == number(value)),
            "{key}: helm reads {value}, we read {}",
            ours[key]
        );
    }
    world
}

with_both!(values_are_kept_where_that_is_wanted);
async fn values_are_kept_where_that_is_wanted(world: World) -> World {
    let target = world.target();
    let chart = world.chart(&simple("1.0.0")).await;
    world
        .helm
        .install(&target, &chart, "{greeting: a, extra: {x: 1}}", &quick())
        .await
        .unwrap();
    for upgrade in [
        Upgrade {
            reuse_values: true,
            ..Upgrade::default()
        },
        Upgrade {
            reset_then_reuse_values: true,
            ..Upgrade::default()
        },
    ] {
        let options = Options { upgrade, ..quick() };
        world
            .helm
            .upgrade(&target, &chart, "greeting: b", &options)
            .await
            .unwrap();
        let map = map(&world).await;
        assert_eq!((&map["greeting"], &map["extra"]), (&json!("b"), &json!("{\"x\":1}")));
    }
    world
}

// AD-041: hooks run unless they are disabled.
with_both!(hooks_run_and_can_be_left_out);
async fn hooks_run_and_can_be_left_out(world: World) -> World {
    use k8s_openapi::api::batch::v1::Job;
    let _player = play(&world.cluster.client);
    let chart = simple("1.0.0")
        .file(
            "templates/before.yaml",
            &hook("pre-install,pre-upgrade", &format!("before{GOOD}")),
        )
        .file("templates/after.yaml", &hook("post-install", "after-never"));
    let chart = world.chart(&chart).await;
    let silent = Options {
        disable_hooks: true,
        ..quick()
    };
    world.helm.install(&world.target(), &chart, "", &silent).await.unwrap();
    assert_eq!(world.cluster.get::<Job>("before-good").await, Value::Null);
    world.helm.upgrade(&world.target(), &chart, "", &quick()).await.unwrap();
    assert_eq!(world.cluster.get::<Job>("before-good").await["status"]["succeeded"], 1);
    world
}

// AD-152
with_both!(what_a_chart_depends_on_is_installed_with_it);
async fn what_a_chart_depends_on_is_installed_with_it(world: World) -> World {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: part\n";
    let part = ChartLike::new("part", "0.1.0").file("templates/part.yaml", template);
    let dependency = json!([{"name": "part", "version": "0.1.0", "repository": ""}]);
    let chart = world
        .chart(&simple("1.0.0").says("dependencies", dependency).with(&part))
        .await;
    world.helm.install(&world.target(), &chart, "", &quick()).await.unwrap();
    assert_eq!(world.cluster.get::<ConfigMap>("part").await["metadata"]["name"], "part");
    world
}

const OVENS: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: ovens.example.com\nspec:\n  \
                     group: example.com\n  scope: Namespaced\n  names: {plural: ovens, singular: oven, kind: Oven, listKind: OvenList}\n  \
                     versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
                     x-kubernetes-preserve-unknown-fields: true\n";
const OVEN: &str = "apiVersion: example.com/v1\nkind: Oven\nmetadata:\n  name: big\n";

with_both!(definitions_come_first_and_can_be_left_out);
async fn definitions_come_first_and_can_be_left_out(world: World) -> World {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    // Definitions are cluster-scoped, and other tests may use the same cluster.
    let group = format!("{}.example.com", world.cluster.namespace);
    let of_ours = |text: &str| text.replace("example.com", &group);
    let name = format!("ovens.{group}");
    let bare = world
        .chart(&ChartLike::new("bare", "1.0.0").file("crds/ovens.yaml", &of_ours(OVENS)))
        .await;
    let skip = Options {
        skip_crds: true,
        ..quick()
    };
    world
        .helm
        .install(&world.cluster.target("bare"), &bare, "", &skip)
        .await
        .unwrap();
    let definitions: kube::Api<CustomResourceDefinition> = kube::Api::all(world.cluster.client.clone());
    assert!(definitions.get_opt(&name).await.unwrap().is_none());
    let chart = ChartLike::new("oven", "1.0.0")
        .file("crds/ovens.yaml", &of_ours(OVENS))
        .file("templates/oven.yaml", &of_ours(OVEN));
    let chart = world.chart(&chart).await;
    let target = world.cluster.target("oven");
    world.helm.install(&target, &chart, "", &quick()).await.unwrap();
    assert!(definitions.get_opt(&name).await.unwrap().is_some());
    world
}

// AD-039: what a new chart no longer has is removed.
with_both!(an_upgrade_removes_what_the_chart_dropped);
async fn an_upgrade_removes_what_the_chart_dropped(world: World) -> World {
    let extra = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\n";
    let with = world.chart(&simple("1.0.0").file("templates/extra.yaml", extra)).await;
    let without = world.chart(&simple("1.1.0")).await;
    world.helm.install(&world.target(), &with, "", &quick()).await.unwrap();
    assert_ne!(world.cluster.get::<ConfigMap>("extra").await, Value::Null);
    world
        .helm
        .upgrade(&world.target(), &without, "", &quick())
        .await
        .unwrap();
    assert_eq!(world.cluster.get::<ConfigMap>("extra").await, Value::Null);
    world
}

// T7: manual changes by any user and any tool are reverted.
with_both!(what_was_changed_by_hand_is_put_back);
async fn what_was_changed_by_hand_is_put_back(world: World) -> World {
    use kube::api::{Api, Patch, PatchParams};
    let chart = world.chart(&simple("1.0.0")).await;
    world
        .helm
        .install(&world.target(), &chart, "greeting: a", &quick())
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(world.cluster.client.clone(), &world.cluster.namespace);
    let hand = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"greeting": "by hand"}});
    maps.patch("web", &PatchParams::apply("hand").force(), &Patch::Apply(hand))
        .await
        .unwrap();
    assert_eq!(map(&world).await["greeting"], "by hand");
    world
        .helm
        .upgrade(&world.target(), &chart, "greeting: a", &quick())
        .await
        .unwrap();
    assert_eq!(map(&world).await["greeting"], "a");
    world
}

with_both!(a_kept_history_holds_the_name_until_it_is_replaced);
async fn a_kept_history_holds_the_name_until_it_is_replaced(world: World) -> World {
    let chart = world.chart(&simple("1.0.0")).await;
    let target = world.target();
    let uninstall = Uninstall {
        keep_history: true,
        description: Some("moved away".to_owned()),
    };
    let keep = Options { uninstall, ..quick() };
    world.helm.install(&target, &chart, "", &quick()).await.unwrap();
    world.helm.uninstall(&target, &keep).await.unwrap();
    let release = world.cluster.newest(&target).await.unwrap();
    assert_eq!(
        (release.status, release.description.as_str()),
        (Status::Uninstalled, "moved away")
    );
    // Again, as after a crash in between.
    world.helm.uninstall(&target, &keep).await.unwrap();
    let install = Install {
        replace: true,
        ..Install::default()
    };
    let again = Options { install, ..quick() };
    let summary = world.helm.install(&target, &chart, "", &again).await.unwrap();
    assert_eq!((summary.revision, summary.status), (2, Status::Deployed));
    world
}

with_both!(old_revisions_are_forgotten);
async fn old_revisions_are_forgotten(world: World) -> World {
    let chart = world.chart(&simple("1.0.0")).await;
    let target = world.target();
    let options = Options {
        upgrade: Upgrade {
            max_history: 2,
            ..Upgrade::default()
        },
        ..quick()
    };
    world.helm.install(&target, &chart, "", &options).await.unwrap();
    for greeting in ["a", "b", "c"] {
        world
            .helm
            .upgrade(&target, &chart, &format!("greeting: {greeting}"), &options)
            .await
            .unwrap();
    }
    let revisions: Vec<u32> = world
        .cluster
        .history(&target)
        .await
        .iter()
        .map(|release| release.revision)
        .collect();
    assert_eq!(revisions, [3, 4]);
    world
}

with_both!(all_options_together_are_understood);
async fn all_options_together_are_understood(world: World) -> World {
    let chart = world.chart(&simple("1.0.0")).await;
    let target = world.target();
    let options = Options {
        wait: true,
        wait_for_jobs: true,
        sub_notes: true,
        disable_openapi_validation: true,
        atomic: true,
        take_ownership: true,
        upgrade: Upgrade {
            force: true,
            cleanup_on_fail: true,
            reset_values: true,
            ..Upgrade::default()
        },
        ..quick()
    };
    world.helm.install(&target, &chart, "", &options).await.unwrap();
    world
        .helm
        .upgrade(&target, &chart, "greeting: a", &options)
        .await
        .unwrap();
    world.helm.rollback(&target, 1, &options).await.unwrap();
    world.helm.uninstall(&target, &options).await.unwrap();
    world
}
