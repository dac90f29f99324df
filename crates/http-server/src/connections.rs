//! The open connections of the server. One that does nothing ends after a while, and at once when a new one needs its place: clients that
//! reach the port must not be able to keep the API server away. What sends a body slowly does nothing, too.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many connections are open at a time.
const MOST: usize = 256;
/// How many of them have the same peer address. In a cluster, the API server may share its address with others.
const MOST_OF_A_PEER: usize = 192;
/// The time until the first request, with the TLS handshake.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// The time between two requests. API servers close idle connections after 90 s.
const IDLE: Duration = Duration::from_mins(2);
/// The time in which a body of an API server arrives.
const BRISK: Duration = Duration::from_secs(1);
/// Bytes of bodies that were received and not answered yet. Beyond it, connections that send slowly end.
const MOST_BYTES: usize = 64 << 20;

/// The open connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    all: BTreeMap<u64, Held>,
    /// Bytes of bodies of all connections.
    bytes: usize,
}

/// An open connection, as the others see it.
#[derive(Debug)]
struct Held {
    peer: IpAddr,
    replaced: CancellationToken,
    activity: Activity,
    /// Requests that are not answered yet.
    requests: BTreeMap<u64, Request>,
}

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Request {
    begun: Instant,
    /// Its body was received.
    arrived: bool,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Activity {
    /// A request was answered whose body was received.
    served: bool,
    /// The time of the last change.
    since: Instant,
}

/// Which connection ends first when a place is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It never sent a request.
    Unserved,
    /// It sends a body, and takes its time.
    Slow,
    /// It sends nothing.
    Idle,
    /// It sends a body.
    Arriving,
}

impl Held {
    /// When it ends, if nothing happens.
    fn deadline(&self) -> Option<Instant> {
        let limit = if self.activity.served { IDLE } else { FIRST_REQUEST };
        self.requests.is_empty().then_some(self.activity.since + limit)
    }

    /// How soon it ends when a place is needed. `None` when a request is answered.
    fn rank(&self, now: Instant) -> Option<(Rank, Instant)> {
        if self.requests.values().any(|request| request.arrived) {
            return None;
        }
        let oldest = self.requests.values().map(|request| request.begun).min();
        let since = oldest.unwrap_or(self.activity.since);
        let rank = match oldest {
            _ if !self.activity.served => Rank::Unserved,
            Some(begun) if now.saturating_duration_since(begun) >= BRISK => Rank::Slow,
            Some(_) => Rank::Arriving,
            None => Rank::Idle,
        };
        Some((rank, since))
    }

    fn bytes(&self) -> usize {
        self.requests.values().map(|request| request.bytes).sum()
    }
}

impl Open {
    /// Ends the connection that deserves it most, of those that are asked about. False if all of them are at work.
    fn end_one(&mut self, is_asked: impl Fn(&Held) -> bool) -> bool {
        let now = Instant::now();
        let candidates = self.all.iter().filter(|(_, one)| is_asked(one));
        let ranked = candidates.filter_map(|(number, one)| Some((one.rank(now)?, *number)));
        let Some((_, number)) = ranked.min() else {
            return false;
        };
        if let Some(ended) = self.all.remove(&number) {
            self.bytes -= ended.bytes();
            ended.replaced.cancel();
        }
        true
    }
}

impl Connections {
    /// Adds a connection. When there are too many, another one ends. `None` when all of them are at work.
    pub(crate) fn add(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let mut open = self.open.lock();
        let of_peer = open.all.values().filter(|one| one.peer == peer).count();
        let is_crowded = of_peer >= MOST_OF_A_PEER;
        if (is_crowded || open.all.len() >= MOST) && !open.end_one(|one| !is_crowded || one.peer == peer) {
            return None;
        }
        open.last += 1;
        let number = open.last;
        let replaced = CancellationToken::new();
        let held = Held {
            peer,
            replaced: replaced.clone(),
            activity: Activity {
                served: false,
                since: Instant::now(),
            },
            requests: BTreeMap::new(),
        };
        open.all.insert(number, held);
        Some(Place(Arc::new(Connection {
            connections: Arc::clone(self),
            number,
            replaced,
        })))
    }
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Connection>);

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    connections: Arc<Connections>,
    number: u64,
    replaced: CancellationToken,
}

impl Place {
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.0.connections.open.lock();
        if let Some(ended) = open.all.remove(&self.0.number) {
            open.bytes -= ended.bytes();
        }
    }
}

impl Connection {
    /// A request begins; it ends when the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        let mut open = self.connections.open.lock();
        open.last += 1;
        let number = open.last;
        if let Some(held) = open.all.get_mut(&self.number) {
            let begun = Instant::now();
            held.activity.since = begun;
            let request = Request {
                begun,
                arrived: false,
                bytes: 0,
            };
            held.requests.insert(number, request);
        }
        Running {
            connection: Arc::clone(self),
            number,
        }
    }

    /// Ends when the connection has to: it was idle for too long, or another one needs its place.
    pub(crate) async fn is_over(&self) {
        tokio::select! {
            () = self.is_replaced() => {}
            () = self.is_idle() => {}
        }
    }

    /// Ends when another connection needs the place.
    pub(crate) async fn is_replaced(&self) {
        self.replaced.cancelled().await;
    }

    /// Ends when the connection was idle for too long.
    pub(crate) async fn is_idle(&self) {
        loop {
            let deadline = {
                let open = self.connections.open.lock();
                // One that was replaced ends by that.
                open.all.get(&self.number).and_then(Held::deadline)
            };
            match deadline {
                Some(deadline) if deadline <= Instant::now() => return,
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                // A request runs, within its own time limit.
                None => tokio::time::sleep(FIRST_REQUEST).await,
            }
        }
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) struct Running {
    connection: Arc<Connection>,
    number: u64,
}

impl Running {
    /// A part of its body was received. When all bodies are too much together, the connection ends that deserves it most.
    pub(crate) fn received(&self, bytes: usize) {
        let mut open = self.connection.connections.open.lock();
        let held = open.all.get_mut(&self.connection.number);
        let Some(request) = held.and_then(|held| held.requests.get_mut(&self.number)) else {
            return;
        };
        request.bytes += bytes;
        open.bytes += bytes;
        while open.bytes > MOST_BYTES && open.end_one(|one| one.bytes() > 0) {}
    }

    /// Its body was received.
    pub(crate) fn arrived(&self) {
        let mut open = self.connection.connections.open.lock();
        let held = open.all.get_mut(&self.connection.number);
        if let Some(request) = held.and_then(|held| held.requests.get_mut(&self.number)) {
            request.arrived = true;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut open = self.connection.connections.open.lock();
        let Some(held) = open.all.get_mut(&self.connection.number) else {
            return;
        };
        let ended = held.requests.remove(&self.number);
        held.activity.since = Instant::now();
        if let Some(ended) = ended {
            held.activity.served |= ended.arrived;
            open.bytes -= ended.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn is_open(place: &Place) -> bool {
        place.0.connections.open.lock().all.contains_key(&place.0.number)
    }

    /// A request whose body was received.
    fn at_work(place: &Place) -> Running {
        let running = place.connection().begin();
        running.arrived();
        running
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_makes_room_and_one_at_work_does_not() {
        let connections = Arc::new(Connections::default());
        let server = connections.add(peer(1)).unwrap();
        drop(at_work(&server));
        let mut others: Vec<Place> = Vec::new();
        for number in 0..MOST {
            tokio::time::advance(Duration::from_millis(1)).await;
            others.push(connections.add(peer(2 + u8::try_from(number % 2).unwrap())).unwrap());
        }
        assert!(is_open(&server), "it has had a request");
        assert!(
            !is_open(&others[0]) && is_open(&others[1]),
            "the oldest without one goes"
        );
        others[0].connection().is_over().await;
        let running: Vec<Running> = others.iter().map(at_work).collect();
        assert!(connections.add(peer(1)).is_some(), "the idle one goes");
        assert!(!is_open(&server));
        let full = Arc::new(Connections::default());
        let places: Vec<Place> = (0..MOST_OF_A_PEER).map(|_| full.add(peer(1)).unwrap()).collect();
        let busy: Vec<Running> = places.iter().map(at_work).collect();
        assert!(full.add(peer(1)).is_none() && full.add(peer(2)).is_some());
        drop((running, busy));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_makes_room_before_an_idle_connection() {
        let connections = Arc::new(Connections::default());
        let server = connections.add(peer(1)).unwrap();
        drop(at_work(&server));
        let of_two_peers = |number: usize| peer(2 + u8::try_from(number % 2).unwrap());
        let slow: Vec<Place> = (1..MOST)
            .map(|number| connections.add(of_two_peers(number)).unwrap())
            .collect();
        for place in &slow {
            drop(at_work(place));
        }
        let bodies: Vec<Running> = slow.iter().map(|place| place.connection().begin()).collect();
        tokio::time::advance(BRISK).await;
        let new = connections.add(peer(5)).unwrap();
        assert!(is_open(&server) && is_open(&new));
        assert_eq!(slow.iter().filter(|place| !is_open(place)).count(), 1);
        drop(bodies);
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_much_memory_ends_the_slowest_first() {
        let connections = Arc::new(Connections::default());
        let (one, other) = (connections.add(peer(1)).unwrap(), connections.add(peer(1)).unwrap());
        for place in [&one, &other] {
            drop(at_work(place));
        }
        let slow = one.connection().begin();
        slow.received(MOST_BYTES / 2);
        tokio::time::advance(BRISK).await;
        let quick = other.connection().begin();
        quick.received(MOST_BYTES / 2);
        assert!(is_open(&one) && is_open(&other));
        quick.received(1);
        assert!(!is_open(&one) && is_open(&other));
        quick.arrived();
        quick.received(MOST_BYTES);
        assert!(is_open(&other), "it is answered");
        drop((slow, quick));
        assert_eq!(connections.open.lock().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_end_when_they_are_idle() {
        let connections = Arc::new(Connections::default());
        let place = connections.add(peer(1)).unwrap();
        let begun = Instant::now();
        place.connection().is_over().await;
        assert_eq!(begun.elapsed(), FIRST_REQUEST);
        let running = at_work(&place);
        let over = tokio::time::timeout(Duration::from_hours(1), place.connection().is_over());
        assert!(over.await.is_err(), "a request runs");
        drop(running);
        let begun = Instant::now();
        place.connection().is_over().await;
        assert_eq!(begun.elapsed(), IDLE);
    }
}
