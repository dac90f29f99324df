//! The embedded server answers as kube-apiserver was recorded to answer.

use std::collections::BTreeMap;
use std::path::Path;

use windlass_parity::allow::Allowed;
use windlass_parity::run::{Report, all, compare, recorded};
use windlass_parity::target::Target;
use windlass_parity::{case, recording};

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_the_real_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let allowed = Allowed::read(&folder.join("allow.yaml")).unwrap();
    let topics = case::load(&folder.join("cases"), &[]).unwrap();
    let target = Target::embedded().await.unwrap();
    let ours = all(&target, &topics, &BTreeMap::new(), true).await;
    let mut report = Report::default();
    for topic in &topics {
        let real = recorded(recording::read(&topic.recording).unwrap());
        let known: Vec<&String> = real
            .keys()
            .filter(|claim| !topic.cases.iter().any(|case| case.case == **claim))
            .collect();
        assert!(known.is_empty(), "{}: recorded, but no case: {known:?}", topic.name);
        report.add(compare(topic, &real, &ours[&topic.name], &allowed));
    }
    assert!(report.cases > 0);
    assert!(
        report.failures.is_empty(),
        "{}\n{} of {} cases fail",
        report.failures.join("\n"),
        report.failures.len(),
        report.cases
    );
    assert_eq!(
        allowed.unused(),
        Vec::<String>::new(),
        "allow.yaml: nothing needs these"
    );
}
