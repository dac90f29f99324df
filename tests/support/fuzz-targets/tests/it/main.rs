//! Every seed of every fuzz target is replayed, and every target has seeds. Inputs that are made from the seeds at random are tried,
//! too: a few of each target, and for as many seconds as `WINDLASS_FUZZ_SECONDS` says of one, which `WINDLASS_SEED` chooses.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use windlass_fuzz_targets::{
    admission, apply, bodies, cel, charts, envsubst, frames, grants, kubeconfigs, manifests, owners, patch, queries,
    registries, releases, requests, reviews, settings, streams, values,
};

/// Counts what is allocated.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;
/// Held by the test whose inputs are measured: all tests of the process allocate.
static MEASURED: Mutex<()> = Mutex::new(());

/// A target by the name of its folder of seeds.
type Target = (&'static str, fn(&[u8]));

/// All targets. Those that take a text do not see what is none.
const TARGETS: [Target; 20] = [
    ("admission", admission::run),
    ("apply", apply::run),
    ("bodies", bodies::run),
    ("cel", cel::run),
    ("charts", charts::run),
    ("envsubst", |input| text(input, envsubst::run)),
    ("frames", frames::run),
    ("grants", grants::run),
    ("kubeconfigs", kubeconfigs::run),
    ("manifests", |input| text(input, manifests::run)),
    ("owners", owners::run),
    ("patch", patch::run),
    ("queries", queries::run),
    ("registries", registries::run),
    ("releases", releases::run),
    ("requests", requests::run),
    ("reviews", reviews::run),
    ("settings", |input| text(input, settings::run)),
    ("streams", streams::run),
    ("values", values::run),
];

/// Inputs of each target that are made from seeds.
const MADE: usize = 40;
/// The target that starts processes for each input, and gets fewer.
const SLOW: &str = "charts";
/// The most bytes of such an input.
const LONGEST: usize = 64 << 10;
/// The time in which a target has to end with an input, without optimisation. It is ten times the most that any took on a very busy machine.
const LIMIT: Duration = Duration::from_mins(1);
/// The same for the target that starts processes, each of which may wait for the processor.
const SLOW_LIMIT: Duration = Duration::from_mins(2);
/// The bytes that a target may have at a time beside those that its process had before: for any input, and for each byte of the input. Inputs
/// made from seeds took up to 1.3 MiB, and up to 400 bytes for each of theirs.
const MEMORY: (usize, usize) = (32 << 20, 2000);

fn text(input: &[u8], run: fn(&str)) {
    if let Ok(text) = std::str::from_utf8(input) {
        run(text);
    }
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    let stem = |entry: fs::DirEntry| entry.path().file_stem().unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| stem(entry.unwrap())).collect()
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = fs::read_dir(fuzz().join("seeds").join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn no_seed_makes_a_target_panic() {
    let known: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(known, names(&fuzz().join("targets")), "targets of cargo-fuzz");
    assert_eq!(known, names(&fuzz().join("seeds")), "folders of seeds");
    let _measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    for target in TARGETS {
        let seeds = seeds(target.0);
        assert!(!seeds.is_empty(), "{} has no seeds", target.0);
        for seed in seeds.iter().map(Vec::as_slice).chain([&[][..]]) {
            bounded(target, seed);
        }
    }
}

/// Requests of which each once took gigabytes, as two numbers that their sender chooses were multiplied: the length of a path with the
/// number of duplicate fields below it, and controllers with references in the error about each of them.
#[test]
fn memory_does_not_grow_with_a_product() {
    let _measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    let most = 100 << 20;
    // Fields of different names, as equal errors are reported once.
    let twice: Vec<String> = (0..10_000).map(|at| format!("\"a{at}\":1,\"a{at}\":1")).collect();
    // The first byte chooses JSON.
    let duplicates = format!("\0{{\"{}\":{{{}}}}}", "k".repeat(100_000), twice.join(","));
    bounded_by(most, ("bodies", bodies::run), duplicates.as_bytes());
    let controller = |number: usize| {
        let (name, uid) = (format!("o{number}"), format!("u{number}"));
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true})
    };
    let controllers: Vec<Value> = (0..2500).map(controller).collect();
    let controllers = serde_json::to_vec(&controllers).unwrap();
    bounded_by(most, ("owners", owners::run), &controllers);
}

#[test]
fn no_input_made_from_seeds_makes_a_target_panic() {
    let seed = number("WINDLASS_SEED").unwrap_or(1);
    // Without optimisation, each level of a rule uses many times the stack of a release build.
    let roomy = std::thread::Builder::new().stack_size(256 << 20);
    roomy.spawn(move || try_all(seed)).unwrap().join().unwrap();
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn try_all(seed: u64) {
    let _measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = SmallRng::seed_from_u64(seed);
    for target in TARGETS {
        let made = if target.0 == SLOW { MADE / 10 } else { MADE };
        for _ in 0..made {
            attempt(target, &mut random);
        }
    }
    let Some(seconds) = number("WINDLASS_FUZZ_SECONDS") else {
        return;
    };
    let chosen = usize::try_from(seed).unwrap() % TARGETS.len();
    let (begun, mut inputs) = (Instant::now(), 0);
    while begun.elapsed().as_secs() < seconds {
        attempt(TARGETS[chosen], &mut random);
        inputs += 1;
    }
    // Not by a macro: the test harness shows their output only for tests that fail.
    let line = format!("{inputs} inputs of {} in {seconds} s\n", TARGETS[chosen].0);
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
}

/// Runs a target on an input that is made from its seeds. The input is in a file before, as a target may end the process.
fn attempt((name, run): Target, random: &mut SmallRng) {
    let input = made(&seeds(name), random);
    let file = std::env::temp_dir().join(format!("windlass-fuzz-{name}-{}", std::process::id()));
    fs::write(&file, &input).unwrap();
    bounded((name, run), &input);
    fs::remove_file(&file).unwrap();
}

/// Runs a target on an input, and checks the time and the memory that it takes.
fn bounded(target: Target, input: &[u8]) {
    let (any, of_each) = MEMORY;
    bounded_by(any + of_each * input.len(), target, input);
}

fn bounded_by(most: usize, (name, run): Target, input: &[u8]) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let begun = Instant::now();
    run(input);
    let (took, took_most) = (begun.elapsed(), ALLOCATED.peak_usage().saturating_sub(before));
    let limit = if name == SLOW { SLOW_LIMIT } else { LIMIT };
    assert!(took < limit, "{name} took {took:?}");
    assert!(took_most < most, "{name} took {took_most} bytes for {}", input.len());
}

/// An input: parts of seeds, repeated, left out, exchanged and changed.
fn made(seeds: &[Vec<u8>], random: &mut SmallRng) -> Vec<u8> {
    const PIECES: [&[u8]; 16] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b",",
        b":",
        b"\n",
        b"null",
        b"-1",
        b"1e999",
        b"\\u0000",
        b"\xff\xfe",
        b"${A:-",
        b"{{",
        b"\0",
    ];
    let mut input = seeds[random.random_range(0..seeds.len())].clone();
    // Most changes of bytes end what is read as JSON at once.
    if random.random() && change_documents(&mut input, random) {
        input.truncate(LONGEST);
        return input;
    }
    for _ in 0..random.random_range(1..8) {
        let at = random.random_range(0..=input.len());
        let end = random.random_range(at..=input.len().min(at + 40));
        match random.random_range(0..6) {
            0 => drop(input.drain(at..end)),
            1 => {
                let times = 1 << random.random_range(0..8);
                let part = input[at..end].repeat(times);
                input.splice(at..at, part);
            }
            2 => {
                let other = &seeds[random.random_range(0..seeds.len())];
                let from = random.random_range(0..=other.len());
                input.splice(at..end, other[from..].iter().copied());
            }
            3 => drop(input.splice(at..at, PIECES[random.random_range(0..PIECES.len())].iter().copied())),
            4 if at < input.len() => input[at] = random.random(),
            _ if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
            _ => input.truncate(at),
        }
        input.truncate(LONGEST);
    }
    input
}

/// Changes some of the JSON objects in an input, at random places. False if it has none.
fn change_documents(input: &mut Vec<u8>, random: &mut SmallRng) -> bool {
    let mut has_changed = false;
    for _ in 0..random.random_range(1..8) {
        let begins: Vec<usize> = (0..input.len()).filter(|at| input[*at] == b'{').collect();
        // The first one is often the whole input.
        let chosen = if random.random() {
            0
        } else {
            random.random_range(0..=begins.len())
        };
        let Some(&begin) = begins.get(chosen) else {
            continue;
        };
        let mut documents = serde_json::Deserializer::from_slice(&input[begin..]).into_iter::<Value>();
        let Some(Ok(mut document)) = documents.next() else {
            continue;
        };
        let end = begin + documents.byte_offset();
        change(&mut document, random);
        input.splice(begin..end, serde_json::to_vec(&document).unwrap());
        has_changed = true;
    }
    has_changed
}

/// Changes a document at a random place.
fn change(document: &mut Value, random: &mut SmallRng) {
    let others = [
        Value::Null,
        Value::from(-1),
        Value::from(1e300),
        Value::from("*"),
        Value::from("a".repeat(random.random_range(0..300))),
        Value::from(vec![document.clone()]),
    ];
    let children = match document {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    let chosen = random.random_range(0..=children);
    match document {
        Value::Array(items) if chosen < children => match random.random_range(0..6) {
            0 => drop(items.remove(chosen)),
            1 => {
                let times = random.random_range(1..60);
                let item = items[chosen].clone();
                items.extend(std::iter::repeat_n(item, times));
            }
            _ => change(&mut items[chosen], random),
        },
        Value::Object(fields) if chosen < children => {
            let name = fields.keys().nth(chosen).unwrap().clone();
            match random.random_range(0..6) {
                0 => drop(fields.remove(&name)),
                1 => {
                    let value = fields[&name].clone();
                    fields.insert(format!("{name}2"), value);
                }
                _ => change(&mut fields[&name], random),
            }
        }
        other => *other = others[random.random_range(0..others.len())].clone(),
    }
}
