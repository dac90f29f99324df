//! A file of a provider: parsed, with images replaced, moved to a namespace and sorted; and parsed as metadata.

use windlass_api_operator::ProviderType;
use windlass_provider_components::assemble::{Input, assemble, in_order};
use windlass_provider_components::images::{ImageMeta, Overrides, list, override_images};
use windlass_provider_components::{manifest, metadata};

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(text: &str) {
    let _ = metadata::Metadata::parse(text);
    let Ok(mut objects) = manifest::parse(text) else {
        return;
    };
    let _ = list(&objects);
    let meta = ImageMeta {
        repository: Some("registry.local/x".to_owned()),
        ..ImageMeta::default()
    };
    let _ = override_images(
        &mut objects,
        "infrastructure-x",
        &Overrides([("all".to_owned(), meta)].into()),
    );
    let input = |objects| Input {
        type_: ProviderType::Infrastructure,
        name: "x",
        namespace: Some("target"),
        objects,
    };
    let Ok(made) = assemble(input(objects)) else {
        return;
    };
    let again = assemble(input(made.objects.clone())).expect("what was put together can be put together");
    assert_eq!(again.objects, made.objects, "nothing changes the second time");
    let count = made.objects.len();
    assert_eq!(in_order(made.objects).len(), count);
}
