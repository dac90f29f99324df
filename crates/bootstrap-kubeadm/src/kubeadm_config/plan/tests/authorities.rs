//! The authority of the cluster, which a rotation replaces, and its pins.

use super::*;

/// While authorities are rotated, machines trust the old and the new one; controller managers, which read no bundle, sign with one.
#[test]
fn during_a_rotation_machines_trust_both_authorities_and_their_data_tells_of_which_it_was_made() {
    let pair = || {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        KeyMaterial::generate(Purpose::ClusterCa, key, 10, now()).unwrap()
    };
    let (old, new) = (pair(), pair());
    let both = KeyMaterial {
        crt: format!("{}{}", new.crt, old.crt),
        key: new.key.clone(),
    };
    let rotated = |control_plane: bool, stage: Option<&str>, authority: &KeyMaterial| {
        let (stage, authority) = (stage.map(str::to_owned), authority.clone());
        let world = world(control_plane, "{joinConfiguration: {}}").with(|world| {
            world.material().rotation = stage;
            let all = &mut world.material().certificates;
            all.insert(Purpose::ClusterCa, Seen::Found(authority));
        });
        let plan = world.plan();
        let content = plan.actions.iter().find_map(|action| match action {
            Action::CreateData(content) => Some(content.0.clone()),
            _ => None,
        });
        let mark = content.unwrap()["metadata"]["annotations"]["windlass.dev/authorities"].clone();
        (data(&plan), mark)
    };
    let pin = |material: &KeyMaterial| Certificate::from_pem(&material.crt).unwrap().public_key_pin();
    for control_plane in [true, false] {
        let (text, mark) = rotated(control_plane, Some("Completing"), &both);
        assert!(text.contains(&pin(&old)) && text.contains(&pin(&new)), "{text}");
        assert_eq!(
            text.contains("/etc/kubernetes/pki/signing-ca.crt"),
            control_plane,
            "{text}"
        );
        // API servers of before show certificates of the old one, when the new one signs already.
        let joins_by_bundle = |text: &str| {
            let command = "kubeadm join phase control-plane-prepare kubeconfig --config /run/kubeadm/kubeadm-join-config.yaml && sed";
            let has = [
                command,
                "- control-plane-prepare/kubeconfig",
                "(base64 < /etc/kubernetes/pki/ca.crt |",
            ]
            .map(|part| text.contains(part));
            assert!(has == [has[0]; 3], "{has:?} {text}");
            has[0]
        };
        assert_eq!(joins_by_bundle(&text), control_plane);
        for stage in ["Preparing", "Renewing"] {
            assert!(!joins_by_bundle(&rotated(control_plane, Some(stage), &both).0));
        }
        assert_eq!(joins_by_bundle(&rotated(control_plane, None, &both).0), control_plane);
        assert!(!joins_by_bundle(&rotated(control_plane, None, &new).0));
        let (_, other) = rotated(control_plane, Some("Renewing"), &both);
        assert!(mark.is_string() && other.is_string() && mark != other, "{mark} {other}");
        // Afterwards everything is as before.
        let (text, mark) = rotated(control_plane, None, &new);
        assert!(mark.is_null() && !text.contains("signing-ca.crt"), "{mark} {text}");
    }
}

fn authority() -> KeyMaterial {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    KeyMaterial::generate(Purpose::ClusterCa, key, 10, now()).unwrap()
}

fn pin(authority: &KeyMaterial) -> String {
    Certificate::from_pem(&authority.crt).unwrap().public_key_pin()
}

/// The first signs.
fn bundle(signer: &KeyMaterial, other: &KeyMaterial) -> KeyMaterial {
    KeyMaterial {
        crt: format!("{}{}", signer.crt, other.crt),
        key: signer.key.clone(),
    }
}

/// What was seen, with these pins in the spec and this authority of the cluster.
fn pinned(mut seen: Observed, pins: &[String], set_by: SetBy, authority: &KeyMaterial) -> Observed {
    let mut config = (*seen.config).clone();
    let join = config.spec.as_mut().unwrap().join_configuration.as_mut().unwrap();
    let discovery = join.discovery.as_mut().unwrap().bootstrap_token.as_mut().unwrap();
    discovery.ca_cert_hashes = pins.to_vec();
    seen.config = Arc::new(config);
    seen.pins_set_by = Some(Seen::Found(set_by));
    let certificates = &mut seen.material.as_mut().unwrap().certificates;
    certificates.insert(Purpose::ClusterCa, Seen::Found(authority.clone()));
    seen
}

/// The pins and the token that a plan writes to the spec.
fn applied(plan: &Plan) -> (Vec<String>, String) {
    let discovery = plan.actions.iter().find_map(|action| match action {
        Action::ApplySpec(object) => Some(&object["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]),
        _ => None,
    });
    let discovery = discovery.unwrap();
    let pins = serde_json::from_value(discovery["caCertHashes"].clone()).unwrap();
    (pins, discovery["token"].as_str().unwrap().to_owned())
}

#[test]
fn the_data_of_a_pool_follows_the_authority_of_its_cluster() {
    let (old, new) = (authority(), authority());
    let (before, after) = (vec![pin(&old)], vec![pin(&new)]);
    let both = [pin(&old), pin(&new)];
    let early = Moment::at(minutes(1));
    // Before all its machines have joined, and afterwards.
    for nodes in [1, 2] {
        let planned = |pins: &[String], authority: &KeyMaterial| {
            planned(
                &pinned(of_pool(None, nodes), pins, SetBy::Controller, authority),
                &early,
            )
        };
        let made_again = |pins: &[String], authority: &KeyMaterial, want: &[String], gone: Option<&String>| {
            let plan = planned(pins, authority);
            // The token goes on.
            assert_eq!(names(&plan), ["replace data", "apply spec"]);
            assert_eq!(applied(&plan), (want.to_vec(), "zzzzzz.0123456789abcdef".to_owned()));
            let text = data(&plan);
            assert!(want.iter().all(|pin| text.contains(pin)), "{text}");
            assert!(gone.is_none_or(|pin| !text.contains(pin)), "{text}");
        };
        assert_eq!(names(&planned(&before, &old)), [""; 0]);
        made_again(&before, &bundle(&old, &new), &both, None);
        // Once written, and when the other one signs, nothing is done.
        for authority in [bundle(&old, &new), bundle(&new, &old)] {
            assert_eq!(names(&planned(&both, &authority)), [""; 0]);
        }
        made_again(&both, &new, &after, Some(&before[0]));
        // Also for one that missed the time in between.
        made_again(&before, &new, &after, Some(&before[0]));
        assert_eq!(names(&planned(&after, &new)), [""; 0]);
    }
    let mut down_meanwhile = pinned(of_pool(None, 2), &both, SetBy::Controller, &new);
    down_meanwhile.connection = Some(down("no answer"));
    assert_eq!(names(&planned(&down_meanwhile, &early)), ["replace data", "apply spec"]);
    let mut leaving = pinned(of_pool(None, 2), &before, SetBy::Controller, &new);
    if let Seen::Found(ConfigOwner::Pool(pool)) = &mut leaving.owner {
        let gone = Some(serde_json::from_value(NOW.into()).unwrap());
        Arc::make_mut(pool).metadata.deletion_timestamp = gone;
    }
    assert_eq!(names(&planned(&leaving, &early)), [""; 0]);
}

#[test]
fn another_token_comes_with_the_pins_of_the_authority_as_it_is_then() {
    let (old, new) = (authority(), authority());
    let due = Moment::at(minutes(5));
    let gone = || Some(Seen::NotFound);
    for seen in [of_pool(gone(), 2), of_pool(gone(), 1), worker(gone(), false)] {
        let plan = planned(&pinned(seen, &[pin(&old)], SetBy::Controller, &new), &due);
        assert_eq!(names(&plan), ["create token", "replace data", "apply spec"]);
        assert_eq!(applied(&plan), (vec![pin(&new)], "abcdef.0123456789abcdef".to_owned()));
        let text = data(&plan);
        assert!(text.contains(&pin(&new)) && !text.contains(&pin(&old)), "{text}");
    }
    let mut lost = pinned(of_pool(None, 2), &[pin(&old)], SetBy::Controller, &new);
    lost.data_secret = Seen::NotFound;
    let plan = planned(&lost, &due);
    assert_eq!(names(&plan), ["create token", "create data", "apply spec"]);
    assert_eq!(applied(&plan).0, [pin(&new)]);
}

#[test]
fn the_data_of_a_machine_does_not_follow_the_authority() {
    let (old, new) = (authority(), authority());
    for joined in [false, true] {
        let seen = pinned(worker(None, joined), &[pin(&old)], SetBy::Controller, &new);
        assert_eq!(names(&planned(&seen, &Moment::at(minutes(1)))), [""; 0]);
    }
}

#[test]
fn pins_of_a_user_stay() {
    let (old, new) = (authority(), authority());
    let says_so = |plan: &Plan| format!("{:?}", plan.notes).contains("no pin of the certificate that signs");
    let quiet = |authority: &KeyMaterial| {
        let seen = pinned(of_pool(None, 2), &[pin(&old)], SetBy::User, authority);
        let plan = planned(&seen, &Moment::at(minutes(1)));
        assert_eq!(names(&plan), [""; 0]);
        says_so(&plan)
    };
    assert!(!quiet(&old));
    assert!(!quiet(&bundle(&old, &new)));
    assert!(quiet(&bundle(&new, &old)));
    assert!(quiet(&new));
    // Also beside another token, and when data is made for the first time.
    let seen = pinned(of_pool(Some(Seen::NotFound), 2), &[pin(&old)], SetBy::User, &new);
    let plan = planned(&seen, &Moment::at(minutes(5)));
    assert_eq!(names(&plan), ["create token", "replace data", "apply spec"]);
    assert_eq!(applied(&plan).0, [pin(&old)]);
    let first = pinned(world(false, WITH_TOKEN).observed(), &[pin(&old)], SetBy::User, &new);
    let plan = planned(&first, &Moment::at(now()));
    assert_eq!(names(&plan), ["create data"]);
    assert!(data(&plan).contains(&pin(&old)) && says_so(&plan), "{plan:?}");
}

/// The data goes with the spec: were the pins in the spec changed alone, the data would keep the old ones.
#[test]
fn pins_of_data_that_is_there_do_not_change_with_a_lost_status() {
    let (old, new) = (authority(), authority());
    let planned = |secret: Seen<Arc<Secret>>| {
        let mut seen = pinned(of_pool(None, 2), &[pin(&old)], SetBy::Controller, &new);
        Arc::make_mut(&mut seen.config).status = None;
        seen.data_secret = secret;
        planned(&seen, &Moment::at(minutes(1)))
    };
    let owned_by = |uid: &str| Seen::Found(Arc::new(secret(&json!([owner(uid)]))));
    let kept = planned(owned_by("config-uid"));
    assert_eq!((names(&kept), &kept.data), (vec![], &Verdict::Available));
    for (secret, write) in [
        (Seen::NotFound, "create data"),
        (owned_by("before-the-restore"), "replace data"),
    ] {
        let plan = planned(secret);
        assert_eq!(names(&plan), ["apply spec", write]);
        assert!(data(&plan).contains(&pin(&new)) && applied(&plan).0 == [pin(&new)]);
    }
}

#[test]
fn who_set_the_pins_is_asked_only_where_they_differ() {
    let (old, new) = (authority(), authority());
    let ask = |pins: &[String], seen: Observed, after: i64| {
        let mut seen = pinned(seen, pins, SetBy::User, &new);
        seen.pins_set_by = None;
        match plan(&seen, &Moment::at(minutes(after))) {
            Decision::Ask(question) => question,
            Decision::Plan(_) => Question::default(),
        }
    };
    let nothing = Question::default();
    let pins = Question { pins: true, ..nothing };
    for (set, want) in [([pin(&new)], nothing), ([pin(&old)], pins)] {
        assert_eq!(ask(&set, of_pool(None, 2), 1), want);
        assert_eq!(ask(&set, world(false, WITH_TOKEN).observed(), 0), want);
        assert_eq!(ask(&set, worker(Some(Seen::NotFound), false), 5), want);
        // Not for a Machine whose data stays as it is.
        assert_eq!(ask(&set, worker(None, false), 1), nothing);
        assert_eq!(ask(&set, worker(None, true), 5), nothing);
    }
    assert_eq!(ask(&[], world(false, WITH_TOKEN).observed(), 0), nothing);
    // A pool looks at the authority all the time.
    let mut seen = of_pool(None, 2);
    (seen.material, seen.connection, seen.pins_set_by) = (None, None, None);
    let Decision::Ask(question) = plan(&seen, &Moment::at(minutes(1))) else {
        panic!("asks for nothing");
    };
    let (material, connection) = (true, true);
    assert_eq!(
        question,
        Question {
            material,
            connection,
            ..nothing
        }
    );
}

#[test]
fn pins_whose_manager_cannot_be_read_are_kept_and_looked_at_again() {
    let (old, new) = (authority(), authority());
    let unread = |seen: Observed, after: i64| {
        let mut seen = pinned(seen, &[pin(&old)], SetBy::User, &new);
        seen.pins_set_by = Some(Seen::Failed("no answer".to_owned()));
        planned(&seen, &Moment::at(minutes(after)))
    };
    for plan in [
        unread(of_pool(None, 2), 1),
        unread(of_pool(Some(Seen::NotFound), 2), 5),
        unread(world(false, WITH_TOKEN).observed(), 0),
    ] {
        assert_eq!(names(&plan), [""; 0]);
        assert!(
            why(&plan)
                .unwrap()
                .contains("who set the pins of the authority: no answer")
        );
    }
    // An object that has changed meanwhile wakes the controller.
    let mut changed = pinned(of_pool(None, 2), &[pin(&old)], SetBy::User, &new);
    changed.pins_set_by = Some(Seen::NotFound);
    let plan = planned(&changed, &Moment::at(minutes(1)));
    assert_eq!((names(&plan), why(&plan)), (vec![], None));
}

#[test]
fn managed_fields_tell_whose_pins_are() {
    let entry = |manager: &str, operation: &str, field: &str| {
        json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {"f:joinConfiguration": {"f:discovery": {
            "f:bootstrapToken": {field: {}}}}}}})
    };
    let pins = |manager: &str, operation: &str| entry(manager, operation, "f:caCertHashes");
    let check = |entries: &[Value], want: SetBy| {
        let object = json!({"metadata": {"managedFields": entries}});
        assert_eq!(pins_set_by(&object), want, "{object}");
    };
    let (ours, classic) = (pins("cabpk-manager", "Apply"), pins("manager", "Update"));
    let token_of_user = entry("kubectl", "Apply", "f:token");
    check(std::slice::from_ref(&ours), SetBy::Controller);
    check(
        &[ours.clone(), classic.clone(), token_of_user.clone()],
        SetBy::Controller,
    );
    check(&[classic], SetBy::Controller);
    check(&[pins("cabpk-manager", "Update")], SetBy::Controller);
    check(&[pins("manager", "Apply")], SetBy::User);
    check(&[ours, pins("kubectl", "Apply")], SetBy::User);
    check(&[pins("capi-topology", "Apply")], SetBy::User);
    check(&[token_of_user], SetBy::User);
    assert_eq!(pins_set_by(&json!({"metadata": {}})), SetBy::User);
}
