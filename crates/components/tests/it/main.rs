//! What reading a large provider costs, in a process of its own.

use std::fs;

use windlass_api_operator::ProviderType;
use windlass_components::assemble::{Input, assemble, in_order};
use windlass_components::{envsubst, images, manifest};
use windlass_fake_providers::LookAlike;

/// As large as the largest real provider.
const SIZE: usize = 1_200_000;

/// What the whole process may have needed at most, in KiB. A manager has 100 MiB for this and everything else.
const LIMIT: u64 = 48 * 1024;

/// The most memory that this process has had so far, in KiB; nothing where the system does not tell.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

#[test]
fn a_large_provider_is_read_in_little_memory() {
    let provider = LookAlike::infrastructure("aws").padded_to(SIZE);
    let before = peak();
    let text = provider.components();
    assert!(text.len() >= SIZE);
    let template = envsubst::Template::parse(&text).unwrap();
    assert!(template.variables().len() > 3);
    let rendered = template.render(|name| Some(format!("value-of-{name}"))).unwrap();
    drop(text);
    let objects = manifest::parse(&rendered).unwrap();
    drop(rendered);
    assert!(!images::list(&objects).is_empty());
    let made = assemble(Input {
        type_: ProviderType::Infrastructure,
        name: "aws",
        namespace: Some("foo"),
        objects,
    });
    assert!(in_order(made.unwrap().objects).len() > 10);
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after < LIMIT, "{after} KiB, of which {before} KiB were needed before");
    }
}
