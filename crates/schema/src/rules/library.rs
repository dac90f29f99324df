//! The functions that rules may call.

use std::sync::{Arc, LazyLock};

use cel::{Env, extensions};

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(true);
    for extension in [
        extensions::strings,
        extensions::lists,
        extensions::math,
        extensions::encoders,
    ] {
        // Only fails on names declared twice, which a test rules out.
        let _ = env.add_extension(extension);
    }
    Arc::new(env)
});

/// The environment of all rules.
pub(crate) fn env() -> Arc<Env> {
    Arc::clone(&ENV)
}
