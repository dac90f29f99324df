//! The memory for parsing a large provider, in a separate process.

use std::fs;

use windlass_api_operator::ProviderType;
use windlass_fake_providers::LookAlike;
use windlass_provider_components::assemble::{Input, assemble, in_order};
use windlass_provider_components::{envsubst, images, manifest};

/// The size of the largest real provider.
const SIZE: usize = 1_200_000;

/// The memory limit of the whole process, in KiB. A manager has 100 MiB for this and everything else.
const LIMIT: u64 = 48 * 1024;

/// The peak memory of this process, in KiB; `None` if the system does not report it.
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
