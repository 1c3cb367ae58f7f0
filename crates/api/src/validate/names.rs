//! Which names the API server takes. Each rule returns what is wrong with a text, in its words; empty for nothing.
//!
//! ```
//! use elector_api::names;
//!
//! assert!(names::dns_label("my-name").is_empty());
//! assert_eq!(names::dns_label("My name").len(), 1);
//! ```

/// `metadata.name` of most kinds, and the prefix of a qualified name.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut errors = at_most(253, "characters", text);
    errors.extend(dns_labels(text));
    errors
}

/// `metadata.namespace`: a DNS label.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut errors = at_most(63, "characters", text);
    if !is_dns_label(text) {
        errors.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
             regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// The name of a LeaseCandidate, which follows the rules for the keys of a ConfigMap.
pub fn config_key(text: &str) -> Vec<String> {
    let mut errors = at_most(253, "characters", text);
    if text.is_empty() || !text.bytes().all(is_name_byte) {
        errors.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
             or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match text {
        "." => errors.push("must not be '.'".to_owned()),
        ".." => errors.push("must not be '..'".to_owned()),
        text if text.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

/// Keys of labels and annotations, finalizers, and strategies with a domain.
pub fn qualified_name(text: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', \
         and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
         regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut errors = Vec::new();
    let parts: Vec<_> = text.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                let mut rules = at_most(253, "bytes", prefix);
                rules.extend(dns_labels(prefix));
                errors.extend(rules.into_iter().map(|rule| format!("prefix part {rule}")));
            }
            name
        }
        _ => {
            let prefix =
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {RULE} {prefix}")];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else {
        errors.extend(
            at_most(63, "bytes", name)
                .iter()
                .map(|rule| format!("name part {rule}")),
        );
    }
    if !is_name(name) {
        errors.push(format!("name part {RULE}"));
    }
    errors
}

/// The value of a label; empty is one.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors = at_most(63, "bytes", text);
    if !text.is_empty() && !is_name(text) {
        errors.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
             regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// Labels joined by dots, of any length.
fn dns_labels(text: &str) -> Option<String> {
    let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
         and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    (!text.split('.').all(is_dns_label)).then(|| rule.to_owned())
}

/// The server counts bytes everywhere, and calls them so in some places.
fn at_most(length: usize, unit: &str, text: &str) -> Vec<String> {
    let too_long = text.len() > length;
    Vec::from_iter(too_long.then(|| format!("must be no more than {length} {unit}")))
}

fn is_dns_label(text: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = text.as_bytes();
    alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes
            .iter()
            .all(|byte| alphanumeric(Some(byte)) || *byte == b'-')
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().copied().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule, texts that it takes, texts that it refuses once.
    type RuleCase<'a> = (fn(&str) -> Vec<String>, &'a [&'a str], &'a [&'a str]);

    #[test]
    fn each_rule_takes_and_refuses_what_the_api_server_does() {
        let long = |length: usize| "a".repeat(length);
        let (l63, l64, l253, l254) = (long(63), long(64), long(253), long(254));
        let prefixed = format!("{l253}/{l63}");
        let rows: [RuleCase<'_>; 5] = [
            (
                dns_subdomain,
                &["a", "0.a-b.c", &l253],
                &["", "A", "a..b", "-a", "a-", "a_b", &l254],
            ),
            (
                dns_label,
                &["a", "0-a", &l63],
                &["", "a.b", "A", "-a", &l64],
            ),
            (
                config_key,
                &["a", "A_b.c-", "-", "_", "a..", &l253],
                &["", "a b", "a/b", ".", "..", "..a", "ä", &l254],
            ),
            (
                qualified_name,
                &["a", "A_b.c", "a.b/C", &prefixed],
                &["-a", "a-", "A.b/c", "/c", "a/b/c", "a b", &l64],
            ),
            (
                label_value,
                &["", "a", "A_b.c", &l63],
                &["-a", "a/b", " ", &l64],
            ),
        ];
        for (rule, good, bad) in rows {
            for text in good {
                assert_eq!(rule(text), Vec::<String>::new(), "{text}");
            }
            for text in bad {
                assert_eq!(rule(text).len(), 1, "{text}");
            }
        }
        assert_eq!(config_key(".."), ["must not be '..'"]);
    }
}
