//! A name for one process life.

use elector_protocol::Identity;
use rand::RngExt as _;

/// The host name and a random part: one identity for one process life (R1).
///
/// `hostname` may be the Pod's name. Only letters, digits and dashes are kept of it, in lower case: the name of a
/// LeaseCandidate is a DNS subdomain where it is a custom resource, and the cluster may come to that.
pub fn random_identity(hostname: &str) -> Identity {
    let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let host: String = hostname.chars().filter(fits).take(200).collect();
    let random: u64 = rand::rng().random();
    let text = format!("{host}-{random:016x}");
    let text = text.trim_start_matches('-').to_ascii_lowercase();
    Identity::new(text).expect("sixteen digits are not empty")
}

#[cfg(test)]
mod tests {
    use elector_api::CandidateApi;
    use elector_protocol::LeaseKey;

    use super::*;
    use crate::Config;

    #[test]
    fn it_is_valid_wherever_the_host_lives() {
        for host in [
            "node-1.example",
            "",
            "Ünïx host",
            "..",
            "-a",
            "A_b",
            &"x".repeat(300),
        ] {
            let identity = random_identity(host);
            let config = Config::new(LeaseKey::new("ns", "web"), identity.clone(), "1.0.0");
            for api in CandidateApi::ALL {
                assert_eq!(config.validate_in(api), Ok(()), "{identity}");
            }
            assert_ne!(identity, random_identity(host));
        }
    }
}
