//! Which proxy leads to an API server, by the variables that kubectl honours too.

use std::net::IpAddr;

use http::Uri;

/// The variables, under their capital names; the small ones count where those are unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProxyVariables {
    pub(crate) https_proxy: Option<String>,
    pub(crate) http_proxy: Option<String>,
    pub(crate) no_proxy: Option<String>,
}

// === impl ProxyVariables ===

impl ProxyVariables {
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
            given(name).or_else(|| given(&name.to_lowercase()))
        };
        Self {
            https_proxy: either("HTTPS_PROXY"),
            http_proxy: either("HTTP_PROXY"),
            no_proxy: either("NO_PROXY"),
        }
    }

    /// The proxy for requests to `url`, as a URL; `None` for a direct way. The machine itself is never behind one.
    pub(crate) fn proxy_for(&self, url: &Uri) -> Option<String> {
        let host = url.host()?.trim_matches(['[', ']']);
        let https = url.scheme_str() == Some("https");
        let proxy = if https {
            &self.https_proxy
        } else {
            &self.http_proxy
        };
        let proxy = proxy.as_deref()?.trim();
        let address = host.parse::<IpAddr>().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let port = url.port_u16().unwrap_or(if https { 443 } else { 80 });
        let exceptions = self.no_proxy.as_deref().unwrap_or_default().split(',');
        if exceptions
            .map(str::trim)
            .any(|exception| excepts(exception, host, address, port))
        {
            return None;
        }
        if proxy.contains("://") {
            return Some(proxy.to_owned());
        }
        Some(format!("http://{proxy}"))
    }
}

/// True if one entry of NO_PROXY covers a host: `*`, an address, a network, a domain with those below it, each of the
/// first and last with an optional port.
fn excepts(exception: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if exception == "*" {
        return true;
    }
    if let (Some((network, bits)), Some(address)) = (exception.split_once('/'), address) {
        let network = network.parse().ok().zip(bits.parse().ok());
        return network.is_some_and(|(network, bits)| within(address, network, bits));
    }
    if let Ok(exception) = exception.trim_matches(['[', ']']).parse::<IpAddr>() {
        return address == Some(exception);
    }
    let (name, only_port) = match exception.rsplit_once(':') {
        Some((name, only)) => (name, only.parse::<u16>().ok()),
        None => (exception, None),
    };
    if only_port.is_some_and(|only| only != port) {
        return false;
    }
    if let Ok(exception) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
        return address == Some(exception);
    }
    let name = name
        .trim_start_matches("*.")
        .trim_start_matches('.')
        .to_lowercase();
    let host = host.to_lowercase();
    !name.is_empty()
        && (host == name
            || host
                .strip_suffix(&name)
                .is_some_and(|rest| rest.ends_with('.')))
}

fn within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    // A shift by the whole width leaves nothing to compare: every address is in it.
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            let shift = 32 - bits;
            address.to_bits().checked_shr(shift) == network.to_bits().checked_shr(shift)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            let shift = 128 - bits;
            address.to_bits().checked_shr(shift) == network.to_bits().checked_shr(shift)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(no_proxy: &str, url: &str) -> bool {
        let variables = ProxyVariables {
            https_proxy: Some("http://proxy:3128".into()),
            http_proxy: None,
            no_proxy: Some(no_proxy.into()),
        };
        variables.proxy_for(&url.parse().unwrap()).is_some()
    }

    #[test]
    fn exceptions_go_direct() {
        for (no_proxy, url, expected) in [
            ("", "https://api.example.com:6443", true),
            ("", "https://localhost:6443", false),
            ("", "https://127.0.0.2:6443", false),
            ("", "https://[::1]:6443", false),
            ("", "http://api.example.com", false),
            ("*", "https://api.example.com", false),
            ("example.com", "https://api.Example.com", false),
            (".example.com", "https://api.example.com", false),
            ("*.example.com", "https://api.example.com", false),
            ("example.com", "https://anotherexample.com", true),
            ("a, example.com:6443", "https://api.example.com:6443", false),
            ("example.com:443", "https://api.example.com:6443", true),
            ("example.com:443", "https://api.example.com", false),
            ("10.0.0.1", "https://10.0.0.1:6443", false),
            ("10.0.0.1:6443", "https://10.0.0.1:6443", false),
            ("10.0.0.1:443", "https://10.0.0.1:6443", true),
            ("10.0.0.0/8", "https://10.96.0.1", false),
            ("10.0.0.0/16", "https://10.96.0.1", true),
            ("0.0.0.0/0", "https://10.96.0.1", false),
            ("0.0.0.0/33", "https://10.96.0.1", true),
            ("fd00::/8", "https://[fd12::1]:6443", false),
            ("::/0", "https://[fd12::1]:6443", false),
            ("::/129", "https://[fd12::1]:6443", true),
            ("fd00::/8", "https://[fe12::1]:6443", true),
            ("10.0.0.0/8", "https://api.example.com", true),
            (",,", "https://api.example.com", true),
        ] {
            assert_eq!(proxied(no_proxy, url), expected, "{no_proxy:?} {url}");
        }
    }

    #[test]
    fn variables_are_read_like_curl_and_go_do() {
        let variables = ProxyVariables::read(|name| match name {
            "HTTPS_PROXY" => Some(String::new()),
            "https_proxy" => Some("proxy:1".into()),
            "HTTP_PROXY" => Some("socks5://socks:2".into()),
            _ => None,
        });
        let proxy = |url: &str| variables.proxy_for(&url.parse().unwrap());
        assert_eq!(proxy("https://host").as_deref(), Some("http://proxy:1"));
        assert_eq!(proxy("http://host").as_deref(), Some("socks5://socks:2"));
    }
}
