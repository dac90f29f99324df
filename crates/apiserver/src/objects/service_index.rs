//! The addresses and node ports of all services, kept up to date with their changes: no write decodes the services of others.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use windlass_store::{Key, Record, Store, Watcher};

/// What services have, as of the last change that was read.
#[derive(Default)]
pub(crate) struct Services(Mutex<Index>);

#[derive(Default)]
pub(crate) struct Index {
    watcher: Option<Watcher>,
    services: HashMap<Key, Held>,
    /// How many services have each of them.
    addresses: HashMap<Box<str>, usize>,
    ports: HashMap<i64, usize>,
}

/// What one service has.
#[derive(Default)]
struct Held {
    revision: u64,
    uid: Box<str>,
    address: Option<Box<str>>,
    ports: Vec<i64>,
}

impl Services {
    /// What services have now.
    pub(crate) fn current(&self, store: &Store, storage: &Arc<str>) -> MutexGuard<'_, Index> {
        let mut index = self.0.lock();
        index.update(store, storage);
        index
    }
}

impl Index {
    /// Reads the changes since the last time. Returns the number of services that were decoded.
    fn update(&mut self, store: &Store, storage: &Arc<str>) -> usize {
        let events = self.watcher.as_mut().and_then(|watcher| watcher.take().ok());
        let Some(events) = events else {
            return self.read_all(store, storage);
        };
        let mut decoded = 0;
        for event in events {
            if event.deleted {
                self.remove(&event.record.key);
            } else {
                decoded += usize::from(self.put(&event.record));
            }
        }
        decoded
    }

    /// Reads all services, at first or when too many changes are missed. Those that are the same are not decoded.
    fn read_all(&mut self, store: &Store, storage: &Arc<str>) -> usize {
        let (page, watcher) = store.list_and_watch(storage, None);
        self.watcher = Some(watcher);
        let stored: HashSet<&Key> = page.items.iter().map(|record| &record.key).collect();
        let gone = self.services.keys().filter(|key| !stored.contains(key));
        for key in gone.cloned().collect::<Vec<Key>>() {
            self.remove(&key);
        }
        page.items.iter().map(|record| usize::from(self.put(record))).sum()
    }

    /// Puts a service in place of the one with its key. Returns whether it was decoded.
    fn put(&mut self, record: &Record) -> bool {
        if self
            .services
            .get(&record.key)
            .is_some_and(|held| held.revision >= record.revision)
        {
            return false;
        }
        self.remove(&record.key);
        let held = Held::of(record);
        if let Some(address) = &held.address {
            *self.addresses.entry(address.clone()).or_default() += 1;
        }
        for port in &held.ports {
            *self.ports.entry(*port).or_default() += 1;
        }
        self.services.insert(record.key.clone(), held);
        true
    }

    fn remove(&mut self, key: &Key) {
        let Some(held) = self.services.remove(key) else {
            return;
        };
        if let Some(address) = &held.address {
            take_one(&mut self.addresses, address);
        }
        for port in &held.ports {
            take_one(&mut self.ports, port);
        }
    }

    /// What services other than this one have.
    pub(crate) fn others(&self, key: &Key, uid: &str) -> Others<'_> {
        Others {
            index: self,
            own: self.services.get(key).filter(|held| &*held.uid == uid),
        }
    }
}

fn take_one<K: Hash + Eq + Clone>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The addresses and ports of all services but one.
pub(crate) struct Others<'a> {
    index: &'a Index,
    own: Option<&'a Held>,
}

impl Others<'_> {
    pub(crate) fn have_address(&self, address: &str) -> bool {
        let own = self.own.is_some_and(|own| own.address.as_deref() == Some(address));
        self.index.addresses.get(address).copied().unwrap_or(0) > usize::from(own)
    }

    pub(crate) fn have_port(&self, port: i64) -> bool {
        let own = self
            .own
            .map_or(0, |own| own.ports.iter().filter(|p| **p == port).count());
        self.index.ports.get(&port).copied().unwrap_or(0) > own
    }
}

impl Held {
    /// Decodes only what is held. A service that cannot be read has nothing.
    fn of(record: &Record) -> Self {
        #[derive(Deserialize)]
        struct Service<'a> {
            #[serde(borrow)]
            spec: Option<Spec<'a>>,
        }
        #[derive(Deserialize)]
        struct Spec<'a> {
            #[serde(borrow, rename = "clusterIP")]
            address: Option<Cow<'a, str>>,
            ports: Option<Vec<Port>>,
        }
        #[derive(Deserialize)]
        struct Port {
            #[serde(rename = "nodePort")]
            number: Option<i64>,
        }
        let spec = serde_json::from_slice::<Service<'_>>(&record.value)
            .ok()
            .and_then(|service| service.spec);
        let (address, ports) = spec.map_or((None, None), |spec| (spec.address, spec.ports));
        Self {
            revision: record.revision,
            uid: record.header.uid.clone(),
            address: address
                .filter(|address| !matches!(&**address, "" | "None"))
                .map(Into::into),
            ports: ports.into_iter().flatten().filter_map(|port| port.number).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_store::{Change, Expect, Limits, Write};

    use super::*;
    use crate::objects::encoding::draft;

    struct World {
        store: Store,
        storage: Arc<str>,
        services: Services,
    }

    impl World {
        fn key(&self, name: &str) -> Key {
            Key::new(&self.storage, "default", name)
        }

        async fn write(&self, name: &str, change: Change) {
            let stored = self.store.get(&self.storage, "default", name);
            let expect = stored.map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
            let key = self.key(name);
            self.store.commit(vec![Write { key, expect, change }]).await.unwrap();
        }

        async fn put(&self, name: &str, address: &str, port: i64) {
            let service = serde_json::json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"clusterIP": address, "ports": [{"port": 1, "nodePort": port}, {"port": 2}]},
            });
            self.write(name, Change::Put(draft(&service))).await;
        }

        fn decoded(&self) -> usize {
            self.services.0.lock().update(&self.store, &self.storage)
        }

        /// Whether services other than one have an address, and a port.
        fn others(&self, name: &str, address: &str, port: i64) -> (bool, bool) {
            let index = self.services.current(&self.store, &self.storage);
            let others = index.others(&self.key(name), name);
            (others.have_address(address), others.have_port(port))
        }
    }

    #[tokio::test]
    async fn a_service_is_decoded_once_after_each_change() {
        let limits = Limits {
            log_events: 2,
            ..Limits::default()
        };
        let world = World {
            store: Store::memory(limits),
            storage: "services".into(),
            services: Services::default(),
        };
        for at in 0..5 {
            world.put(&format!("s{at}"), &format!("10.0.0.{at}"), 30_000 + at).await;
        }
        assert_eq!(world.decoded(), 5);
        assert_eq!(world.decoded(), 0);
        assert_eq!(world.others("new", "10.0.0.1", 30_001), (true, true));
        assert_eq!(world.others("s1", "10.0.0.1", 30_001), (false, false));
        world.put("s1", "10.0.0.9", 30_002).await;
        assert_eq!(world.decoded(), 1);
        assert_eq!(world.others("new", "10.0.0.1", 30_001), (false, false));
        assert_eq!(
            world.others("s1", "10.0.0.9", 30_002),
            (false, true),
            "another one has the port"
        );
        world.write("s2", Change::Delete(None)).await;
        assert_eq!(
            (world.decoded(), world.others("s1", "10.0.0.2", 30_002)),
            (0, (false, false))
        );
        // More changes than the history has.
        world.write("s3", Change::Delete(None)).await;
        for port in 0..4 {
            world.put("s4", "None", port).await;
        }
        assert_eq!(world.decoded(), 1);
        assert_eq!(world.others("new", "10.0.0.3", 30_003), (false, false));
        assert_eq!(world.others("new", "None", 3), (false, true));
        assert_eq!(world.others("new", "10.0.0.9", 30_002), (true, true));
    }
}
