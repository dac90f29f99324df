//! The open connections of the server. One that does nothing ends after a while, and at once when a new one needs its place: clients that
//! reach the port must not be able to keep the API server away.

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

/// The open connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    all: BTreeMap<u64, Arc<Connection>>,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    peer: IpAddr,
    activity: Mutex<Activity>,
    replaced: CancellationToken,
}

#[derive(Clone, Copy, Debug)]
struct Activity {
    /// Requests that are answered now.
    running: usize,
    /// A request was answered.
    served: bool,
    /// The time of the last change.
    since: Instant,
}

impl Activity {
    /// When the connection ends, if nothing happens.
    fn deadline(&self) -> Option<Instant> {
        let limit = if self.served { IDLE } else { FIRST_REQUEST };
        (self.running == 0).then_some(self.since + limit)
    }
}

impl Connections {
    /// Adds a connection. When there are too many, one that does nothing ends: one without a request first, then the one that was idle for
    /// the longest time. `None` when all of them are at work.
    pub(crate) fn add(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let mut open = self.open.lock();
        let of_peer = open.all.values().filter(|one| one.peer == peer).count();
        let is_crowded = of_peer >= MOST_OF_A_PEER;
        if is_crowded || open.all.len() >= MOST {
            let idle = open.all.iter().filter(|(_, one)| !is_crowded || one.peer == peer);
            let idle = idle.map(|(number, one)| (*number, *one.activity.lock()));
            let (number, _) = idle
                .filter(|(_, activity)| activity.running == 0)
                .min_by_key(|(_, activity)| (activity.served, activity.since))?;
            if let Some(replaced) = open.all.remove(&number) {
                replaced.replaced.cancel();
            }
        }
        open.last += 1;
        let number = open.last;
        let connection = Arc::new(Connection {
            peer,
            activity: Mutex::new(Activity {
                running: 0,
                served: false,
                since: Instant::now(),
            }),
            replaced: CancellationToken::new(),
        });
        open.all.insert(number, Arc::clone(&connection));
        Some(Place {
            connections: Arc::clone(self),
            number,
            connection,
        })
    }
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    connections: Arc<Connections>,
    number: u64,
    pub(crate) connection: Arc<Connection>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open.lock().all.remove(&self.number);
    }
}

impl Connection {
    /// A request begins; it ends when the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        let mut activity = self.activity.lock();
        activity.running += 1;
        activity.since = Instant::now();
        drop(activity);
        Running(Arc::clone(self))
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
            let deadline = self.activity.lock().deadline();
            match deadline {
                Some(deadline) if deadline <= Instant::now() => return,
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                // A request runs, within its own time limit.
                None => tokio::time::sleep(FIRST_REQUEST).await,
            }
        }
    }
}

/// A request that is answered.
#[derive(Debug)]
pub(crate) struct Running(Arc<Connection>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut activity = self.0.activity.lock();
        activity.running -= 1;
        activity.served = true;
        activity.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn is_open(place: &Place) -> bool {
        place.connections.open.lock().all.contains_key(&place.number)
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_makes_room_and_one_at_work_does_not() {
        let connections = Arc::new(Connections::default());
        let server = connections.add(peer(1)).unwrap();
        drop(server.connection.begin());
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
        others[0].connection.is_over().await;
        let running: Vec<Running> = others.iter().map(|place| place.connection.begin()).collect();
        assert!(connections.add(peer(1)).is_some(), "the idle one goes");
        assert!(!is_open(&server));
        let full = Arc::new(Connections::default());
        let places: Vec<Place> = (0..MOST_OF_A_PEER).map(|_| full.add(peer(1)).unwrap()).collect();
        let at_work: Vec<Running> = places.iter().map(|place| place.connection.begin()).collect();
        assert!(full.add(peer(1)).is_none() && full.add(peer(2)).is_some());
        drop((running, at_work));
    }

    #[tokio::test(start_paused = true)]
    async fn connections_end_when_they_are_idle() {
        let connections = Arc::new(Connections::default());
        let place = connections.add(peer(1)).unwrap();
        let begun = Instant::now();
        place.connection.is_over().await;
        assert_eq!(begun.elapsed(), FIRST_REQUEST);
        let running = place.connection.begin();
        let over = tokio::time::timeout(Duration::from_hours(1), place.connection.is_over());
        assert!(over.await.is_err(), "a request runs");
        drop(running);
        let begun = Instant::now();
        place.connection.is_over().await;
        assert_eq!(begun.elapsed(), IDLE);
    }
}
