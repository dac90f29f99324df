//! What reviews wait for: a processor, the API server, and room in memory.
//!
//! Every client that reaches the port can send reviews. A rule keeps a worker of the runtime busy, and the other tasks of the process, such as
//! the renewal of its Lease, need one too. So reviews leave one worker free, whatever their size.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use windlass_http_server::{Place, Turn, Turns};

/// The number of reviews at a time about which the API server is asked.
pub(crate) const AT_A_TIME: usize = 8;
/// The number of reviews that wait for that.
pub(crate) const WAITING: usize = 1_024;
/// The size from which a body is large.
pub(crate) const LARGE: usize = 256 << 10;
/// The size from which work may take long. A worker that is kept busy may be the one that was to look at timers and sockets, and then the
/// others sleep on: it has to hand over first.
const LONG: usize = 64 << 10;
/// The number of large reviews that wait for their turn, or arrive. They are in memory meanwhile.
pub(crate) const LARGE_WAITING: usize = 15;
/// The bytes of all other bodies that have arrived and are not answered.
const ROOM: usize = 32 << 20;
/// Of these, the bytes of reviews that wait for the API server. Their objects are decoded, which takes some times as much.
pub(crate) const ROOM_OF_READS: usize = 16 << 20;

/// The queues of a server.
pub(crate) struct Queues {
    /// As many as reviews may keep workers busy.
    processors: Semaphore,
    large: Turns,
    reads: Turns,
    room: Room,
    room_of_reads: Room,
}

/// Works while another thread takes over what else the current one had to do. A runtime with a single thread has no other.
fn at_once<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Room for bodies.
struct Room(Semaphore);

impl Room {
    /// The unit of room.
    const UNIT: usize = 1 << 10;

    fn of(bytes: usize) -> Self {
        Self(Semaphore::new(bytes / Self::UNIT))
    }

    /// Room for a body, until it is dropped; none if there is not enough.
    fn take(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        let units = u32::try_from(bytes / Self::UNIT + 1).ok()?;
        self.0.try_acquire_many(units).ok()
    }
}

/// A review that has arrived.
pub(crate) struct Arrived<'a> {
    queues: &'a Queues,
    bytes: usize,
    large: Option<Place<'a>>,
    _room: Option<SemaphorePermit<'a>>,
}

/// The place of a review among those that need the API server.
pub(crate) struct Reading<'a> {
    place: Place<'a>,
    _room: Option<SemaphorePermit<'a>>,
}

impl Queues {
    /// Queues for the runtime of the caller.
    pub(crate) fn new() -> Self {
        let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        // Large ones leave another worker free, if there is one, so that small ones pass them.
        let free = |number: usize| workers.saturating_sub(number).max(1);
        Self {
            processors: Semaphore::new(free(1)),
            large: Turns::new(free(2), LARGE_WAITING),
            reads: Turns::new(AT_A_TIME, WAITING),
            room: Room::of(ROOM),
            room_of_reads: Room::of(ROOM_OF_READS),
        }
    }

    /// A place for a large review, whose body may arrive then; none if there are too many.
    pub(crate) fn large(&self) -> Option<Place<'_>> {
        self.large.queue()
    }

    /// A review of this size that has arrived, which is large if it has a place; none if there is no room.
    pub(crate) fn arrived<'a>(&'a self, bytes: usize, large: Option<Place<'a>>) -> Option<Arrived<'a>> {
        let room = match large {
            Some(_) => None,
            None => Some(self.room.take(bytes)?),
        };
        Some(Arrived {
            queues: self,
            bytes,
            large,
            _room: room,
        })
    }
}

impl Arrived<'_> {
    /// Does some work for the review that needs a processor, when one is free for it.
    pub(crate) async fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        // A large one waits for others of its kind first, so small ones wait for few of them.
        let _large = match &self.large {
            Some(place) => Some(place.turn().await),
            None => None,
        };
        // The semaphore is never closed.
        let _processor = self.queues.processors.acquire().await.ok();
        if self.bytes < LONG {
            return work();
        }
        at_once(work)
    }

    /// A place among the reviews that need the API server; none if there are too many.
    pub(crate) fn reading(&self) -> Option<Reading<'_>> {
        let room = match self.large {
            Some(_) => None,
            None => Some(self.queues.room_of_reads.take(self.bytes)?),
        };
        Some(Reading {
            place: self.queues.reads.queue()?,
            _room: room,
        })
    }
}

impl Reading<'_> {
    /// Waits until the API server may be asked for the review.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        self.place.turn().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_room_until_they_are_answered() {
        let queues = Queues::new();
        let arrived: Vec<_> = (0..).map_while(|_| queues.arrived(LARGE, None)).collect();
        let bytes = arrived.len() * LARGE;
        assert!(bytes <= ROOM && bytes > ROOM - ROOM / 50, "{bytes}");
        let reading: Vec<_> = arrived.iter().map_while(Arrived::reading).collect();
        let bytes = reading.len() * LARGE;
        assert!(
            bytes <= ROOM_OF_READS && bytes > ROOM_OF_READS - ROOM_OF_READS / 50,
            "{bytes}"
        );
        // A large one has its place.
        let large = queues.arrived(8 << 20, queues.large()).unwrap();
        assert!(large.reading().is_some());
        drop(reading);
        assert!(arrived[0].reading().is_some());
        drop(arrived);
        assert!(queues.arrived(LARGE, None).is_some());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn timers_go_on_while_a_large_review_is_answered() {
        let (queues, (sender, timer)) = (Queues::new(), std::sync::mpsc::channel());
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            sender.send(()).unwrap();
        });
        let answering = tokio::spawn(async move {
            let arrived = queues.arrived(LARGE, None).unwrap();
            let answered = arrived
                .work(move || timer.recv_timeout(std::time::Duration::from_mins(1)))
                .await;
            answered.expect("the timer ends while the review is answered");
        });
        answering.await.unwrap();
    }
}
