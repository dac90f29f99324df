//! The embedded server answers as recorded from kube-apiserver.

use std::path::Path;

use windlass_parity::allow::Allowed;
use windlass_parity::run::{Report, Side, all, compare, recorded};
use windlass_parity::target::Target;
use windlass_parity::{case, recording};

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_the_real_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let allowed = Allowed::read(&folder.join("allow.yaml")).unwrap();
    let topics = case::load(&folder.join("cases"), &[]).unwrap();
    let target = Target::embedded().await.unwrap();
    let ours = all(&target, &topics, true).await;
    let mut report = Report::default();
    for topic in &topics {
        let real = recorded(recording::read(&topic.recording, &topic.cases).unwrap());
        let sides = [Side::new("recorded", &real), Side::new("ours", &ours[&topic.name])];
        report.add(compare(topic, sides, &allowed));
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
