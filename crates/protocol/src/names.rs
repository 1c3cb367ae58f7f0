//! The names and numbers that tell leases, candidates, revisions and terms apart.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Namespace and name of a Lease: the key of one election.
///
/// `Display`, which is for logs and messages, cuts both after 253 bytes, the length of the longest name.
///
/// A clone is a pointer to the same parts: an elector has the key of each lease in half a dozen maps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseKey(Arc<LeaseKeyParts>);

/// The parts of a [`LeaseKey`].
#[doc(hidden)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct LeaseKeyParts {
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
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(UidText);

/// The text of a uid. API servers give UUIDs, of which an elector keeps one for each object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum UidText {
    /// A UUID in lower case with its hyphens.
    Uuid([u8; 16]),
    /// Any other text.
    Other(Arc<str>),
}

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

/// One life of a process that keeps an instance lock ([R21](crate::rules#r21)).
///
/// The instance is the lock, which outlives processes; at most one process and its children have it at a time. On the wire:
/// sixteen hexadecimal digits of each, joined by a dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifeId {
    /// The instance lock.
    pub instance: u64,
    /// The life.
    pub life: u64,
}

/// Identities of electors begin with this and have another underscore behind the host; those of API servers, which hold
/// the lock of the elector that is built in, have no second one.
const ELECTOR_PREFIX: &str = "elector_";

/// Where the hyphens of a UUID stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The longest name of an object, in bytes.
const LONGEST_NAME: usize = 253;

// === impl LeaseKey ===

impl LeaseKey {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self(Arc::new(LeaseKeyParts {
            namespace: namespace.into(),
            name: name.into(),
        }))
    }

    /// The name of the Lease.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl Deref for LeaseKey {
    type Target = LeaseKeyParts;

    fn deref(&self) -> &LeaseKeyParts {
        &self.0
    }
}

impl Ord for LeaseKey {
    /// By namespace, then by name. Most comparisons are of keys that share a text.
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ordering::Equal;
        }
        let of_one_namespace = Arc::ptr_eq(&self.namespace, &other.namespace);
        let namespaces = match of_one_namespace {
            true => Ordering::Equal,
            false => self.namespace.cmp(&other.namespace),
        };
        namespaces.then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for LeaseKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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

    /// The identity under which an elector holds a lock: recognisable by other electors, new in each life of a process
    /// ([R1](crate::rules#r1)).
    pub fn of_elector(host: &str, random: u64) -> Self {
        Self(format!("{ELECTOR_PREFIX}{host}_{random:016x}").into())
    }

    /// True if it is one of [`Self::of_elector`].
    pub fn is_elector(&self) -> bool {
        let rest = self.0.strip_prefix(ELECTOR_PREFIX);
        rest.is_some_and(|rest| rest.contains('_'))
    }

    /// The identity as it stands in the API.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the Pod, or of the host, that the identity of a candidate begins with, without its random part. `None`
    /// where the identity has no such part: it was chosen, or belongs to another client. That for a part of a group goes on
    /// with a dot and the name of its Lease.
    pub fn pod(&self) -> Option<&str> {
        // The name of a Pod, and that of a Lease, may have dots too: the random part is found at the first that it fits.
        let dots = self.0.match_indices('.').map(|(at, _)| at);
        let mut ends = dots.chain([self.0.len()]);
        ends.find_map(|end| pod_before_random(&self.0[..end]))
    }
}

/// The text before a dash and sixteen hexadecimal digits.
fn pod_before_random(text: &str) -> Option<&str> {
    let (pod, random) = text.rsplit_once('-')?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_random = random.len() == 16 && random.bytes().all(is_digit);
    (is_random && !pod.is_empty()).then_some(pod)
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(f, &self.0)
    }
}

// === impl Uid ===

impl Uid {
    /// A uid as the server gave it. `Display` gives it back, letter by letter.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        let uuid = uuid_of(text).map(UidText::Uuid);
        Self(uuid.unwrap_or_else(|| UidText::Other(text.into())))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match &self.0 {
            UidText::Uuid(bytes) => bytes,
            UidText::Other(text) => return f.write_str(text),
        };
        let mut text = [b'-'; 36];
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let places = (0..text.len()).filter(|place| !HYPHENS.contains(place));
        for (place, digit) in places.zip(digits) {
            text[place] = b"0123456789abcdef"[usize::from(digit)];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({:?})", self.to_string())
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

// === impl LifeId ===

impl LifeId {
    /// The life that a text names, if it is in the very form in which `Display` writes it.
    pub fn parse(text: &str) -> Option<Self> {
        let (instance, life) = text.split_once('-')?;
        let number = |digits: &str| {
            let is_number = digits.len() == 16 && digits.bytes().all(|it| hex_digit(it).is_some());
            u64::from_str_radix(digits, 16).ok().filter(|_| is_number)
        };
        Some(Self {
            instance: number(instance)?,
            life: number(life)?,
        })
    }

    /// True if the other is an earlier or a later life of the same instance.
    pub const fn replaces(self, other: Self) -> bool {
        self.instance == other.instance && self.life != other.life
    }
}

impl fmt::Display for LifeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}", self.instance, self.life)
    }
}

/// The bytes of a UUID, if the text is one in the very form in which `Display` would write it.
fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    if HYPHENS.iter().any(|place| text[*place] != b'-') {
        return None;
    }
    let mut digits = text.iter().enumerate();
    let mut digits = std::iter::from_fn(|| digits.find(|(place, _)| !HYPHENS.contains(place)));
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        let ((_, high), (_, low)) = (digits.next()?, digits.next()?);
        *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
    }
    Some(bytes)
}

/// The value of a digit in lower case.
fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Writes a name that an object brought, as far as a log line bears it.
fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    if name.len() <= LONGEST_NAME {
        return f.write_str(name);
    }
    // The standard library's `floor_char_boundary` is newer than what this crate asks for.
    let end = (0..=LONGEST_NAME).rfind(|&end| name.is_char_boundary(end));
    write!(f, "{}…", &name[..end.unwrap_or(0)])
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
        assert_eq!(key.name(), megabyte);
        assert!(key > LeaseKey::new("a", "b"));
    }

    #[test]
    fn versions_tokens_and_terms_are_shown_as_their_numbers() {
        let (version, term) = (ResourceVersion(u64::MAX), Term(-1));
        assert_eq!(version.to_string(), u64::MAX.to_string());
        assert_eq!(Token(version).to_string(), u64::MAX.to_string());
        assert_eq!(format!("{term:>4}"), "  -1");
    }

    #[test]
    fn the_pod_of_a_candidate_is_what_its_random_part_follows() {
        for (text, pod) in [
            ("web-0-0123456789abcdef", Some("web-0")),
            ("a.b-0123456789abcdef", Some("a.b")),
            ("web-0-0123456789abcdef.web-certs", Some("web-0")),
            ("web-0-0123456789abcdef.a.b-0000000000000000", Some("web-0")),
            ("web-0-0123456789ABCDEF", None),
            ("web-0-0123456789abcde.web", None),
            ("-0123456789abcdef", None),
            ("web-0", None),
        ] {
            assert_eq!(Identity::new(text).unwrap().pod(), pod, "{text}");
        }
    }

    #[test]
    fn a_life_reads_as_it_is_shown_and_in_no_other_form() {
        let (instance, life) = (0xabc, u64::MAX);
        let id = LifeId { instance, life };
        assert_eq!(LifeId::parse(&id.to_string()), Some(id));
        let shown = "0000000000000abc-ffffffffffffffff";
        assert_eq!(id.to_string(), shown);
        for text in [
            "",
            &shown[1..],
            &shown.to_uppercase(),
            &shown.replace('-', "_"),
        ] {
            assert_eq!(LifeId::parse(text), None, "{text}");
        }
        assert!(id.replaces(LifeId { life: 0, ..id }) && !id.replaces(id));
        assert!(!id.replaces(LifeId {
            instance: 0,
            life: 0
        }));
    }

    #[test]
    fn a_uid_reads_as_it_was_given() {
        for text in [
            "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
            "0F1E2D3C-4b5a-6978-8796-a5b4c3d2e1f0",
            "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f",
            "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f00",
            "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0",
            "0f1e2d3c-4b5a-6978-8796a-5b4c3d2e1f0",
            "0g1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
            "u-1",
            "é",
            "",
        ] {
            let uid = Uid::new(text);
            assert_eq!(
                (uid.to_string(), format!("{uid:?}")),
                (text.to_owned(), format!("Uid({text:?})"))
            );
        }
        let uuid = |text| matches!(Uid::new(text).0, UidText::Uuid(_));
        assert!(uuid("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"));
        assert!(!uuid("0F1E2D3C-4b5a-6978-8796-a5b4c3d2e1f0"));
    }
}
