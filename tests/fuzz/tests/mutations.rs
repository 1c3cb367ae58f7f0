//! Histories that went wrong a little: the kept corpus, mutated at random.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use elector_fuzz::{drive_candidate, drive_history, drive_objects, mutate, shrink};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, proptest};

static OBJECTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| scripts("objects"));
static CANDIDATE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| scripts("candidate"));
static HISTORY: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| scripts("history"));

fn scripts(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(folder);
    let entries = fs::read_dir(folder).expect("the corpus is there");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).expect("readable"))
        .collect()
}

/// Mutates a script of the corpus, and runs it. What fails is made small and printed, to be kept in the corpus under a
/// name.
fn run(corpus: &[Vec<u8>], index: usize, seeds: &[u64], drive: fn(&[u8])) {
    let mut script = corpus[index % corpus.len()].clone();
    for seed in seeds {
        script = mutate(&script, *seed);
    }
    let fails = |script: &[u8]| std::panic::catch_unwind(|| drive(script)).is_err();
    if fails(&script) {
        let small = shrink(&script, fails);
        panic!("this script fails:\n{}", String::from_utf8_lossy(&small));
    }
}

/// Few enough for every run of the tests; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(200),
        failure_persistence: None,
        // The script is made small, not its seeds.
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_object_breaks_an_elector(index in any::<usize>(), seeds in vec(any::<u64>(), 0..12)) {
        run(&OBJECTS, index, &seeds, drive_objects);
    }

    #[test]
    fn no_object_breaks_a_candidate(index in any::<usize>(), seeds in vec(any::<u64>(), 0..12)) {
        run(&CANDIDATE, index, &seeds, drive_candidate);
    }

    #[test]
    fn no_recording_breaks_the_checker(index in any::<usize>(), seeds in vec(any::<u64>(), 0..12)) {
        run(&HISTORY, index, &seeds, drive_history);
    }

    #[test]
    fn no_bytes_break_a_driver(bytes in vec(any::<u8>(), 0..200), text in ".{0,80}") {
        for script in [bytes.as_slice(), text.as_bytes()] {
            drive_objects(script);
            drive_candidate(script);
            drive_history(script);
        }
    }
}
