//! Counts what each user has at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The number of places that each user takes, and what the places of a user share.
#[derive(Debug, Default)]
pub(crate) struct PerUser<T> {
    users: Mutex<HashMap<String, (usize, Arc<T>)>>,
}

impl<T: Default> PerUser<T> {
    /// Takes a place until the result is dropped; `None` if the user has as many as allowed.
    pub(crate) fn take(self: &Arc<Self>, user: &str, most: usize) -> Option<Place<T>> {
        self.take_many(user, 1, most)
    }

    /// Takes places until the result is dropped; `None` if the user would have more than allowed. A user without places may take any
    /// number.
    pub(crate) fn take_many(self: &Arc<Self>, user: &str, taken: usize, most: usize) -> Option<Place<T>> {
        let mut users = self.users.lock();
        let (count, shared) = users.entry(user.to_owned()).or_default();
        if *count > 0 && *count + taken > most {
            return None;
        }
        *count += taken;
        Some(Place {
            of: Arc::clone(self),
            user: user.to_owned(),
            taken,
            shared: Arc::clone(shared),
        })
    }
}

/// Places of a user.
#[derive(Debug)]
pub(crate) struct Place<T> {
    of: Arc<PerUser<T>>,
    user: String,
    taken: usize,
    pub(crate) shared: Arc<T>,
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let mut users = self.of.users.lock();
        if let Some((count, _)) = users.get_mut(&self.user) {
            *count -= self.taken;
            if *count == 0 {
                users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_user_and_given_back() {
        let all: Arc<PerUser<()>> = Arc::default();
        let first = all.take("a", 2);
        let second = all.take("a", 2);
        assert!(first.is_some() && second.is_some() && all.take("a", 2).is_none());
        assert!(all.take("b", 2).is_some());
        drop(first);
        assert!(all.take("a", 2).is_some());
        drop(second);
        let large = all.take_many("a", 9, 4);
        assert!(large.is_some() && all.take("a", 4).is_none());
        drop(large);
        assert!(all.users.lock().is_empty());
    }
}
