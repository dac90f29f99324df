//! Data folders: durability, and the errors of unusable folders.

use std::fs;
use std::path::Path;

use windlass_store::{Expect, Limits, OpenError, Store};

use crate::support::{put, remove, set, text, things};

fn open(folder: &Path) -> Result<Store, OpenError> {
    Store::open(folder, Limits::default())
}

fn refusal(folder: &Path) -> String {
    open(folder).unwrap_err().to_string()
}

#[tokio::test]
async fn a_folder_opened_again_holds_what_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let a = set(&store, "a", "x").await.unwrap();
    set(&store, "b", "y").await.unwrap();
    remove(&store, "b").await;
    let revision = store.revision();
    store.close().await;
    assert!(set(&store, "c", "z").await.is_err());
    let again = open(folder.path()).unwrap();
    assert_eq!(again.revision(), revision);
    let record = again.get(&things(), "ns", "a").unwrap();
    assert_eq!((text(&record), record.header.clone()), (text(&a), a.header.clone()));
    assert!(again.get(&things(), "ns", "b").is_none());
    // History survives as far as the log reaches.
    let mut before = again.watch(&things(), a.revision).unwrap();
    let events = before.take().unwrap();
    assert_eq!(events.len(), 2);
    assert!(events[1].deleted && text(&events[1].record).contains('y'));
    let mut watcher = again.watch(&things(), revision).unwrap();
    set(&again, "b", "z").await.unwrap();
    assert_eq!(watcher.take().unwrap().len(), 1);
}

#[tokio::test]
async fn concurrent_writers_of_one_object_all_learn_who_won() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let writes = (0..50).map(|i| {
        let store = store.clone();
        async move {
            store
                .commit(vec![put("a", &i.to_string(), Expect::Absent)])
                .await
                .is_ok()
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    for write in writes {
        tasks.spawn(write);
    }
    let won = tasks.join_all().await.into_iter().filter(|ok| *ok).count();
    assert_eq!(won, 1);
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let _store = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(OpenError::InUse { .. })));
    assert!(refusal(folder.path()).contains("in use by another process"));
}

#[tokio::test]
async fn a_folder_of_another_format_is_left_alone() {
    let check = async |found: &str, expect: &str| {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path()).unwrap().close().await;
        let marker = folder.path().join("windlass-store-format");
        fs::write(&marker, format!("{found}\n")).unwrap();
        let words = refusal(folder.path());
        assert!(words.contains(found) && words.contains("windlass store 2"), "{words}");
        assert!(words.contains(expect), "{words}");
        assert!(words.contains(&folder.path().display().to_string()), "{words}");
        assert_eq!(fs::read_to_string(&marker).unwrap(), format!("{found}\n"));
    };
    check("windlass store 99", "a newer version of the program wrote it").await;
    check("windlass store 1", "before its first release").await;
    check("something else", "use the program that wrote it").await;
}

#[test]
fn data_without_a_marker_is_not_ours() {
    for name in ["objects.redb", "log-0000000001", "base-0000000007"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        fs::write(&file, "something").unwrap();
        assert!(matches!(open(folder.path()), Err(OpenError::Foreign { .. })));
        assert_eq!(fs::read(file).unwrap(), b"something");
    }
}

#[tokio::test]
async fn a_folder_half_made_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    // The state after a crash between the steps of the first start.
    fs::write(folder.path().join("log-0000000001.new"), "half").unwrap();
    fs::write(folder.path().join("windlass-store-format"), "windlass store 2\n").unwrap();
    let store = open(folder.path()).unwrap();
    set(&store, "a", "x").await.unwrap();
}

#[tokio::test]
async fn a_folder_that_lost_its_log_is_not_started_empty() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).unwrap().close().await;
    fs::remove_file(folder.path().join("log-0000000001")).unwrap();
    let words = refusal(folder.path());
    assert!(words.contains("log-0000000001 is missing"), "{words}");
    assert!(!folder.path().join("log-0000000001").exists());
}

#[test]
fn of_many_that_begin_a_folder_at_once_one_has_it() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let barrier = std::sync::Barrier::new(4);
        let opened: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        open(folder.path())
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let (have, not): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
        assert_eq!(have.len(), 1, "{not:?}");
        for error in not {
            assert!(matches!(error, Err(OpenError::InUse { .. })), "{error:?}");
        }
    }
}

/// A folder with three objects, and its only log file.
async fn closed() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for name in ["a", "b", "c"] {
        set(&store, name, "x").await.unwrap();
    }
    store.close().await;
    let log = folder.path().join("log-0000000001");
    (folder, log)
}

#[tokio::test]
async fn damage_is_named_and_kept() {
    let (folder, log) = closed().await;
    let mut damaged = fs::read(&log).unwrap();
    damaged[100] ^= 1;
    fs::write(&log, &damaged).unwrap();
    let words = refusal(folder.path());
    assert!(words.contains(&folder.path().display().to_string()), "{words}");
    assert!(words.contains("restore a snapshot"), "{words}");
    assert_eq!(fs::read(&log).unwrap(), damaged);
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_named_and_kept() {
    let (folder, log) = closed().await;
    let whole = fs::read(&log).unwrap();
    // An incomplete copy.
    for length in [0, 30, 40, whole.len() / 2, whole.len() - 1] {
        fs::write(&log, &whole[..length]).unwrap();
        let words = refusal(folder.path());
        assert!(words.contains("is damaged"), "{words}");
        assert_eq!(fs::read(&log).unwrap(), &whole[..length]);
    }
    fs::write(&log, &whole).unwrap();
    assert_eq!(open(folder.path()).unwrap().count(&things()), 3);
}

#[tokio::test]
async fn a_log_that_has_grown_is_replaced_by_what_it_led_to() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open_with(folder.path(), Limits::default(), Some(10_000)).unwrap();
    let filler = "x".repeat(500);
    let mut want = Vec::new();
    for round in 0..4 {
        let store = open();
        for i in 0..50 {
            set(&store, &format!("o{}", i % 7), &format!("{round}-{i}-{filler}"))
                .await
                .unwrap();
        }
        remove(&store, "o3").await;
        set(&store, &format!("kept-{round}"), "x").await.unwrap();
        let (revision, count) = (store.revision(), store.count(&things()));
        store.close().await;
        drop(store);
        want.push(format!("kept-{round}"));
        let again = open();
        assert_eq!((again.revision(), again.count(&things())), (revision, count));
        for name in &want {
            assert!(again.get(&things(), "ns", name).is_some(), "{name}");
        }
        again.close().await;
    }
    let size: u64 = fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().metadata().unwrap().len())
        .sum();
    // All writes together take 120 kB; a new base may still be on its way.
    assert!(size < 90_000, "{size} bytes for 11 small objects");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let words = refusal(&file.join("below"));
    assert!(words.contains("cannot be made"), "{words}");
}

#[test]
fn a_folder_that_may_not_be_written_is_named_with_what_to_do() {
    // The user of tests may have all permissions, so the error of the system is simulated here.
    for kind in [
        std::io::ErrorKind::PermissionDenied,
        std::io::ErrorKind::ReadOnlyFilesystem,
    ] {
        let error = OpenError::Io {
            path: "/data".into(),
            what: "cannot be written".to_owned(),
            source: kind.into(),
        };
        let words = error.to_string();
        assert!(words.starts_with("data folder /data cannot be written: "), "{words}");
        assert!(
            words.contains("readable and writable for the user who runs this"),
            "{words}"
        );
    }
}

#[test]
fn only_the_owner_of_a_data_folder_can_look_into_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/b");
    drop(Store::open(&folder, Limits::default()).unwrap());
    for made in [folder.as_path(), folder.parent().unwrap()] {
        let mode = std::fs::metadata(made).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", made.display());
    }
}
