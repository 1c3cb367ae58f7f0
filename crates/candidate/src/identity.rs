//! A name for one process life.

use elector_api::CandidateApi;
use elector_protocol::Identity;
use rand::RngExt as _;

/// The host name and a random part, as client-go's `hostname_uuid`: one identity for one process life (R1).
///
/// `hostname` may be the Pod's name. Characters that the name of a LeaseCandidate may not have are left out.
pub fn random_identity(hostname: &str, api: CandidateApi) -> Identity {
    // The name of a custom resource is a DNS subdomain.
    let plain = api.group() != CandidateApi::V1Beta1.group();
    let separator = if plain { '-' } else { '_' };
    let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || (!plain && *c == '.');
    let host: String = hostname.chars().filter(fits).take(200).collect();
    let host = host.trim_start_matches(['-', '.']);
    let random: u64 = rand::rng().random();
    let text = format!("{host}{separator}{random:016x}");
    let text = text.trim_start_matches(['-', '_']).to_ascii_lowercase();
    Identity::new(text).expect("sixteen digits are not empty")
}

#[cfg(test)]
mod tests {
    use elector_protocol::LeaseKey;

    use super::*;
    use crate::Config;

    #[test]
    fn it_is_valid_wherever_the_host_lives() {
        for api in CandidateApi::ALL {
            for host in [
                "node-1.example",
                "",
                "Ünïx host",
                "..",
                "-a",
                &"x".repeat(300),
            ] {
                let identity = random_identity(host, api);
                let config = Config::new(LeaseKey::new("ns", "web"), identity.clone(), "1.0.0");
                assert_eq!(config.validate(api), Ok(()), "{identity}");
                assert_ne!(identity, random_identity(host, api));
            }
        }
    }
}
