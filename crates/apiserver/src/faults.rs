//! Faults on demand, for each client apart.
//!
//! A client is known by the header `x-elector-client`, by the prefix `/as/NAME` of its paths, or by its bearer token.

mod link;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use self::link::Latency;
use self::link::Switchboard;
pub(crate) use self::link::{Link, LinkObserver};
use crate::kind::Kind;
use http::StatusCode;

/// What goes wrong with a request.
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
    /// It is refused with this status, and nothing is read or written.
    Refuse(StatusCode),
    /// It is served, and then answered as if it had been refused with this status.
    RefuseAfter(StatusCode),
}

/// What a request does.
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
/// use elector_apiserver::{Fault, Rule, RequestVerb};
///
/// // The next two renewals are committed, and their answers are lost.
/// let rule = Rule::new(Fault::DropAfter).verb(RequestVerb::Update).resource("leases").times(2);
/// # let _ = rule;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    fault: Fault,
    verbs: Vec<RequestVerb>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    /// How often it still strikes; `None` for ever.
    times: Option<u32>,
}

/// The switches of one client. They act on what it asks from now on, and on its open watches where that is said.
#[derive(Clone, Debug)]
pub struct Switches {
    shared: Arc<ClientSwitches>,
}

/// A connection that ends in the middle, as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was closed by an injected fault")]
pub struct Broken;

/// A request as rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSummary<'a> {
    pub(crate) verb: RequestVerb,
    pub(crate) kind: Option<&'static Kind>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

/// The switches of every client that has any.
#[derive(Debug, Default)]
pub(crate) struct SwitchRegistry(Mutex<BTreeMap<String, Switches>>);

#[derive(Debug)]
struct ClientSwitches {
    rules: Mutex<Vec<Rule>>,
    board: Switchboard,
}

// === impl Rule ===

impl Rule {
    /// A fault that befalls every request.
    #[must_use]
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            verbs: Vec::new(),
            resource: None,
            namespace: None,
            name: None,
            times: None,
        }
    }

    /// Only requests of this verb; several calls add up.
    #[must_use]
    pub fn verb(mut self, verb: RequestVerb) -> Self {
        self.verbs.push(verb);
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

// === impl Switches ===

impl Switches {
    fn new() -> Self {
        Self {
            shared: Arc::new(ClientSwitches {
                rules: Mutex::new(Vec::new()),
                board: Switchboard::default(),
            }),
        }
    }

    /// Adds a rule. The first that meets a request strikes; later ones wait their turn.
    pub fn inject(&self, rule: Rule) {
        self.rules().push(rule);
    }

    /// Takes all rules away and lets everything through at once. What watches missed they get now.
    pub fn clear(&self) {
        self.rules().clear();
        self.change(|link| {
            *link = Link {
                closed: link.closed,
                broken: link.broken,
                ..Link::default()
            };
        });
    }

    /// From now on everything takes so long.
    pub fn latency(&self, latency: Latency) {
        self.change(|link| link.latency = latency);
    }

    /// Cuts the client off, or no longer: its requests hang and are lost, its watches hear nothing.
    pub fn partition(&self, cut: bool) {
        self.change(|link| link.partitioned = cut);
    }

    /// Whether its watches hear nothing, while requests get through. What they missed comes when this ends, unless it
    /// is more than a watcher's queue holds.
    pub fn freeze_watches(&self, frozen: bool) {
        self.change(|link| {
            link.silent = frozen;
            link.silent_resource = None;
        });
    }

    /// The same for its watches of one resource, by its plural; [`freeze_watches`](Self::freeze_watches) ends it.
    pub fn freeze_watches_of(&self, plural: &'static str) {
        self.change(|link| link.silent_resource = Some(plural));
    }

    /// Ends its watches as the server ends them at their timeout.
    pub fn close_watches(&self) {
        self.close(false);
    }

    /// Ends its watches in the middle of a line.
    pub fn break_watches(&self) {
        self.close(true);
    }

    /// Holds the cache that serves it at this revision, or lets it follow again. Reads that a cache may answer
    /// (resourceVersion 0 or not older than) and watches see nothing newer; consistent reads and writes are as ever.
    /// Its open watches hear nothing newer either: with [`close_watches`](Self::close_watches) it reconnects to an
    /// older cache.
    pub fn hold_cache(&self, revision: Option<u64>) {
        self.change(|link| link.cache = revision);
    }

    /// The fault that befalls this request.
    pub(crate) fn strike(&self, asked: &RequestSummary<'_>) -> Option<Fault> {
        let mut rules = self.rules();
        let rule = rules.iter_mut().find(|rule| rule.meets(asked))?;
        if let Some(times) = &mut rule.times {
            *times -= 1;
        }
        let fault = rule.fault;
        rules.retain(|rule| rule.times != Some(0));
        Some(fault)
    }

    pub(crate) fn line(&self) -> LinkObserver {
        self.shared.board.line()
    }

    fn close(&self, broken: bool) {
        self.change(|link| {
            link.closed += 1;
            link.broken = broken;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Link)) {
        self.shared.board.change(change);
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        // A list of rules is whole at every moment.
        self.shared
            .rules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl SwitchRegistry ===

impl SwitchRegistry {
    /// The switches of a client, made the first time they are asked for.
    pub(crate) fn of(&self, client: &str) -> Switches {
        let mut book = self.lock();
        if let Some(switches) = book.get(client) {
            return switches.clone();
        }
        let switches = Switches::new();
        book.insert(client.to_owned(), switches.clone());
        switches
    }

    /// Has every watch look again at what it may tell.
    pub(crate) fn wake(&self) {
        for switches in self.lock().values() {
            switches.change(|_| {});
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Switches>> {
        // A book of switches is whole at every moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl RequestVerb ===

impl fmt::Display for RequestVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Other => "other",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn asked(verb: RequestVerb, name: Option<&str>) -> RequestSummary<'_> {
        let kind = Kind::served(&Config::default())
            .into_iter()
            .find(|kind| kind.kind == "Lease");
        RequestSummary {
            verb,
            kind,
            namespace: Some("default"),
            name,
        }
    }

    #[test]
    fn a_rule_strikes_the_requests_that_it_names_and_as_often_as_it_says() {
        let switches = Switches::new();
        switches.inject(
            Rule::new(Fault::DropAfter)
                .verb(RequestVerb::Update)
                .verb(RequestVerb::Patch)
                .resource("leases")
                .namespace("default")
                .named("a")
                .times(2),
        );
        switches.inject(Rule::new(Fault::DropBefore).verb(RequestVerb::Get));
        for other in [
            asked(RequestVerb::Create, Some("a")),
            asked(RequestVerb::Update, Some("b")),
            asked(RequestVerb::Update, None),
            RequestSummary {
                namespace: Some("other"),
                ..asked(RequestVerb::Update, Some("a"))
            },
            RequestSummary {
                kind: Some(Kind::namespace()),
                ..asked(RequestVerb::Update, Some("a"))
            },
        ] {
            assert_eq!(switches.strike(&other), None, "{other:?}");
        }
        assert_eq!(
            switches.strike(&asked(RequestVerb::Patch, Some("a"))),
            Some(Fault::DropAfter)
        );
        assert_eq!(
            switches.strike(&asked(RequestVerb::Update, Some("a"))),
            Some(Fault::DropAfter)
        );
        assert_eq!(
            switches.strike(&asked(RequestVerb::Update, Some("a"))),
            None
        );
        assert_eq!(
            switches.strike(&asked(RequestVerb::Get, None)),
            Some(Fault::DropBefore)
        );
        switches.clear();
        assert_eq!(switches.strike(&asked(RequestVerb::Get, None)), None);
    }

    #[test]
    fn each_client_has_its_own() {
        let book = SwitchRegistry::default();
        book.of("a").partition(true);
        assert!(book.of("a").line().now().partitioned);
        assert!(!book.of("b").line().now().partitioned);
    }
}
