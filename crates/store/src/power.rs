//! Whatever fails, and whenever the power goes: what was answered is there, what was not is there whole or not at all.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::codec::FileHeader;
use crate::files::fake::{Fake, Fate};
use crate::load::{FIRST, FIRST_REVISION, load, log_name};
use crate::log::{self, Log};
use crate::memory::Memory;
use crate::record::{Change, Draft, Expect, Header, Key, Write};
use crate::store::{Limits, evaluate};

/// What is stored: name and text.
type Content = BTreeMap<String, String>;

/// A store without threads of its own, on a folder that can fail.
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

    /// Changes one object; with no text it is removed. Gives whether that was answered as done.
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

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<String>, Option<String>),
    /// How the next operations go.
    Fates(Vec<Fate>),
    /// An orderly end, and a new start.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d")].prop_map(str::to_owned);
    let text = proptest::option::weighted(0.8, "[a-z]{1,200}");
    let set = (proptest::collection::vec(name, 1..4), text).prop_map(|(mut names, text)| {
        names.sort();
        names.dedup();
        Step::Set(names, text)
    });
    let fate = prop_oneof![4 => Just(Fate::Works), 1 => Just(Fate::Full), 1 => Just(Fate::Broken)];
    let fates = proptest::collection::vec(fate, 1..8).prop_map(Step::Fates);
    proptest::collection::vec(prop_oneof![8 => set, 2 => fates, 1 => Just(Step::Restart)], 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_was_answered_survives_a_power_cut(steps in steps(), choices in proptest::collection::vec(any::<u16>(), 64)) {
        let mut machine = Machine::start(&fresh()).unwrap();
        // What may be there after a start: what was answered, and each state that a write without an answer would have made.
        let mut possible = vec![machine.content()];
        let mut revision = machine.memory.revision;
        for step in &steps {
            match step {
                Step::Set(names, text) => {
                    let mut wanted = machine.content();
                    let before = wanted.clone();
                    let answered = machine.set(names, text.as_deref());
                    if answered {
                        possible = vec![machine.content()];
                        revision = machine.memory.revision;
                    } else {
                        prop_assert_eq!(machine.content(), before);
                        // The texts of what was not answered carry revisions that were not given.
                        let mut next = revision;
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
                        possible.push(wanted);
                    }
                }
                Step::Fates(fates) => machine.files.script(fates.iter().copied()),
                Step::Restart => {
                    machine.log.close();
                    machine.files.script([]);
                    let files = machine.files.clone();
                    machine = Machine::start(&files).map_err(TestCaseError::fail)?;
                    prop_assert!(possible.contains(&machine.content()), "{:?} is none of {possible:?}", machine.content());
                    prop_assert!(machine.memory.revision >= revision);
                    revision = machine.memory.revision;
                    possible = vec![machine.content()];
                }
            }
        }
        machine.files.die();
        machine.log.close();
        let mut choices = choices.iter().cycle();
        let files = machine.files.after_crash(|n| usize::from(*choices.next().unwrap()) % n.max(1));
        let after = Machine::start(&files).map_err(TestCaseError::fail)?;
        prop_assert!(possible.contains(&after.content()), "{:?} is none of {possible:?}", after.content());
        prop_assert!(after.memory.revision >= revision);
    }
}

fn filled() -> Machine {
    let mut machine = Machine::start(&fresh()).unwrap();
    for i in 0..5 {
        assert!(machine.set(&["a".to_owned()], Some(&format!("text {i}"))));
    }
    machine
}

#[test]
fn a_full_disk_is_told_and_gone_on_from() {
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
