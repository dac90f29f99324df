//! Tests of faults and power loss: acknowledged writes survive, and others are complete or absent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::codec::FileHeader;
use crate::durable;
use crate::files::fake::{Fake, Fate};
use crate::load::{FIRST, FIRST_REVISION, load, log_name};
use crate::log::{self, Log};
use crate::memory::Memory;
use crate::record::{Change, Draft, Expect, Header, Key, Write};
use crate::store::{Limits, Store, evaluate};

/// The stored data: name and text.
type Content = BTreeMap<String, String>;

/// A store without its own threads, on a folder that can fail.
struct Machine {
    files: Fake,
    memory: Memory,
    log: Log,
}

fn draft(text: &str) -> Draft {
    Draft {
        header: Header::default(),
        value: format!("{{\"rv\":\"\",\"text\":\"{text}\"}}").into_bytes(),
        rv_at: 7,
    }
}

fn key(name: &str) -> Key {
    Key::new(&"things".into(), "", name)
}

fn fresh() -> Fake {
    let files = Fake::default();
    log::create(&files, &log_name(FIRST), &FileHeader::new(FIRST, FIRST_REVISION)).unwrap();
    files
}

impl Machine {
    fn start(files: &Fake) -> Result<Self, String> {
        let (memory, position) = load(files, Limits::default()).map_err(|e| e.to_string())?;
        let log = Log::resume(Arc::new(files.clone()), Path::new("/data").into(), &position, Some(600))
            .map_err(|e| e.to_string())?;
        Ok(Self {
            files: files.clone(),
            memory,
            log,
        })
    }

    /// Changes one object; without a text, removes it. Returns whether the write was acknowledged.
    fn set(&mut self, names: &[String], text: Option<&str>) -> bool {
        let writes: Vec<Write> = names
            .iter()
            .filter_map(|name| {
                let key = key(name);
                let have = self.memory.get(&key).map(|r| r.revision);
                let change = match text {
                    Some(text) => Change::Put(draft(text)),
                    None if have.is_none() => return None,
                    None if name == "b" => Change::Delete(Some(draft("last"))),
                    None => Change::Delete(None),
                };
                Some(Write {
                    key,
                    expect: have.map_or(Expect::Absent, Expect::Revision),
                    change,
                })
            })
            .collect();
        let from = self.memory.revision;
        let events = evaluate(writes, from, |key| self.memory.get(key).cloned()).unwrap();
        let Some(last) = events.last() else {
            return false;
        };
        if self.log.append(from, last.revision(), &events).is_err() {
            return false;
        }
        for event in &events {
            self.memory.apply(event);
        }
        let memory = &self.memory;
        self.log.tend(memory.revision, || memory.records());
        true
    }

    fn content(&self) -> Content {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let records = self.memory.records();
        records
            .iter()
            .map(|r| {
                assert!(r.shows_revision());
                (r.key.name().to_owned(), text(&r.value))
            })
            .collect()
    }
}

/// How a process ends.
#[derive(Debug, Clone)]
enum End {
    Orderly,
    /// Killed: the system keeps unsynced data.
    Killed,
    /// Unsynced data survives or not, as these numbers choose.
    PowerCut(Vec<u16>),
}

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<String>, Option<String>),
    /// Sets the results of the next operations.
    Fates(Vec<Fate>),
    /// An end and a new start, whose operations may fail as well.
    Restart(End, Vec<Fate>),
}

fn power_cut() -> impl Strategy<Value = End> {
    proptest::collection::vec(any::<u16>(), 64).prop_map(End::PowerCut)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d")].prop_map(str::to_owned);
    let text = proptest::option::weighted(0.8, "[a-z]{1,200}");
    let set = (proptest::collection::vec(name, 1..4), text).prop_map(|(mut names, text)| {
        names.sort();
        names.dedup();
        Step::Set(names, text)
    });
    let fate =
        prop_oneof![4 => Just(Fate::Works), 1 => Just(Fate::Full), 1 => Just(Fate::Broken), 1 => Just(Fate::Killed)];
    let fates = |least| proptest::collection::vec(fate.clone(), least..8);
    let end = prop_oneof![2 => Just(End::Orderly), 2 => Just(End::Killed), 1 => power_cut()];
    let restart = (end, fates(0)).prop_map(|(end, fates)| Step::Restart(end, fates));
    proptest::collection::vec(
        prop_oneof![8 => set, 2 => fates(1).prop_map(Step::Fates), 2 => restart],
        1..40,
    )
}

/// A machine, and its possible states after its end.
struct Trial {
    machine: Machine,
    /// The acknowledged state, and each state that later unacknowledged writes may have produced.
    possible: Vec<Content>,
    /// The last revision that was acknowledged, or seen after a start.
    revision: u64,
}

impl Trial {
    fn new() -> Self {
        let machine = Machine::start(&fresh()).unwrap();
        Self {
            possible: vec![machine.content()],
            revision: machine.memory.revision,
            machine,
        }
    }

    fn set(&mut self, names: &[String], text: Option<&str>) {
        let before = self.machine.content();
        let mut wanted = before.clone();
        if self.machine.set(names, text) {
            self.possible = vec![self.machine.content()];
            self.revision = self.machine.memory.revision;
            return;
        }
        assert_eq!(self.machine.content(), before);
        // Texts of unacknowledged writes carry revisions that were not assigned.
        let mut next = self.revision;
        for name in names {
            next += 1;
            match text {
                Some(text) => {
                    wanted.insert(name.clone(), format!("{{\"rv\":\"{next}\",\"text\":\"{text}\"}}"));
                }
                None if wanted.remove(name).is_none() => next -= 1,
                None => {}
            }
        }
        self.possible.push(wanted);
    }

    fn restart(&mut self, end: &End, fates: &[Fate]) -> Result<(), TestCaseError> {
        let old = self.machine.files.clone();
        let killed = match end {
            End::Orderly if !old.is_dead() => None,
            End::Orderly | End::Killed => Some(old.after_kill()),
            End::PowerCut(_) => {
                old.die();
                None
            }
        };
        // After a crash this only waits for running operations, whose results are ignored.
        self.machine.log.close();
        let files = match (end, killed) {
            (End::PowerCut(choices), _) => {
                let mut choices = choices.iter().cycle();
                old.after_crash(|n| usize::from(*choices.next().unwrap()) % n.max(1))
            }
            (_, killed) => killed.unwrap_or(old),
        };
        files.script(fates.iter().copied());
        let mut files = files;
        let machine = Machine::start(&files).or_else(|_| {
            files = files.after_kill();
            Machine::start(&files)
        });
        self.machine = machine.map_err(TestCaseError::fail)?;
        files.script([]);
        let content = self.machine.content();
        prop_assert!(
            self.possible.contains(&content),
            "{content:?} is none of {:?}",
            self.possible
        );
        prop_assert!(self.machine.memory.revision >= self.revision);
        // Readers see this revision from now on: it must not be undone.
        self.revision = self.machine.memory.revision;
        self.possible = vec![content];
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_was_answered_or_seen_survives_any_end(steps in steps(), last in power_cut()) {
        let mut trial = Trial::new();
        for step in &steps {
            match step {
                Step::Set(names, text) if !trial.machine.files.is_dead() => trial.set(names, text.as_deref()),
                Step::Set(..) => {}
                Step::Fates(fates) => trial.machine.files.script(fates.iter().copied()),
                Step::Restart(end, fates) => trial.restart(end, fates)?,
            }
        }
        trial.restart(&last, &[])?;
    }
}

fn filled() -> Machine {
    let mut machine = Machine::start(&fresh()).unwrap();
    for i in 0..5 {
        assert!(machine.set(&["a".to_owned()], Some(&format!("text {i}"))));
    }
    machine
}

#[tokio::test]
async fn a_store_reports_that_its_folder_cannot_be_written_until_it_can() {
    let (files, path) = (fresh(), Path::new("/data"));
    let opened = durable::open_files(Arc::new(files.clone()), path, Limits::default(), None, None);
    let (disk, memory) = opened.unwrap();
    let store = Store::start(disk, memory).unwrap();
    let put = |name: &str| Write {
        key: key(name),
        expect: Expect::Absent,
        change: Change::Put(draft("x")),
    };
    files.script([Fate::Full]);
    assert!(store.trouble().is_none());
    assert!(store.commit(vec![put("a")]).await.is_err());
    assert!(store.trouble().unwrap().full);
    store.commit(vec![put("a")]).await.unwrap();
    assert!(store.trouble().is_none());
    store.close().await;
}

#[tokio::test]
async fn a_store_at_rest_notices_that_its_folder_can_be_written_again() {
    let (files, path) = (fresh(), Path::new("/data"));
    let opened = durable::open_files(Arc::new(files.clone()), path, Limits::default(), None, None);
    let (disk, memory) = opened.unwrap();
    let store = Store::start(disk, memory).unwrap();
    let put = |name: &str| Write {
        key: key(name),
        expect: Expect::Absent,
        change: Change::Put(draft("x")),
    };
    store.commit(vec![put("a")]).await.unwrap();
    files.script([Fate::Full, Fate::Works, Fate::Works, Fate::Full]);
    assert!(store.commit(vec![put("b")]).await.is_err());
    let (trying, written) = (store.clone(), store.revision());
    let task = tokio::spawn(async move { trying.keep_trying().await });
    let ended = tokio::time::timeout(std::time::Duration::from_mins(1), store.until_written());
    ended.await.unwrap();
    assert!(store.trouble().is_none());
    assert_eq!(store.revision(), written, "an attempt changes nothing");
    task.abort();
    store.commit(vec![put("b")]).await.unwrap();
    store.close().await;
    let content = Machine::start(&files).unwrap().content();
    assert_eq!(content.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_full_disk_is_reported_and_recovered_from() {
    let mut machine = filled();
    let before = machine.content();
    machine.files.script([Fate::Full]);
    let from = machine.memory.revision;
    let write = Write {
        key: key("b"),
        expect: Expect::Absent,
        change: Change::Put(draft("x")),
    };
    let events = evaluate(vec![write], from, |_| None).unwrap();
    let error = machine.log.append(from, from + 1, &events).unwrap_err();
    assert!(error.full, "{error}");
    assert!(
        error.to_string().starts_with("data folder /data cannot be written: "),
        "{error}"
    );
    assert!(
        error.to_string().ends_with("make room there, and writes go on"),
        "{error}"
    );
    assert_eq!(Machine::start(&machine.files).unwrap().content(), before);
    assert!(machine.set(&["b".to_owned()], Some("y")));
    assert_eq!(Machine::start(&machine.files).unwrap().content(), machine.content());
}

#[test]
fn a_log_whose_sync_failed_is_given_up_for_another() {
    let mut machine = filled();
    machine.files.script([Fate::Works, Fate::Broken]);
    assert!(!machine.set(&["b".to_owned()], Some("lost")));
    assert!(machine.set(&["c".to_owned()], Some("kept")));
    let again = Machine::start(&machine.files).unwrap();
    assert_eq!(again.content(), machine.content());
    assert!(!again.content().contains_key("b"));
}

#[test]
fn what_a_killed_process_did_not_sync_lasts_once_it_was_seen() {
    let mut machine = filled();
    machine.files.script([Fate::Works, Fate::Killed]);
    assert!(!machine.set(&["b".to_owned()], Some("never answered")));
    let seen = Machine::start(&machine.files.after_kill()).unwrap();
    assert!(seen.content().contains_key("b"));
    seen.files.die();
    let after = Machine::start(&seen.files.after_crash(|_| 0)).unwrap();
    assert_eq!(after.content(), seen.content());
    assert_eq!(after.memory.revision, seen.memory.revision);
}

#[test]
fn a_log_that_a_killed_process_began_lasts_before_it_is_written() {
    let mut machine = Machine::start(&fresh()).unwrap();
    let to_its_name = [Fate::Works; 4];
    machine.files.script([Fate::Works, Fate::Broken, Fate::Works]);
    assert!(!machine.set(&["b".to_owned()], Some("lost")));
    machine.files.script(to_its_name.into_iter().chain([Fate::Killed]));
    assert!(!machine.set(&["b".to_owned()], Some("never answered")));
    let mut next = Machine::start(&machine.files.after_kill()).unwrap();
    assert!(next.set(&["c".to_owned()], Some("answered")));
    next.files.die();
    let after = Machine::start(&next.files.after_crash(|_| 0)).unwrap();
    assert_eq!(after.content(), next.content());
}

#[test]
fn damage_before_the_end_is_never_taken_for_the_end() {
    let machine = filled();
    let whole = machine.content();
    let bytes = {
        use crate::files::Files as _;
        use std::io::Read as _;
        let (mut input, _) = machine.files.open(&log_name(FIRST)).unwrap();
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).unwrap();
        bytes
    };
    let with = |bytes: &[u8]| {
        use crate::files::Files as _;
        let files = Fake::default();
        let mut file = files.create(&log_name(FIRST)).unwrap();
        file.write(bytes).unwrap();
        Machine::start(&files).map(|m| m.content())
    };
    assert_eq!(with(&bytes), Ok(whole));
    let last = bytes.len() * 4 / 5 - 40;
    for at in 0..last {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let error = with(&damaged).unwrap_err();
        assert!(error.contains(&log_name(FIRST)), "byte {at}: {error}");
    }
}
