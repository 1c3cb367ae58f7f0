//! Faults, and the rules that say which requests they befall.

use std::time::Duration;

use http::StatusCode;

use crate::kind::Kind;

/// A fault that a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It arrives so much later; the client waits for its answer.
    Delay(Duration),
    /// It never arrives, and the client waits in vain until it gives up.
    HangBefore,
    /// It is served, and the client waits in vain for the answer until it gives up.
    HangAfter,
    /// It never arrives; the client sees a broken connection.
    DropBefore,
    /// It is served; the client sees a broken connection in place of the answer.
    DropAfter,
    /// The client sees a broken connection at once; the request arrives so much later and is served then.
    Late(Duration),
    /// It is served, and arrives once more so much later, as when a proxy tries again; the client sees the first answer.
    Repeat(Duration),
    /// It is refused with this status, 100 to 999, and nothing is read or written.
    Refuse(u16),
    /// It is served, and then answered as if it had been refused with this status, 100 to 999.
    RefuseAfter(u16),
}

/// The action of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestVerb {
    /// Reads one object.
    Get,
    /// Reads a list.
    List,
    /// Follows a list.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of one object or of many.
    Delete,
    /// Anything else, such as discovery.
    Other,
}

/// A fault, which requests it befalls, and how often.
///
/// ```
/// use elector_apiserver::{Fault, Rule};
///
/// // The next two renewals are committed, and their answers are lost.
/// let rule = Rule::new(Fault::DropAfter).verb("update").resource("leases").times(2);
/// # let _ = rule;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    fault: Fault,
    verbs: Vec<RequestVerb>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    /// The number of strikes left; `None` for ever.
    times: Option<u32>,
    label: Option<u64>,
}

/// A request as rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSummary<'a> {
    pub(crate) verb: RequestVerb,
    pub(crate) kind: Option<&'static Kind>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

// === impl Rule ===

impl Rule {
    /// A fault that befalls every request.
    ///
    /// # Panics
    ///
    /// When a status is no number from 100 to 999.
    #[must_use]
    pub fn new(fault: Fault) -> Self {
        if let Fault::Refuse(code) | Fault::RefuseAfter(code) = fault {
            assert!(
                StatusCode::from_u16(code).is_ok(),
                "{fault:?}: a status is a number from 100 to 999"
            );
        }
        Self {
            fault,
            verbs: Vec::new(),
            resource: None,
            namespace: None,
            name: None,
            times: None,
            label: None,
        }
    }

    /// Only requests of this verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` (of one object or of many),
    /// or `other`, such as discovery. Several calls add up.
    ///
    /// # Panics
    ///
    /// When it is no such verb.
    #[must_use]
    pub fn verb(mut self, verb: impl AsRef<str>) -> Self {
        let verb = verb.as_ref();
        let known = RequestVerb::ALL.into_iter();
        let mut known = known.filter(|known| known.as_ref() == verb);
        self.verbs.push(known.next().unwrap_or_else(|| {
            let verbs = RequestVerb::ALL.map(|known| known.as_ref().to_owned());
            panic!(
                "{verb:?} is no verb of a rule: these are {}",
                verbs.join(", ")
            )
        }));
        self
    }

    /// Only requests for this resource, by its plural.
    #[must_use]
    pub fn resource(mut self, plural: &str) -> Self {
        self.resource = Some(plural.to_owned());
        self
    }

    /// Only requests in this namespace; those for all namespaces are in none.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only requests for the object of this name. A POST has its name in the body and is never meant.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// So many times, and then no more.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Under this label, which [`Faults::take_strikes`](crate::Faults::take_strikes) gives back once for each request
    /// that it struck.
    #[must_use]
    pub fn labelled(mut self, label: u64) -> Self {
        self.label = Some(label);
        self
    }

    /// The fault and the label, if this request meets the rule; it counts as one time.
    pub(super) fn strike(&mut self, request: &RequestSummary<'_>) -> Option<(Fault, Option<u64>)> {
        if !self.meets(request) {
            return None;
        }
        if let Some(times) = &mut self.times {
            *times -= 1;
        }
        Some((self.fault, self.label))
    }

    /// True once it strikes no more.
    pub(super) fn is_spent(&self) -> bool {
        self.times == Some(0)
    }

    fn meets(&self, asked: &RequestSummary<'_>) -> bool {
        let resource = asked.kind.map(|kind| kind.plural);
        self.times != Some(0)
            && (self.verbs.is_empty() || self.verbs.contains(&asked.verb))
            && self
                .resource
                .as_deref()
                .is_none_or(|plural| resource == Some(plural))
            && self
                .namespace
                .as_deref()
                .is_none_or(|namespace| asked.namespace == Some(namespace))
            && self
                .name
                .as_deref()
                .is_none_or(|name| asked.name == Some(name))
    }
}

// === impl RequestVerb ===

impl RequestVerb {
    const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::Other,
    ];
}

impl AsRef<str> for RequestVerb {
    fn as_ref(&self) -> &str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Other => "other",
        }
    }
}
