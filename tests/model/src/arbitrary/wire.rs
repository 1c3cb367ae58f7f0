//! From effects back to the wire: what is written reads back as itself, and no server refuses it for its form.

use elector_api::{
    Carrier, FieldError, Lease, LeaseCandidate, Problem, validate_candidate_update, validate_lease,
    validate_lease_update,
};
use elector_protocol::{Identity, LeaseKey, LeaseRecord, Timestamp};

/// The longest line that may come of any object, in bytes.
const LONGEST_LINE: usize = 4096;

/// Checks the length of what goes to a log or to a terminal.
pub(crate) fn check_line(line: &str) {
    assert!(
        line.len() <= LONGEST_LINE,
        "a line of {} bytes: {}",
        line.len(),
        line.chars().take(200).collect::<String>()
    );
}

/// Checks what is said of an object that cannot be used, or not in part.
pub(crate) fn check_lease_messages(lease: &Lease) {
    let notes = lease.notes();
    let words = lease.faults().iter().chain(&notes);
    words.for_each(|word| check_line(&word.to_string()));
    match lease.snapshot() {
        Ok(snapshot) => assert_eq!(reread(lease).snapshot(), Ok(snapshot)),
        Err(fault) => check_line(&fault.to_string()),
    }
    // A stand-in for a server repeats what it was given, so all that must hold is that this ends.
    let _ = validate_lease(lease);
}

/// The same for a candidate.
pub(crate) fn check_candidate_messages(candidate: &LeaseCandidate) {
    let notes = candidate.notes();
    let words = candidate.faults().iter().chain(&notes);
    words.for_each(|word| check_line(&word.to_string()));
    match candidate.candidate() {
        Ok(read) => {
            if let Err(why) = read.offer() {
                check_line(&why.to_string());
            }
            if candidate.faults().is_empty() {
                assert_eq!(reread(candidate).candidate(), Ok(read));
            }
            let key = candidate.lease_key();
            check_line(&key.to_string());
            assert!(can_exist(&key), "{key} is a name that no Lease can have");
        }
        Err(fault) => check_line(&fault.to_string()),
    }
    let _ = elector_api::validate_candidate(candidate);
}

/// A record that is to replace the one of `base`, as each server would see it.
pub(crate) fn check_lease_write(base: &Lease, record: &LeaseRecord) {
    for carrier in [Carrier::Unknown, Carrier::Fields, Carrier::Annotations] {
        let written = base.with_record(record, carrier);
        let read: Lease = reread(&written);
        assert_eq!(
            read.record().as_ref(),
            Ok(record),
            "{carrier:?} changes a record under way"
        );
        assert_eq!(
            (&read.metadata.uid, &read.metadata.resource_version),
            (&base.metadata.uid, &base.metadata.resource_version)
        );
        assert_eq!(read.spec.other, base.spec.other, "unknown fields are kept");
        assert_eq!(read.metadata.labels, base.metadata.labels);
        assert!(read.spec.holder_identity.is_some(), "absent, not empty");
        if validate_lease_update(base, base).is_empty() {
            let errors = validate_lease_update(&written, base);
            assert!(
                errors.iter().all(is_for_size),
                "a server refuses {errors:?}"
            );
        }
    }
}

/// A Lease that is to be created.
pub(crate) fn check_born(key: &LeaseKey, record: &LeaseRecord) {
    for carrier in [Carrier::Unknown, Carrier::Fields, Carrier::Annotations] {
        let born = Lease::born(key, record.strategy.as_ref(), carrier);
        let read: Lease = reread(&born);
        assert_eq!(read.record().as_ref(), Ok(record));
        assert!(can_exist(key), "a Lease {key} is never created");
        let named = validate_lease(&Lease::named(key));
        if named.is_empty() {
            assert_eq!(validate_lease(&born), [], "{carrier:?}");
        }
    }
}

/// A ping that is to be written into a candidate.
pub(crate) fn check_ping(base: &LeaseCandidate, ping: Timestamp) {
    let written = base.with_ping(ping);
    let read: LeaseCandidate = reread(&written);
    assert_eq!(read.spec.ping_time, Some(ping));
    if base.faults().is_empty() {
        let mut restored = read;
        restored.spec.ping_time = base.spec.ping_time;
        assert_eq!(&restored, base, "a question changes nothing else");
    }
    if validate_candidate_update(base, base).is_empty() {
        assert_eq!(validate_candidate_update(&written, base), []);
    }
}

/// A name of the driver's own.
pub(crate) fn identity(text: &str) -> Identity {
    Identity::new(text).unwrap_or_else(|| unreachable!("the driver's own names are not empty"))
}

/// True if a Lease can have that name, wherever it is.
fn can_exist(key: &LeaseKey) -> bool {
    let errors = validate_lease(&Lease::named(key));
    errors.iter().all(|error| error.field != "metadata.name")
}

fn reread<T: serde::Serialize + serde::de::DeserializeOwned>(object: &T) -> T {
    let text = match serde_json::to_string(object) {
        Ok(text) => text,
        Err(error) => panic!("cannot be written: {error}"),
    };
    match serde_json::from_str(&text) {
        Ok(object) => object,
        Err(error) => panic!("cannot be read again: {error}: {text}"),
    }
}

/// An object that is as large as it may be has no room for what we add; its lease stands still.
fn is_for_size(error: &FieldError) -> bool {
    matches!(error.problem, Problem::TooLong(_))
}
