//! The files of a bundle.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use elector_api::{CandidateApi, annotation};
use elector_runtime::{Cluster, RequestError, Target, Verb};
use serde::Serialize;
use serde_json::{Value, json};

use super::redaction::{NamespaceAliases, cut_secrets};
use crate::explain::cluster;
use crate::explain::input::LeaseChoice;
use crate::explain::present;
use crate::kubectl::check::{self, ElectorArgs};
use crate::kubectl::pages::list_all;
use crate::kubectl::status::row;
use crate::kubectl::words;

/// The subject of a bundle.
#[derive(Args, Clone, Debug)]
pub(super) struct BundleScope {
    /// Only leases, candidates and Events of this namespace [default: all]
    #[arg(short = 'n', long, value_name = "NAME")]
    namespace: Option<String>,

    /// The most lines of each log
    #[arg(long, value_name = "NUMBER", default_value_t = 5000)]
    tail: u32,

    #[command(flatten)]
    electors: ElectorArgs,
}

/// The files of a bundle by their names, and all that could not be read.
#[derive(Debug, Default)]
pub(super) struct BundleContents {
    /// The output of other commands.
    reports: BTreeMap<&'static str, Value>,
    /// Objects as the server has them.
    objects: BTreeMap<&'static str, Vec<Value>>,
    /// Logs, and the text that says what is in the bundle.
    texts: BTreeMap<String, String>,
    unread: Vec<String>,
}

/// A list of objects, and the file that it goes into.
#[derive(Clone, Copy, Debug)]
struct BundledList {
    file: &'static str,
    kind: &'static str,
    plural: &'static str,
    api_version: &'static str,
    place: ListPlace,
}

/// Where a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListPlace {
    Cluster,
    Electors,
    /// In the namespace of the bundle, or in all.
    Served,
}

/// The objects of an installation.
const INSTALLED: [BundledList; 13] = {
    use ListPlace::{Cluster, Electors, Served};
    const ADMISSION: &str = "admissionregistration.k8s.io/v1";
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    const FLOW: &str = "flowcontrol.apiserver.k8s.io/v1";
    [
        bundled(
            "policies",
            "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
            ADMISSION,
            Cluster,
        ),
        bundled(
            "policies",
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
            ADMISSION,
            Cluster,
        ),
        bundled("rights", "ClusterRole", "clusterroles", RBAC, Cluster),
        bundled(
            "rights",
            "ClusterRoleBinding",
            "clusterrolebindings",
            RBAC,
            Cluster,
        ),
        bundled("rights", "Role", "roles", RBAC, Served),
        bundled("rights", "RoleBinding", "rolebindings", RBAC, Served),
        bundled(
            "definitions",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "apiextensions.k8s.io/v1",
            Cluster,
        ),
        bundled("electors", "FlowSchema", "flowschemas", FLOW, Cluster),
        bundled("electors", "Deployment", "deployments", "apps/v1", Electors),
        bundled("electors", "Pod", "pods", "v1", Electors),
        bundled(
            "electors",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            "policy/v1",
            Electors,
        ),
        bundled(
            "electors",
            "NetworkPolicy",
            "networkpolicies",
            "networking.k8s.io/v1",
            Electors,
        ),
        bundled(
            "electors",
            "ResourceQuota",
            "resourcequotas",
            "v1",
            Electors,
        ),
    ]
};

const fn bundled(
    file: &'static str,
    kind: &'static str,
    plural: &'static str,
    api_version: &'static str,
    place: ListPlace,
) -> BundledList {
    BundledList {
        file,
        kind,
        plural,
        api_version,
        place,
    }
}

/// The file with what `elector explain -f` reads.
const ELECTIONS: &str = "elections";

/// The labels of all that an overlay or the chart installs.
const OURS: &str = "&labelSelector=app.kubernetes.io%2Fpart-of%3Delector";

// === impl BundleContents ===

impl BundleContents {
    /// Reads everything; what cannot be read is noted.
    pub(super) async fn gather(&mut self, cluster: &Cluster, scope: &BundleScope) {
        self.versions(cluster).await;
        match check::report(&scope.electors, cluster).await {
            Ok(report) => self.put("check", report),
            Err(error) => self.unread.push(format!("{error:#}")),
        }
        self.elections(cluster, scope.namespace.as_deref()).await;
        self.raw_elections(cluster, scope).await;
        for list in INSTALLED {
            self.list(cluster, scope, list, OURS).await;
        }
        self.events(cluster, scope).await;
        self.electors_logs(cluster, scope).await;
    }

    async fn versions(&mut self, cluster: &Cluster) {
        let target = Target {
            verb: Verb::Get,
            resource: "the version".into(),
            namespace: None,
            name: Some("of the server".into()),
        };
        let server: Result<Value, RequestError> = cluster.request(target, "/version", None).await;
        let server = self.noted(server).unwrap_or_default();
        let api = cluster.candidate_api().await;
        let api = api.map_or_else(
            |error| error.to_string(),
            |api| api.api_version().to_owned(),
        );
        self.put(
            "versions",
            json!({"plugin": env!("CARGO_PKG_VERSION"), "server": server, "leaseCandidates": api}),
        );
    }

    /// The elections as the other commands show them.
    async fn elections(&mut self, cluster: &Cluster, namespace: Option<&str>) {
        let listed = match cluster::list(cluster, namespace).await {
            Ok(listed) => listed,
            Err(error) => return self.unread.push(format!("{error:#}")),
        };
        let now = present();
        self.put_list("words", &words::rows(&listed, now));
        let hold_backs = cluster::hold_backs(cluster, namespace).await;
        let mut objects = listed.collect(LeaseChoice::Elected, hold_backs);
        objects.assign_groups(now, &row::settings(&objects));
        self.put_list("status", &row::rows(&objects, now));
        self.put_list("faults", &objects.faults);
    }

    /// The same objects as the server has them. Leases that are not elected stay out.
    async fn raw_elections(&mut self, cluster: &Cluster, scope: &BundleScope) {
        if let Ok(api) = cluster.candidate_api().await {
            let served = api.api_version();
            let list = bundled(
                ELECTIONS,
                "LeaseCandidate",
                CandidateApi::PLURAL,
                served,
                ListPlace::Served,
            );
            self.list(cluster, scope, list, "").await;
        }
        let list = bundled(
            ELECTIONS,
            "Lease",
            "leases",
            "coordination.k8s.io/v1",
            ListPlace::Served,
        );
        let but_nodes = "&fieldSelector=metadata.namespace%21%3Dkube-node-lease";
        self.list(cluster, scope, list, but_nodes).await;
        let candidates = self.items(ELECTIONS, "LeaseCandidate");
        let wanted: BTreeSet<(String, String)> = candidates
            .map(|each| {
                (
                    text(&each["metadata"]["namespace"]),
                    text(&each["spec"]["leaseName"]),
                )
            })
            .collect();
        if let Some(objects) = self.objects.get_mut(ELECTIONS) {
            objects.retain(|each| each["kind"] != "Lease" || is_elected(each, &wanted));
        }
    }

    /// Events on Leases, and those about the electors' Pods.
    async fn events(&mut self, cluster: &Cluster, scope: &BundleScope) {
        let list = bundled(ELECTIONS, "Event", "events", "v1", ListPlace::Served);
        let of_leases = "&fieldSelector=involvedObject.kind%3DLease";
        self.list(cluster, scope, list, of_leases).await;
        let list = bundled("electors", "Event", "events", "v1", ListPlace::Electors);
        let of_pods = "&fieldSelector=involvedObject.kind%3DPod";
        self.list(cluster, scope, list, of_pods).await;
    }

    /// The logs of the electors' Pods, of the present and the last run of each.
    async fn electors_logs(&mut self, cluster: &Cluster, scope: &BundleScope) {
        let namespace = scope.electors.elector_namespace.as_str();
        let pods: Vec<Value> = self.items("electors", "Pod").cloned().collect();
        for pod in pods {
            let name = text(&pod["metadata"]["name"]);
            let statuses = pod["status"]["containerStatuses"].as_array();
            let mut statuses = statuses.into_iter().flatten();
            let has_restarted = statuses.any(|each| each["restartCount"].as_u64() > Some(0));
            for (suffix, query) in [("", ""), (".previous", "&previous=true")] {
                if !suffix.is_empty() && !has_restarted {
                    continue;
                }
                let target = Target {
                    verb: Verb::Get,
                    resource: "pods/log".into(),
                    namespace: Some(namespace.into()),
                    name: Some(name.as_str().into()),
                };
                let path = format!(
                    "/api/v1/namespaces/{namespace}/pods/{name}/log?container=elector&timestamps=true&tailLines={}{query}",
                    scope.tail
                );
                let log = cluster.request_text(target, &path).await;
                if let Some(log) = self.noted(log) {
                    self.texts.insert(format!("logs/{name}{suffix}.log"), log);
                }
            }
        }
    }

    /// Adds a list to those of a file.
    async fn list(
        &mut self,
        cluster: &Cluster,
        scope: &BundleScope,
        list: BundledList,
        query: &str,
    ) {
        let namespace = match list.place {
            ListPlace::Cluster => None,
            ListPlace::Electors => Some(scope.electors.elector_namespace.as_str()),
            ListPlace::Served => scope.namespace.as_deref(),
        };
        let read = list_all(
            cluster,
            list.plural,
            namespace,
            &list.path(namespace),
            query,
        )
        .await;
        let Some(found) = self.noted::<Vec<Value>>(read) else {
            return;
        };
        let objects = self.objects.entry(list.file).or_default();
        for mut object in found {
            cut_secrets(&mut object);
            // The items of a list leave these to it.
            object["apiVersion"] = list.api_version.into();
            object["kind"] = list.kind.into();
            objects.push(object);
        }
    }

    fn items<'a>(&'a self, file: &str, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        let objects = self.objects.get(file).into_iter().flatten();
        objects.filter(move |object| object["kind"] == kind)
    }

    fn noted<T>(&mut self, read: Result<T, RequestError>) -> Option<T> {
        match read {
            Ok(found) => Some(found),
            Err(error) => {
                self.unread.push(error.to_string());
                None
            }
        }
    }

    fn put(&mut self, file: &'static str, value: Value) {
        self.reports.insert(file, value);
    }

    fn put_list(&mut self, file: &'static str, list: &impl Serialize) {
        // Values of our own have names and texts alone.
        self.put(file, serde_json::to_value(list).unwrap_or_default());
    }

    /// Adds a text that says what the files are.
    pub(super) fn explain(&mut self, name: &str) {
        let mut readme = format!(
            "{name}, made by kubectl elector bundle {}\n\n\
             check.json      what kubectl elector check -A says\n\
             status.json     what kubectl elector status -A says; words.json: operators' words; faults.json: bad objects\n\
             elections.json  Leases that are elected, LeaseCandidates and Events on Leases, for elector explain -f\n\
             policies.json, rights.json, definitions.json, electors.json: what is installed; logs/: the electors' logs\n\n\
             Cut (<cut>): values of environment variables, annotations of others, commands of other containers.\n",
            env!("CARGO_PKG_VERSION")
        );
        if !self.unread.is_empty() {
            readme += "\nNot read:\n";
            for unread in &self.unread {
                readme += &format!("* failed to {unread}\n");
            }
        }
        self.texts.insert("README.txt".to_owned(), readme);
    }

    /// Writes other names in the place of the namespaces'.
    pub(super) fn redact(&mut self, scope: &BundleScope) {
        let kept = scope.electors.elector_namespace.as_str();
        let mut aliases = NamespaceAliases::default();
        let (reports, objects) = (self.reports.values(), self.objects.values().flatten());
        for value in reports.chain(objects) {
            aliases.collect(value, kept);
        }
        let (reports, objects) = (self.reports.values_mut(), self.objects.values_mut());
        for value in reports.chain(objects.flatten()) {
            aliases.replace(value);
        }
        for text in self.texts.values_mut() {
            *text = aliases.replaced(text);
        }
        for unread in &mut self.unread {
            *unread = aliases.replaced(unread);
        }
    }

    pub(super) fn unread(&self) -> &[String] {
        &self.unread
    }

    /// The files by their names.
    pub(super) fn files(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let mut files = self.texts.clone();
        let lists = self.objects.iter();
        let lists = lists.map(|(name, items)| {
            (
                *name,
                json!({"apiVersion": "v1", "kind": "List", "items": items}),
            )
        });
        let reports = self
            .reports
            .iter()
            .map(|(name, value)| (*name, value.clone()));
        for (name, value) in reports.chain(lists) {
            let text = serde_json::to_string_pretty(&value)? + "\n";
            files.insert(format!("{name}.json"), text);
        }
        Ok(files)
    }
}

/// True for a Lease that candidates name, that bears a mark of an election, or that is a lock of electors.
fn is_elected(lease: &Value, named: &BTreeSet<(String, String)>) -> bool {
    const MARKS: [&str; 4] = [
        annotation::TOKEN,
        annotation::STRATEGY,
        annotation::FREEZE,
        annotation::PREFER,
    ];
    let metadata = &lease["metadata"];
    let key = (text(&metadata["namespace"]), text(&metadata["name"]));
    let annotations = &metadata["annotations"];
    let is_lock = matches!(key.1.as_str(), "elector" | "leader-election-controller");
    named.contains(&key)
        || is_lock
        || lease["spec"]["strategy"].is_string()
        || MARKS.iter().any(|mark| annotations[mark].is_string())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

// === impl BundledList ===

impl BundledList {
    fn path(&self, namespace: Option<&str>) -> String {
        let root = match self.api_version {
            "v1" => "/api/v1".to_owned(),
            named => format!("/apis/{named}"),
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }
}
