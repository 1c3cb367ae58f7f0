//! Looks for scripts that fail, without a fuzzer: `cargo run --release -p elector-fuzz --example hunt objects 60`
//! mutates the kept corpus at random for 60 seconds and prints what fails, made small.

use std::collections::BTreeSet;
use std::error::Error;
use std::panic;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use elector_fuzz::{drive_candidate, drive_history, drive_objects, mutate, shrink};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let driver = arguments.next().unwrap_or_else(|| "objects".to_owned());
    let drive = match driver.as_str() {
        "objects" => drive_objects,
        "candidate" => drive_candidate,
        "history" => drive_history,
        other => {
            return Err(
                format!("there is no driver {other}: objects, candidate or history").into(),
            );
        }
    };
    let seconds = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let mut seed = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(&driver);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    let corpus = paths
        .iter()
        .map(std::fs::read)
        .collect::<Result<Vec<_>, _>>()?;
    let place = Arc::new(Mutex::new(String::new()));
    let shared = Arc::clone(&place);
    panic::set_hook(Box::new(move |info| {
        if let Ok(mut place) = shared.lock() {
            let text: String = info.to_string().chars().take(600).collect();
            *place = format!(
                "{} {text}",
                info.location().map(ToString::to_string).unwrap_or_default()
            );
        }
    }));
    let last = || place.lock().map(|place| place.clone()).unwrap_or_default();
    let line = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    let (mut known, mut count) = (BTreeSet::new(), 0u64);
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        let mut script = corpus[usize::try_from(count)? % corpus.len()].clone();
        for _ in 0..=seed % 12 {
            seed += 1;
            script = mutate(&script, seed);
        }
        seed += 1;
        count += 1;
        if panic::catch_unwind(|| drive(&script)).is_ok() || !known.insert(line(&last())) {
            continue;
        }
        let cause = line(&last());
        let same = |script: &[u8]| {
            panic::catch_unwind(|| drive(script)).is_err() && line(&last()) == cause
        };
        let small = shrink(&script, same);
        let _ = panic::catch_unwind(|| drive(&small));
        println!("{}\n{}", last(), String::from_utf8_lossy(&small));
    }
    println!(
        "{count} scripts played, up to seed {seed}; {} causes of failure",
        known.len()
    );
    if known.is_empty() {
        Ok(())
    } else {
        Err("something fails".into())
    }
}
