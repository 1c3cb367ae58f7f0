//! Where a small server of ours listens, as a flag says it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The value of a flag such as `--metrics-bind-address`, in the notation of controller-runtime.
///
/// Only an address that says so is reachable from other machines: a port alone is one of the loopback interface.
///
/// ```
/// use elector_runtime::BindAddress;
///
/// let parse = |text: &str| text.parse::<BindAddress>();
/// assert_eq!(parse("0"), Ok(BindAddress::Off));
/// assert_eq!(parse("8080"), parse("127.0.0.1:8080"));
/// assert_eq!(parse(":8080"), Ok(BindAddress::AllInterfaces(8080)));
/// assert!(parse("example.com:8080").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindAddress {
    /// `0` or nothing: nothing is served.
    Off,
    /// `:PORT`: every interface, of IPv6 and IPv4.
    AllInterfaces(u16),
    /// `IP:PORT`, or `PORT` on 127.0.0.1. Port 0 is any free one.
    Socket(SocketAddr),
}

/// A text is no address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be 0 for off, PORT for that port of 127.0.0.1, :PORT for all interfaces, or IP:PORT such as 10.0.0.1:8080 or \
     [::1]:8080, with a port from 0 to 65535"
)]
pub struct BindAddressError;

// === impl BindAddress ===

impl BindAddress {
    /// The addresses to try, the first that works is the one: `:PORT` is an IPv6 socket that takes IPv4 too, and an IPv4
    /// socket where the machine has no IPv6.
    pub(crate) fn candidates(self) -> Vec<SocketAddr> {
        match self {
            Self::Off => Vec::new(),
            Self::AllInterfaces(port) => vec![
                SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
            ],
            Self::Socket(address) => vec![address],
        }
    }
}

impl FromStr for BindAddress {
    type Err = BindAddressError;

    fn from_str(text: &str) -> Result<Self, BindAddressError> {
        if matches!(text, "" | "0") {
            return Ok(Self::Off);
        }
        let port = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| digits).ok_or(BindAddressError)
        };
        if let Some(text) = text.strip_prefix(':') {
            return port(text).map(Self::AllInterfaces);
        }
        if let Ok(port) = port(text) {
            return Ok(Self::Socket((Ipv4Addr::LOCALHOST, port).into()));
        }
        text.parse().map(Self::Socket).map_err(|_| BindAddressError)
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::AllInterfaces(port) => write!(f, ":{port}"),
            Self::Socket(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_notation_says_who_can_reach_it() {
        for (text, shown) in [
            ("", "0"),
            ("0", "0"),
            ("8080", "127.0.0.1:8080"),
            (":8080", ":8080"),
            (":0", ":0"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("0.0.0.0:9", "0.0.0.0:9"),
            ("[::1]:65535", "[::1]:65535"),
        ] {
            let address = text.parse::<BindAddress>().map(|it| it.to_string());
            assert_eq!(address.as_deref(), Ok(shown), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            ":",
            "65536",
            ":65536",
            "+1",
            ":+1",
            "-1",
            "host:1",
            "localhost:1",
            "1.2.3.4",
            "::1:80",
            "1.2.3.4:",
            " 8080",
            "[::1]",
        ] {
            let expected = Err(BindAddressError);
            assert_eq!(text.parse::<BindAddress>(), expected, "{text:?}");
        }
    }
}
