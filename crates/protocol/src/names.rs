//! The names and numbers that tell leases, candidates, revisions and terms apart.

use std::fmt;
use std::sync::Arc;

/// Namespace and name of a Lease: the key of one election.
///
/// `Display`, which is for logs and messages, cuts both after 253 bytes, the length of the longest name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseKey {
    /// Namespace of the Lease and of its candidates.
    pub namespace: Arc<str>,
    /// Name of the Lease; candidates name it in `spec.leaseName`.
    pub name: Arc<str>,
}

/// The identity of a process that leads or wants to: `holderIdentity`, which is also the name of the LeaseCandidate
/// ([R1](crate::rules#r1)).
///
/// Never empty: no holder is `None`, written to the wire as an empty string.
///
/// The API lets a holder be any text, of a megabyte too, so `Display`, which is for logs and messages, ends after 253
/// bytes, the length of the longest name. [`Self::as_str`] is the whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(Arc<str>);

/// `metadata.uid`: tells an object from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

/// `metadata.resourceVersion`, comparable as an integer (KEP-5504) and growing across deletions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(pub u64);

/// `spec.leaseTransitions`: the number of the term. Every grant raises it, also one to the same holder ([R5]).
///
/// It restarts at zero when a Lease is deleted, so it does not fence: that is what [`Token`] is for.
///
/// [R5]: crate::rules#r5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub i32);

/// The fencing token of a term: the resourceVersion that the accept replaced ([R14](crate::rules#r14)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub ResourceVersion);

/// Identities of electors begin with this and have another underscore behind the host; those of API servers, which hold
/// the lock of the elector that is built in, have no second one.
const ELECTOR_PREFIX: &str = "elector_";

/// The longest name of an object, in bytes.
const LONGEST_NAME: usize = 253;

// === impl LeaseKey ===

impl LeaseKey {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(f, &self.namespace)?;
        f.write_str("/")?;
        write_name(f, &self.name)
    }
}

// === impl Identity ===

impl Identity {
    /// `None` for the empty string, which stands for no holder wherever an identity is expected.
    pub fn new(text: impl Into<Arc<str>>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then_some(Self(text))
    }

    /// The identity under which an elector holds a lock: recognisable by other electors, new in each life of a process.
    pub fn of_elector(host: &str, random: u64) -> Self {
        Self(format!("{ELECTOR_PREFIX}{host}_{random:016x}").into())
    }

    /// Whether it is one of [`Self::of_elector`].
    pub fn is_elector(&self) -> bool {
        let rest = self.0.strip_prefix(ELECTOR_PREFIX);
        rest.is_some_and(|rest| rest.contains('_'))
    }

    /// The identity as it stands in the API.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(f, &self.0)
    }
}

// === impl Uid ===

impl Uid {
    /// A uid as the server gave it.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The uid as it stands in the API.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl ResourceVersion ===

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Term ===

impl Term {
    /// The term that a grant on this record starts.
    ///
    /// A stranger may have written the largest number that the API holds; counting then restarts at zero.
    /// Nothing depends on the order of terms except the reader's comfort: holders compare for equality ([R10]).
    ///
    /// [R10]: crate::rules#r10
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(0))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Token ===

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Writes a name that an object brought, as far as a log line bears it.
fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    if name.len() <= LONGEST_NAME {
        return f.write_str(name);
    }
    let end = name.floor_char_boundary(LONGEST_NAME);
    write!(f, "{}…", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_whole_and_a_megabyte_is_not() {
        let shown = |text: &str| Identity::new(text).unwrap().to_string();
        let longest = "é".repeat(126);
        assert_eq!(shown(&longest), longest);
        let megabyte = "é".repeat(1 << 19);
        assert_eq!(shown(&megabyte), format!("{longest}…"));
        assert_eq!(Identity::new(&*megabyte).unwrap().as_str(), megabyte);
        let key = LeaseKey::new(&*longest, &*megabyte);
        assert_eq!(key.to_string(), format!("{longest}/{longest}…"));
    }
}
