//! The flags of each option, for both versions of helm.

use crate::{Install, Marker, Secret, Uninstall, Upgrade};

use super::*;

const THREE: Version = Version { major: 3, minor: 22 };
const FOUR: Version = Version { major: 4, minor: 0 };

fn target(release: &str, namespace: &str) -> Target {
    Target {
        kubeconfig: Secret::new("hidden"),
        namespace: namespace.to_owned(),
        release: release.to_owned(),
        marker: Marker::owner("default.calico"),
        stop: crate::Stop::default(),
    }
}

/// The command lines of install, upgrade, rollback and uninstall.
fn lines(version: Version, options: &Options) -> Result<[String; 4], HelmError> {
    let target = target("calico", "kube-system");
    let on = On {
        version,
        target: &target,
        kubeconfig: Path::new("/k"),
        options,
    };
    let archive = Path::new("/c.tgz");
    let all = [
        on.install(archive)?,
        on.upgrade(archive)?,
        on.rollback(3)?,
        on.uninstall()?,
    ];
    Ok(all.map(|flags| flags.join(" ")))
}

const COMMON: &str = "--kubeconfig=/k --namespace=kube-system --timeout=600000ms";
const APPLY: &str = "--output=json --values=- --labels=helmreleaseproxy.addons.cluster.x-k8s.io/owner=default.calico";

#[test]
fn without_options_helm_does_what_it_does_by_default() {
    let [install, upgrade, rollback, uninstall] = lines(THREE, &Options::default()).unwrap();
    assert_eq!(
        install,
        format!("install calico /c.tgz {COMMON} {APPLY} --create-namespace")
    );
    assert_eq!(
        upgrade,
        format!("upgrade calico /c.tgz {COMMON} {APPLY} --reset-values --history-max=10")
    );
    assert_eq!(rollback, format!("rollback calico 3 {COMMON} --history-max=10"));
    assert_eq!(uninstall, format!("uninstall calico {COMMON}"));

    let [install, upgrade, rollback, uninstall] = lines(FOUR, &Options::default()).unwrap();
    assert_eq!(
        install,
        format!("install calico /c.tgz {COMMON} {APPLY} --server-side=false --create-namespace")
    );
    assert_eq!(
        upgrade,
        format!("upgrade calico /c.tgz {COMMON} {APPLY} --server-side=false --reset-values --history-max=10")
    );
    assert_eq!(
        rollback,
        format!("rollback calico 3 {COMMON} --history-max=10 --server-side=false")
    );
    assert_eq!(uninstall, format!("uninstall calico {COMMON}"));
}

/// The flags that an option adds to each of the four.
fn added(version: Version, options: &Options) -> [Vec<String>; 4] {
    let plain = lines(version, &Options::default()).unwrap();
    let with = lines(version, options).unwrap();
    std::array::from_fn(|i| {
        let known: Vec<&str> = plain[i].split(' ').collect();
        let new = with[i].split(' ').filter(|flag| !known.contains(flag));
        new.map(str::to_owned).collect()
    })
}

fn check(options: &Options, three: [&str; 4], four: [&str; 4]) {
    for (version, want) in [(THREE, three), (FOUR, four)] {
        let got = added(version, options).map(|flags| flags.join(" "));
        assert_eq!(got, want, "{version} {options:?}");
    }
}

fn same(options: &Options, want: [&str; 4]) {
    check(options, want, want);
}

#[test]
fn every_option_is_a_flag() {
    let options = Options::default;
    let hooks = Options {
        disable_hooks: true,
        ..options()
    };
    same(&hooks, ["--no-hooks"; 4]);
    same(
        &Options {
            wait: true,
            ..options()
        },
        ["--wait"; 4],
    );
    let jobs = "--wait-for-jobs";
    same(
        &Options {
            wait_for_jobs: true,
            ..options()
        },
        [jobs, jobs, jobs, ""],
    );
    let short = Options {
        timeout: Duration::from_millis(1500),
        ..options()
    };
    same(&short, ["--timeout=1500ms"; 4]);
    let ages = Options {
        timeout: Duration::MAX,
        ..options()
    };
    same(&ages, ["--timeout=9000000000000ms"; 4]);
    let none = Options {
        timeout: Duration::ZERO,
        ..options()
    };
    same(&none, ["--timeout=1ms"; 4]);
    same(
        &Options {
            skip_crds: true,
            ..options()
        },
        ["--skip-crds", "--skip-crds", "", ""],
    );
    let notes = "--render-subchart-notes";
    same(
        &Options {
            sub_notes: true,
            ..options()
        },
        [notes, notes, "", ""],
    );
    let open = "--disable-openapi-validation";
    same(
        &Options {
            disable_openapi_validation: true,
            ..options()
        },
        [open, open, "", ""],
    );
    let (three, four) = ("--atomic", "--rollback-on-failure");
    check(
        &Options {
            atomic: true,
            ..options()
        },
        [three, three, "", ""],
        [four, four, "", ""],
    );
    let owns = "--take-ownership";
    same(
        &Options {
            take_ownership: true,
            ..options()
        },
        [owns, owns, "", ""],
    );
}

#[test]
fn every_option_of_one_operation_is_a_flag_of_that() {
    let install = |install| Options {
        install,
        ..Options::default()
    };
    same(
        &install(Install {
            replace: true,
            ..Install::default()
        }),
        ["--replace", "", "", ""],
    );
    let bare = lines(
        THREE,
        &install(Install {
            create_namespace: false,
            ..Install::default()
        }),
    )
    .unwrap();
    assert!(!bare[0].contains("--create-namespace"), "{}", bare[0]);

    let upgrade = |upgrade| Options {
        upgrade,
        ..Options::default()
    };
    let force = upgrade(Upgrade {
        force: true,
        ..Upgrade::default()
    });
    check(
        &force,
        ["", "--force", "--force", ""],
        ["", "--force-replace", "--force-replace", ""],
    );
    let history = "--history-max=3";
    same(
        &upgrade(Upgrade {
            max_history: 3,
            ..Upgrade::default()
        }),
        ["", history, history, ""],
    );
    let clean = "--cleanup-on-fail";
    same(
        &upgrade(Upgrade {
            cleanup_on_fail: true,
            ..Upgrade::default()
        }),
        ["", clean, clean, ""],
    );
    same(
        &upgrade(Upgrade {
            reuse_values: true,
            ..Upgrade::default()
        }),
        ["", "--reuse-values", "", ""],
    );
    let reset = Upgrade {
        reset_then_reuse_values: true,
        ..Upgrade::default()
    };
    same(&upgrade(reset), ["", "--reset-then-reuse-values", "", ""]);

    let uninstall = Uninstall {
        keep_history: true,
        description: Some("bye".to_owned()),
    };
    let uninstall = Options {
        uninstall,
        ..Options::default()
    };
    same(&uninstall, ["", "", "", "--keep-history --description=bye"]);
}

// Values removed from a declaration must be removed from the release, too.
#[test]
fn values_are_forgotten_unless_they_are_to_be_kept() {
    let line = |upgrade| {
        lines(
            THREE,
            &Options {
                upgrade,
                ..Options::default()
            },
        )
        .unwrap()[1]
            .clone()
    };
    let reset = |upgrade| line(upgrade).contains("--reset-values");
    assert!(reset(Upgrade::default()));
    assert!(reset(Upgrade {
        reset_values: true,
        reuse_values: true,
        ..Upgrade::default()
    }));
    assert!(!reset(Upgrade {
        reuse_values: true,
        ..Upgrade::default()
    }));
    assert!(!reset(Upgrade {
        reset_then_reuse_values: true,
        ..Upgrade::default()
    }));
}

#[test]
fn an_option_that_this_helm_has_not_is_refused_in_words() {
    let options = Options {
        take_ownership: true,
        ..Options::default()
    };
    let error = lines(Version { major: 3, minor: 16 }, &options).unwrap_err();
    assert_eq!(error.kind, Kind::TooOld);
    assert_eq!(
        error.message,
        "the option takeOwnership needs helm v3.17 or newer, not v3.16"
    );
}

#[test]
fn names_that_helm_would_refuse_are_refused_before_it_sees_them() {
    let options = Options::default();
    let ask = |release: &str, namespace: &str| {
        let target = target(release, namespace);
        let on = On {
            version: THREE,
            target: &target,
            kubeconfig: Path::new("/k"),
            options: &options,
        };
        on.uninstall().map_err(|error| (error.kind, error.message))
    };
    let long = "a".repeat(54);
    for release in ["", "-x", "--all", "A", "a_b", "a b", "a..b", "a.", long.as_str()] {
        let (kind, words) = ask(release, "default").unwrap_err();
        assert_eq!(kind, Kind::Invalid);
        assert!(
            words.starts_with(&format!("\"{release}\" cannot be the name of a release")),
            "{words}"
        );
    }
    for namespace in ["", "-n", "a.b", "A"] {
        assert!(ask("a", namespace).is_err(), "{namespace}");
    }
    assert!(ask("a.b-1", "kube-system").is_ok());
}

#[test]
fn an_operation_may_take_as_long_as_all_that_it_waits_for() {
    let target = target("a", "b");
    let limit = |options: &Options| {
        let on = On {
            version: THREE,
            target: &target,
            kubeconfig: Path::new("/k"),
            options,
        };
        on.limit(Duration::from_secs(30)).as_secs()
    };
    let minute = Options {
        timeout: Duration::from_mins(1),
        ..Options::default()
    };
    assert_eq!(limit(&minute), 210);
    assert_eq!(
        limit(&Options {
            atomic: true,
            ..minute.clone()
        }),
        390
    );
    assert_eq!(
        limit(&Options {
            disable_hooks: true,
            ..minute.clone()
        }),
        90
    );
    assert_eq!(
        limit(&Options {
            timeout: Duration::MAX,
            ..minute
        }),
        Duration::MAX.as_secs()
    );
}
