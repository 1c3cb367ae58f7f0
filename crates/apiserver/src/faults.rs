//! Faults on demand, for each client apart.
//!
//! A client is known by the header `x-elector-client`, by the prefix `/as/NAME` of its paths, or by its bearer token.

mod link;
mod rule;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::link::Switchboard;
pub(crate) use self::link::{Link, LinkObserver};
pub(crate) use self::rule::RequestSummary;
pub use self::rule::{Fault, RequestVerb, Rule};

/// The faults of one client. They befall what it asks from now on, and its open watches where that is said.
#[derive(Clone, Debug)]
pub struct Faults {
    shared: Arc<ClientFaults>,
}

/// A connection that ends in the middle, as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was closed by an injected fault")]
pub struct Broken;

/// The faults of every client that has any.
#[derive(Debug, Default)]
pub(crate) struct FaultsByClient(Mutex<BTreeMap<String, Faults>>);

#[derive(Debug)]
struct ClientFaults {
    rules: Mutex<Vec<Rule>>,
    /// The labels of the rules that struck, until they are taken.
    strikes: Mutex<Vec<u64>>,
    board: Switchboard,
}

// === impl Faults ===

impl Faults {
    fn new() -> Self {
        Self {
            shared: Arc::new(ClientFaults {
                rules: Mutex::new(Vec::new()),
                strikes: Mutex::new(Vec::new()),
                board: Switchboard::default(),
            }),
        }
    }

    /// Adds a rule. The first that meets a request strikes; later ones wait their turn.
    pub fn inject(&self, rule: Rule) {
        self.rules().push(rule);
    }

    /// The labels of the rules that struck since the last call, once for each request: a rule that no request met shows
    /// nothing, and neither does a refusal in the place of another one.
    #[must_use]
    pub fn take_strikes(&self) -> Vec<u64> {
        std::mem::take(&mut lock(&self.shared.strikes))
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

    /// From now on the way of each request and that of each answer takes this time.
    pub fn latency(&self, request: Duration, answer: Duration) {
        self.change(|link| (link.latency.request, link.latency.answer) = (request, answer));
    }

    /// From now on its watches report what happens this time after it was committed. Order is kept.
    pub fn watch_latency(&self, watch: Duration) {
        self.change(|link| link.latency.watch = watch);
    }

    /// Cuts the client off, or no longer: its requests hang and are lost, its watches hear nothing.
    pub fn partition(&self, cut: bool) {
        self.change(|link| link.partitioned = cut);
    }

    /// Silences its watches, or no longer; requests get through. The missed events come when this ends, unless they are
    /// more than a watcher's queue holds.
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

    /// Ends its watches as the server ends them at their timeout, and as an end of the connection without a word looks to
    /// a client.
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

    /// The fault that befalls this request, and the label of its rule, which is to be [noted](Self::note).
    pub(crate) fn strike(&self, request: &RequestSummary<'_>) -> Option<(Fault, Option<u64>)> {
        let mut rules = self.rules();
        let struck = rules.iter_mut().find_map(|rule| rule.strike(request))?;
        rules.retain(|rule| !rule.is_spent());
        Some(struck)
    }

    /// The rule of this label has taken effect.
    pub(crate) fn note(&self, label: Option<u64>) {
        lock(&self.shared.strikes).extend(label);
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
        lock(&self.shared.rules)
    }
}

/// A list of rules or labels is whole at every moment.
fn lock<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl FaultsByClient ===

impl FaultsByClient {
    /// The faults of a client, made the first time they are asked for.
    pub(crate) fn of(&self, client: &str) -> Faults {
        let mut clients = self.lock();
        if let Some(faults) = clients.get(client) {
            return faults.clone();
        }
        let faults = Faults::new();
        clients.insert(client.to_owned(), faults.clone());
        faults
    }

    /// Has every watch look again at what it may tell.
    pub(crate) fn wake(&self) {
        for faults in self.lock().values() {
            faults.change(|_| {});
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Faults>> {
        // A map of faults is whole at every moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::kind::Kind;

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
        let faults = Faults::new();
        let strike = |request: &RequestSummary<'_>| {
            let (fault, label) = faults.strike(request)?;
            faults.note(label);
            Some(fault)
        };
        faults.inject(
            Rule::new(Fault::DropAfter)
                .verb(RequestVerb::Update)
                .verb(RequestVerb::Patch)
                .resource("leases")
                .namespace("default")
                .named("a")
                .times(2),
        );
        let labelled = Rule::new(Fault::DropBefore).labelled(7);
        faults.inject(labelled.verb(RequestVerb::Get).times(1));
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
            assert_eq!(strike(&other), None, "{other:?}");
        }
        for (verb, fault) in [
            (RequestVerb::Patch, Some(Fault::DropAfter)),
            (RequestVerb::Update, Some(Fault::DropAfter)),
            (RequestVerb::Update, None),
        ] {
            assert_eq!(strike(&asked(verb, Some("a"))), fault);
        }
        let expected = Some(Fault::DropBefore);
        assert_eq!(strike(&asked(RequestVerb::Get, None)), expected);
        assert_eq!(faults.take_strikes(), [7]);
        assert!(faults.take_strikes().is_empty());
        faults.inject(Rule::new(Fault::DropBefore));
        faults.clear();
        assert_eq!(strike(&asked(RequestVerb::Get, None)), None);
    }
}
