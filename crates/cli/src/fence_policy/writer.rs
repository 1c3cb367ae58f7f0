//! The accounts whose writes need a token. Their names stand in an expression of the policies, between quotes.

use std::str::FromStr;

use elector_api::names::{dns_label, dns_subdomain};

/// A service account, of the lease's namespace where none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceAccount {
    namespace: Option<String>,
    name: String,
}

/// The longest name of a user.
const LONGEST_USER: usize = 253;

/// The name of a user, in characters that no quotes are needed for.
pub(super) fn user(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\'' | b'"' | b'\\');
    if text.is_empty() || text.len() > LONGEST_USER || !text.bytes().all(plain) {
        return Err(format!(
            "must be 1 to {LONGEST_USER} visible ASCII characters without quotes and backslashes"
        ));
    }
    Ok(text.to_owned())
}

// === impl ServiceAccount ===

impl ServiceAccount {
    /// Its name at the API server.
    pub(super) fn user_name(&self, lease_namespace: &str) -> String {
        let namespace = self.namespace.as_deref().unwrap_or(lease_namespace);
        format!("system:serviceaccount:{namespace}:{}", self.name)
    }
}

impl FromStr for ServiceAccount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once(':') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        let in_namespace = namespace.is_none_or(|namespace| dns_label(namespace).is_empty());
        if !in_namespace || !dns_subdomain(name).is_empty() {
            return Err("must be NAME or NAMESPACE:NAME of a service account".into());
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}
