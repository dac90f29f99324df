//! Counts what each user has at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The number of places that each user takes, and what the places of a user share.
#[derive(Debug, Default)]
pub(crate) struct PerUser<T> {
    users: Mutex<HashMap<String, OfUser<T>>>,
}

#[derive(Debug, Default)]
struct OfUser<T> {
    /// The number of places, and of those who have them: some have none, and still share.
    count: usize,
    holders: usize,
    shared: Arc<T>,
}

impl<T: Default> PerUser<T> {
    /// Takes a place until the result is dropped; `None` if the user has as many as allowed.
    pub(crate) fn take(self: &Arc<Self>, user: &str, most: usize) -> Option<Place<T>> {
        self.take_many(user, 1, most, 0)
    }

    /// Takes places until the result is dropped; `None` if the user would have more than allowed. A user who has no more than `few` may
    /// take any number.
    pub(crate) fn take_many(self: &Arc<Self>, user: &str, taken: usize, most: usize, few: usize) -> Option<Place<T>> {
        let mut users = self.users.lock();
        if let Some(of_user) = users.get(user)
            && of_user.count > few
            && of_user.count + taken > most
        {
            return None;
        }
        let of_user = users.entry(user.to_owned()).or_default();
        of_user.count += taken;
        of_user.holders += 1;
        Some(Place {
            of: Arc::clone(self),
            user: user.to_owned(),
            taken,
            shared: Arc::clone(&of_user.shared),
        })
    }

    /// Shares with those who have places of a user, and takes none.
    pub(crate) fn share(self: &Arc<Self>, user: &str) -> Place<T> {
        let mut users = self.users.lock();
        let of_user = users.entry(user.to_owned()).or_default();
        of_user.holders += 1;
        Place {
            of: Arc::clone(self),
            user: user.to_owned(),
            taken: 0,
            shared: Arc::clone(&of_user.shared),
        }
    }
}

impl<T> PerUser<T> {
    /// How many places a user has.
    pub(crate) fn count(&self, user: &str) -> usize {
        self.users.lock().get(user).map_or(0, |of_user| of_user.count)
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

impl<T> Place<T> {
    /// The name of the user.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let mut users = self.of.users.lock();
        if let Some(of_user) = users.get_mut(&self.user) {
            of_user.count -= self.taken;
            of_user.holders -= 1;
            if of_user.holders == 0 {
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
        let large = all.take_many("a", 9, 4, 0);
        assert!(large.is_some() && all.take("a", 4).is_none());
        assert_eq!((all.count("a"), all.count("b")), (9, 0));
        drop(large);
        let (few, more) = (all.take("a", 4), all.take_many("a", 9, 4, 1));
        assert!(few.is_some() && more.is_some() && all.take_many("a", 9, 4, 1).is_none());
        drop((few, more));
        let shares = all.share("a");
        let place = all.take("a", 1);
        assert!(place.is_some_and(|place| Arc::ptr_eq(&place.shared, &shares.shared)));
        assert_eq!(all.count("a"), 0);
        drop(shares);
        assert!(all.users.lock().is_empty());
    }
}
