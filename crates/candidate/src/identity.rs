//! A name for one process life (R1).

use std::env;

use elector_protocol::Identity;
use rand::RngExt as _;

/// The longest name of an object, in bytes.
pub(crate) const LONGEST_NAME: usize = 253;

/// A dash and sixteen hexadecimal digits.
const RANDOM_PART: usize = 17;

/// The name of the Pod, or of the host, then a dash and sixteen random hexadecimal digits: one identity for one process
/// life (R1).
///
/// The name of a Pod is kept as it is, because admission policies let a Pod write only the LeaseCandidate that is named
/// for it; of one with more than 236 characters the rest is cut off. A host may have a name that no LeaseCandidate can
/// have: of such a name only letters, digits and dashes are kept, in lower case.
pub(crate) fn random_identity(pod_or_host: &str) -> Identity {
    random_identity_within(pod_or_host, LONGEST_NAME)
}

/// The same with no more than that many characters, of which 17 are the random part.
pub(crate) fn random_identity_within(pod_or_host: &str, longest: usize) -> Identity {
    let random: u64 = rand::rng().random();
    let kept = longest.saturating_sub(RANDOM_PART);
    let cut: String = pod_or_host.chars().take(kept).collect();
    if is_subdomain(&cut) {
        return Identity::new(format!("{cut}-{random:016x}")).expect("a dash is not empty");
    }
    let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let host: String = cut.chars().filter(fits).collect();
    let text = format!("{host}-{random:016x}");
    let text = text.trim_start_matches('-').to_ascii_lowercase();
    Identity::new(text).expect("sixteen digits are not empty")
}

/// The name of the Pod, which the environment variable `POD_NAME` tells, or of the host.
pub fn pod_or_host_name() -> String {
    pod_or_host(env::var("POD_NAME").ok())
}

/// The name of this Pod, or of the host where it is empty.
fn pod_or_host(pod: Option<String>) -> String {
    pod.filter(|name| !name.is_empty()).unwrap_or_else(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    })
}

/// True if it is a DNS subdomain (RFC 1123), as the name of every Pod is.
fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|label| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let edge = |byte: Option<&u8>| byte.is_some_and(|byte| inner(*byte));
        let bytes = label.as_bytes();
        edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
    })
}

#[cfg(test)]
mod tests {
    use elector_api::{CandidateApi, FieldError, LeaseCandidate, validate_candidate};
    use elector_protocol::LeaseKey;

    use super::*;

    #[test]
    fn it_is_valid_wherever_the_host_lives() {
        for host in [
            "node-1.example",
            "",
            "Ünïx host",
            "..",
            "-a",
            "A_b",
            "a..b",
            "a.-b",
            &"x".repeat(300),
        ] {
            let identity = random_identity(host);
            for api in CandidateApi::ALL {
                let object = LeaseCandidate::named(api, &LeaseKey::new("ns", "web"), &identity);
                let errors = validate_candidate(&object);
                let about_name = |error: &FieldError| error.field.starts_with("metadata");
                assert!(!errors.iter().any(about_name), "{identity}: {errors:?}");
            }
            assert_ne!(identity, random_identity(host));
        }
        assert!(random_identity("A_b").as_str().starts_with("ab-"));
    }

    #[test]
    fn it_continues_the_name_of_a_pod_whole() {
        let longest = "x".repeat(LONGEST_NAME - RANDOM_PART);
        for pod in ["web-7d4b9c-x2x9z", "a", "web.0-1.b", &longest] {
            let identity = random_identity(pod);
            let rest = identity.as_str().strip_prefix(pod).unwrap();
            let digits = rest.strip_prefix('-').unwrap();
            assert_eq!(digits.len(), 16, "{identity}");
            assert!(digits.chars().all(|c| "0123456789abcdef".contains(c)));
        }
    }

    #[test]
    fn a_pod_goes_before_the_host_unless_its_name_is_empty() {
        let host = rustix::system::uname()
            .nodename()
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(pod_or_host(Some("web-0".to_owned())), "web-0");
        assert_eq!(pod_or_host(Some(String::new())), host);
        assert_eq!(pod_or_host(None), host);
        assert_eq!(pod_or_host_name(), pod_or_host(env::var("POD_NAME").ok()));
    }
}
