//! The history checker: recordings of any quality, and a verdict on what could be read of them.

use elector_verify::{Limits, Participants, RecordingReader, verify};

use crate::arbitrary::wire::check_line;

/// Reads a script as a recording and checks it.
///
/// # Panics
///
/// Where something that must hold does not.
pub fn drive_history(script: &[u8]) {
    let text = String::from_utf8_lossy(script);
    // Every line of a script may be a line of the recording, so the whole of it is read, garbage too.
    let mut reader = RecordingReader::default();
    reader.read("the recording", &text);
    let (history, complaints) = reader.finish();
    for complaint in &complaints {
        check_line(&complaint.to_string());
    }
    let ordered = history.entries().is_sorted_by_key(|entry| entry.at);
    assert!(ordered, "entries stand in the order of their times");
    let participants = Participants::deduce(&history, Limits::default());
    let verdict = verify(&history, &participants);
    for (lease, lease_verdict) in &verdict.leases {
        assert!(participants.leases().any(|one| one == lease));
        let breaches = lease_verdict.breaches.iter();
        for breach in breaches.chain(lease_verdict.excused.iter().map(|excused| &excused.breach)) {
            assert_eq!(&breach.lease, lease);
            assert!(!breach.message.is_empty());
        }
        assert!(lease_verdict.extent.revisions <= history.entries().len());
        assert!(lease_verdict.extent.terms <= lease_verdict.extent.revisions);
    }
}
