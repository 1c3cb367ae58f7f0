//! Messages about connections and credentials without the secrets in them.
//!
//! The client's errors carry what they are about: a proxy's URL with its password, all that a credential plugin
//! printed. None of that belongs into a log.

use std::error::Error;

#[cfg(any(test, feature = "connect"))]
use http::Uri;
use kube::client::AuthError;

use crate::line::one_line;

/// A URL for messages: without its user and password.
#[cfg(any(test, feature = "connect"))]
pub(crate) fn shown(url: &Uri) -> String {
    let text = url.to_string();
    let text = text.trim_end_matches('/');
    let Some(authority) = url.authority().map(http::uri::Authority::as_str) else {
        return text.to_owned();
    };
    match authority.rsplit_once('@') {
        Some((_, host)) => text.replacen(authority, host, 1),
        None => text.to_owned(),
    }
}

/// Why the client could not be set up.
pub(crate) fn setup_failure(error: &kube::Error) -> String {
    match error {
        kube::Error::Auth(error) => auth_failure(error),
        kube::Error::ProxyProtocolUnsupported { proxy_url } => match proxy_url.scheme_str() {
            Some(scheme) => {
                format!("the proxy's protocol {scheme:?} is neither http nor https nor socks5")
            }
            None => "the proxy's URL lacks its protocol: http, https or socks5".to_owned(),
        },
        other => one_line(&other.to_string()),
    }
}

/// Why there are no credentials, if that is what an error of a request is about.
pub(crate) fn auth_failure_within(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<AuthError>() {
            return Some(auth_failure(error));
        }
        next = error.source();
    }
    None
}

/// Why there are no credentials. Of what a plugin printed only its standard error is for people.
fn auth_failure(error: &AuthError) -> String {
    match error {
        // Its command line comes with the environment that the kubeconfig adds.
        AuthError::AuthExecRun { out, .. } => {
            let said = one_line(&String::from_utf8_lossy(&out.stderr));
            let gap = if said.is_empty() { "" } else { ": " };
            format!(
                "the credential plugin failed with {}{gap}{said}",
                out.status
            )
        }
        AuthError::AuthExecParse(_) => "the credential plugin printed no ExecCredential".to_owned(),
        other => one_line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_user_and_password() {
        for (url, expected) in [
            ("https://host:6443/", "https://host:6443"),
            (
                "https://user:secret@host:6443/base",
                "https://host:6443/base",
            ),
            ("http://secret@10.0.0.1", "http://10.0.0.1"),
            ("user:secret@host:1", "host:1"),
            ("/path@x", "/path@x"),
        ] {
            assert_eq!(shown(&url.parse().unwrap()), expected);
        }
    }
}
