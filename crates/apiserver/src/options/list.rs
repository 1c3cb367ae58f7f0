//! The options of a list or a watch.

use elector_api::FieldError;

use crate::failure::Failure;
use crate::kind::Kind;
use crate::options::{At, revision};
use crate::query::Query;
use crate::selector::{FieldSelector, LabelSelector, RangeSelector, Selector};

/// The options of a list or a watch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListOptions {
    pub(crate) watch: bool,
    pub(crate) selector: Selector,
    /// The most objects of a page; zero for all.
    pub(crate) limit: usize,
    /// Where an earlier list ended.
    pub(crate) resume: Option<String>,
    pub(crate) resource_version: Option<String>,
    /// `Exact` or `NotOlderThan`.
    matching: Option<String>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
}

// === impl ListOptions ===

impl ListOptions {
    /// Reads and checks them. `watch` is that of the path; without `sharding` ranges of objects are not selected by.
    pub(crate) fn read(
        query: &Query,
        kind: &Kind,
        watch: bool,
        sharding: bool,
    ) -> Result<Self, Failure> {
        let number = |name| query.number(name).map_err(Failure::bad_request);
        let timeout_seconds = number("timeoutSeconds")?;
        let limit = number("limit")?.unwrap_or_default();
        let labels = query.text("labelSelector").unwrap_or_default();
        let fields = query.text("fieldSelector").unwrap_or_default();
        let mut selector = Selector {
            labels: LabelSelector::parse(labels).map_err(Failure::bad_request)?,
            fields: FieldSelector::parse(fields, kind).map_err(Failure::bad_request)?,
            shards: RangeSelector::default(),
        };
        if let Some(ranges) = query.text("shardSelector").filter(|_| sharding) {
            let invalid = |why| Failure::internal(format!("invalid shard selector: {why}"));
            selector.shards = RangeSelector::parse(ranges).map_err(invalid)?;
        }
        let text = |name| query.text(name).map(str::to_owned);
        let options = Self {
            watch: watch || query.switch("watch"),
            selector,
            limit: usize::try_from(limit).unwrap_or_default(),
            resume: text("continue"),
            resource_version: text("resourceVersion"),
            matching: text("resourceVersionMatch"),
            timeout_seconds: timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok()),
            bookmarks: query.switch("allowWatchBookmarks"),
            initial_events: query.optional_switch("sendInitialEvents"),
        };
        let errors = if options.watch {
            options.watch_errors()
        } else {
            options.list_errors()
        };
        if errors.is_empty() {
            return Ok(options);
        }
        Err(Failure::invalid_options("ListOptions", &errors))
    }

    /// At which revision to list.
    pub(crate) fn at(&self) -> Result<At, Failure> {
        let Some(text) = &self.resource_version else {
            return Ok(At::Latest);
        };
        let revision = revision(text)
            .map_err(|error| Failure::bad_request(format!("invalid resource version: {error}")))?;
        Ok(match self.matching.as_deref() {
            Some("Exact") => At::Exact(revision),
            // The old rule for pages.
            None if self.limit > 0 && revision > 0 => At::Exact(revision),
            _ => At::NotOlderThan(revision),
        })
    }

    fn list_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(matching) = self.matching.as_deref() {
            let mut forbid =
                |why: &str| errors.push(FieldError::forbidden("resourceVersionMatch", why));
            if self.resource_version.is_none() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if self.resume.is_some() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if matching == "Exact" && self.resource_version.as_deref() == Some("0") {
                forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                let supported = ["Exact", "NotOlderThan", ""];
                errors.push(FieldError::not_supported(
                    "resourceVersionMatch",
                    matching,
                    &supported,
                ));
            }
        }
        if self.initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn watch_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut forbid =
            |why: &str| errors.push(FieldError::forbidden("resourceVersionMatch", why));
        let matching = self.matching.as_deref();
        if self.initial_events.is_none() && matching.is_some() {
            forbid(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if self.initial_events.is_some() && matching != Some("NotOlderThan") {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if self.resume.is_some() {
            forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if self.initial_events.is_some()
            && let Some(matching) = matching.filter(|matching| *matching != "NotOlderThan")
        {
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                matching,
                &["NotOlderThan"],
            ));
        }
        errors
    }
}
