//! Turns of work that clients without rights can cause: few at a time, few that wait, and no others.

use tokio::sync::{Semaphore, SemaphorePermit};

/// A queue of limited length.
#[derive(Debug)]
pub struct Turns {
    turns: Semaphore,
    places: Semaphore,
}

/// A place in the queue, until it is dropped.
#[derive(Debug)]
pub struct Place<'a> {
    turns: &'a Semaphore,
    _place: SemaphorePermit<'a>,
}

/// Work that may be done, until this is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    _permit: Option<SemaphorePermit<'a>>,
}

impl Turns {
    /// A queue with so many turns at a time, for which so many others wait.
    pub fn new(at_a_time: usize, waiting: usize) -> Self {
        Self {
            turns: Semaphore::new(at_a_time),
            places: Semaphore::new(at_a_time + waiting),
        }
    }

    /// A place in the queue; none if it is full.
    pub fn queue(&self) -> Option<Place<'_>> {
        let place = self.places.try_acquire().ok()?;
        Some(Place {
            turns: &self.turns,
            _place: place,
        })
    }
}

impl Place<'_> {
    /// Waits for the turn.
    pub async fn turn(&self) -> Turn<'_> {
        // The semaphore is never closed.
        Turn {
            _permit: self.turns.acquire().await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn few_have_a_turn_few_wait_and_others_are_refused() {
        let turns = Turns::new(2, 1);
        let mut places: Vec<Place<'_>> = (0..3).filter_map(|_| turns.queue()).collect();
        assert_eq!(places.len(), 3);
        assert!(turns.queue().is_none());
        let last = places.pop().unwrap();
        let (one, other) = (places[0].turn().await, places[1].turn().await);
        let waits = tokio::time::timeout(Duration::from_secs(1), last.turn()).await;
        assert!(waits.is_err());
        drop(other);
        let waits = tokio::time::timeout(Duration::from_secs(1), last.turn()).await;
        assert!(waits.is_ok());
        drop(waits);
        drop(one);
        drop(places);
        assert!(turns.queue().is_some());
    }
}
