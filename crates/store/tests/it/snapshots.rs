//! Snapshots: saved from a folder in use, restored into an empty one, refused if incomplete.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use windlass_store::{Limits, SnapshotError, Store, snapshot};

use crate::support::{remove, set, text, things};

fn open(folder: &Path) -> Store {
    Store::open(folder, Limits::default()).unwrap()
}

async fn filled(folder: &Path) -> Store {
    let store = open(folder);
    for i in 0..20 {
        set(&store, &format!("o{i}"), &format!("text {i}")).await.unwrap();
    }
    remove(&store, "o3").await;
    store
}

#[tokio::test]
async fn a_snapshot_of_a_folder_in_use_holds_what_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder.path().join("a")).await;
    let file = folder.path().join("saved");
    let saved = snapshot::save(&folder.path().join("a"), &file).unwrap();
    assert_eq!((saved.objects, saved.revision), (19, store.revision()));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let after = set(&store, "later", "x").await.unwrap();

    let restored = snapshot::restore(&file, &folder.path().join("b")).unwrap();
    assert_eq!(restored, saved);
    let other = open(&folder.path().join("b"));
    assert_eq!(other.count(&things()), 19);
    for i in (0..20).filter(|i| *i != 3) {
        let name = format!("o{i}");
        let (was, is) = (store.get(&things(), "ns", &name), other.get(&things(), "ns", &name));
        let (was, is) = (was.unwrap(), is.unwrap());
        assert_eq!((text(&was), was.revision), (text(&is), is.revision));
        assert_eq!(was.header, is.header);
    }
    // No revision is reused that a client may have seen. A watch from an earlier one gets "too old".
    assert!(other.revision() > after.revision);
    assert!(other.watch(&things(), after.revision).is_err());
    let new = set(&other, "new", "x").await.unwrap();
    assert_eq!(new.revision, other.revision());
    other.close().await;
    drop(other);
    assert_eq!(open(&folder.path().join("b")).revision(), new.revision);
    // Nor by another folder restored from the same snapshot.
    snapshot::restore(&file, &folder.path().join("c")).unwrap();
    assert!(open(&folder.path().join("c")).revision() > new.revision);
}

#[tokio::test]
async fn snapshots_are_consistent_under_writes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("a");
    let store = Store::open_with(&data, Limits::default(), Some(20_000)).unwrap();
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            // Each transaction writes its number to two objects.
            for i in 0..400_u32 {
                let expect = |name: &str| {
                    store
                        .get(&things(), "ns", name)
                        .map_or(windlass_store::Expect::Absent, |r| {
                            windlass_store::Expect::Revision(r.revision)
                        })
                };
                let filler = "x".repeat(300);
                let writes = ["left", "right"]
                    .map(|n| crate::support::put(n, &format!("{i} {filler}"), expect(n)))
                    .to_vec();
                store.commit(writes).await.unwrap();
            }
        })
    };
    let mut seen = 0;
    while !writer.is_finished() || seen == 0 {
        let file = folder.path().join(format!("saved-{seen}"));
        let (from, to) = (data.clone(), file.clone());
        let saved = tokio::task::spawn_blocking(move || snapshot::save(&from, &to))
            .await
            .unwrap()
            .unwrap();
        let back = folder.path().join(format!("back-{seen}"));
        snapshot::restore(&file, &back).unwrap();
        let other = open(&back);
        let number = |name: &str| {
            other
                .get(&things(), "ns", name)
                .map(|r| text(&r).split('"').nth(7).unwrap().to_owned())
        };
        assert_eq!(number("left"), number("right"));
        assert!(saved.objects == 2 || saved.objects == 0);
        seen += 1;
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn what_is_not_whole_or_not_empty_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("a");
    let file = folder.path().join("saved");
    assert!(
        snapshot::save(&data, &file)
            .unwrap_err()
            .to_string()
            .contains("cannot be read")
    );
    filled(&data).await.close().await;
    snapshot::save(&data, &file).unwrap();
    let words = snapshot::save(&data, &file).unwrap_err().to_string();
    assert!(words.contains("exists"), "{words}");
    let words = snapshot::restore(&file, &data).unwrap_err().to_string();
    assert!(words.contains("is not empty"), "{words}");

    let whole = fs::read(&file).unwrap();
    let target = folder.path().join("b");
    let check = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let error = snapshot::restore(&file, &target).unwrap_err();
        assert!(matches!(error, SnapshotError::Damaged { .. }), "{error}");
        assert!(!target.exists());
    };
    for length in [0, 1, 39, 40, 41, whole.len() / 2, whole.len() - 1] {
        check(&whole[..length]);
    }
    for at in (0..whole.len()).step_by(7).skip(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        check(&damaged);
    }
    check(&[whole.as_slice(), b"more"].concat());
    let newer = [b"windlass snap 2\n".as_slice(), &whole[16..]].concat();
    fs::write(&file, newer).unwrap();
    let words = snapshot::restore(&file, &target).unwrap_err().to_string();
    assert!(words.contains("windlass snap 2") && words.contains("newer"), "{words}");
    fs::write(&file, &whole).unwrap();
    snapshot::restore(&file, &target).unwrap();
}
