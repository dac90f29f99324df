//! The handlers of the example. They serve all hooks of the Runtime SDK, so that each has a pattern to start from:
//!
//! - [`deletion`](deletion.rs): Clusters with an annotation are not deleted.
//! - [`lifecycle`](lifecycle.rs): each step of creation and of upgrades waits while the Cluster has an annotation for it.
//! - [`templates`](templates.rs): a variable `motd` becomes the file `/etc/motd` of all Machines, and a quota limits the replicas of workers.
//! - [`upgrades`](upgrades.rs): upgrades go through the versions that the settings list.
//! - [`in_place`](in_place.rs): Machines with an annotation are updated, not replaced.
//!
//! Every handler decides in a function of the request alone. Those that concern ClusterClasses are called for classes that name them.

mod deletion;
mod in_place;
mod lifecycle;
mod templates;
mod upgrades;

use windlass_runtime_extension::hooks::lifecycle::BeforeClusterDelete;
use windlass_runtime_extension::{BadHandler, Extension, Handler};

/// The name of the handler of BeforeClusterDelete.
pub const HANDLER: &str = "keep-protected";
/// The annotation of a protected Cluster. Its value has no meaning.
pub const PROTECTED: &str = "example.windlass.dev/protected";
/// The key of the ExtensionConfig's settings that names another annotation.
pub const ANNOTATION: &str = "annotation";
/// The beginning of the annotations that hold a hook; the name of the hook follows. The value is shown as the reason.
pub const HOLD: &str = "example.windlass.dev/hold-";
/// The annotation of Machines and of templates of Machines that are updated in place.
pub const IN_PLACE: &str = "example.windlass.dev/update-in-place";
/// How soon Cluster API asks again, in seconds.
const AGAIN: i32 = 10;

/// The extension with its handlers.
pub fn extension() -> Result<Extension, BadHandler> {
    let handler = Handler::named(HANDLER).timeout_seconds(5);
    let extension = Extension::new().handle(BeforeClusterDelete, handler, |request| async move {
        deletion::decide(&request)
    })?;
    let extension = lifecycle::add(extension)?;
    let extension = templates::add(extension)?;
    let extension = upgrades::add(extension)?;
    in_place::add(extension)
}
