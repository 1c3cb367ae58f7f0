//! `elector fence-policy`: admission policies by which the API server compares fencing tokens (R14).

mod resource;
mod writer;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use elector_api::names::{dns_label, dns_subdomain};

use self::resource::Resource;
use self::writer::{ServiceAccount, user};
use crate::output;

/// Writes admission policies that refuse the writes of a leader that has been replaced.
///
/// Prints two ValidatingAdmissionPolicies and their bindings as YAML, for kubectl apply: the named accounts then write
/// the named resources only with the fencing token of the term in the annotation elector.dev/token of the object.
/// Comments in it say what this cannot promise. No cluster is needed; the one that it is for has Kubernetes 1.30 or
/// later.
#[derive(Args, Debug)]
pub(crate) struct FencePolicyArgs {
    /// A resource that leaders write, as kubectl names it: RESOURCE.GROUP, as in deployments.apps, or RESOURCE of the
    /// core group, as in configmaps
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<Resource>,

    /// Name of the lease
    #[arg(long, value_name = "NAME", value_parser = lease)]
    lease: String,

    /// Namespace of the lease
    #[arg(short = 'n', long, default_value = "default", value_parser = namespace)]
    namespace: String,

    /// A service account whose writes need a token; without a namespace, one of the lease's namespace. May be given
    /// several times
    #[arg(
        long = "serviceaccount",
        value_name = "[NAMESPACE:]NAME",
        required_unless_present = "users"
    )]
    service_accounts: Vec<ServiceAccount>,

    /// A user whose writes need a token. May be given several times
    #[arg(long = "user", value_name = "NAME", value_parser = user)]
    users: Vec<String>,

    /// What the names of the policies begin with [default: elector-fence, the namespace and the lease, with dots
    /// between them]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// No name can hold the marks for what goes in: they are no ASCII.
const TEMPLATE: &str = include_str!("fence_policy/policies.yaml");

/// The longest of what follows the prefix in the name of a policy.
const LONGEST_ENDING: &str = ".object";

/// Runs the sub-command.
pub(crate) fn run(args: &FencePolicyArgs) -> anyhow::Result<ExitCode> {
    let policies = args.policies().context("write the policies")?;
    output::print(&policies).context("print the policies")?;
    Ok(ExitCode::SUCCESS)
}

fn lease(text: &str) -> Result<String, String> {
    let problems = dns_subdomain(text);
    problems
        .first()
        .map_or(Ok(text.to_owned()), |rule| Err(rule.clone()))
}

fn namespace(text: &str) -> Result<String, String> {
    let problems = dns_label(text);
    problems
        .first()
        .map_or(Ok(text.to_owned()), |rule| Err(rule.clone()))
}

// === impl FencePolicyArgs ===

impl FencePolicyArgs {
    fn policies(&self) -> anyhow::Result<String> {
        let Self {
            namespace, lease, ..
        } = self;
        let name = match &self.name {
            Some(name) => name.clone(),
            None => format!("elector-fence.{namespace}.{lease}"),
        };
        if let Some(rule) = dns_subdomain(&format!("{name}{LONGEST_ENDING}")).first() {
            anyhow::bail!("{name}{LONGEST_ENDING} can be no name of a policy (see --name): {rule}");
        }
        let writers = self.writers();
        let list: Vec<String> = self.resources().iter().map(ToString::to_string).collect();
        let values = [
            ("«NAMESPACE»", namespace.clone()),
            ("«LEASE»", lease.clone()),
            ("«NAME»", name),
            ("«RESOURCE_LIST»", list.join(", ")),
            ("«WRITER_LIST»", writers.join(", ")),
            ("«RULES»", self.rules()),
            ("«WRITERS»", lines(&writers, "          '", "',")),
        ];
        Ok(values
            .iter()
            .fold(TEMPLATE.to_owned(), |text, (mark, value)| {
                text.replace(mark, value)
            }))
    }

    /// Each resource once, in order.
    fn resources(&self) -> Vec<&Resource> {
        let mut resources: Vec<_> = self.resources.iter().collect();
        resources.sort();
        resources.dedup();
        resources
    }

    /// The names of the accounts as the server has them, each once.
    fn writers(&self) -> Vec<String> {
        let accounts = self.service_accounts.iter();
        let mut writers: Vec<_> = accounts
            .map(|account| account.user_name(&self.namespace))
            .chain(self.users.iter().cloned())
            .collect();
        writers.sort();
        writers.dedup();
        writers
    }

    /// The rules of a policy: one for each API group.
    fn rules(&self) -> String {
        let resources = self.resources();
        let rules = resources.chunk_by(|a, b| a.group == b.group).map(|of_group| {
            let names: Vec<_> = of_group.iter().map(|resource| &*resource.name).collect();
            format!(
                "      - apiGroups: ['{}']\n        apiVersions: ['*']\n        operations: [CREATE, UPDATE]\n        \
                 resources: ['{}']",
                of_group[0].group,
                names.join("', '")
            )
        });
        rules.collect::<Vec<_>>().join("\n")
    }
}

/// One line for each item, between these texts.
fn lines(items: &[String], before: &str, after: &str) -> String {
    let lines = items.iter().map(|item| format!("{before}{item}{after}"));
    lines.collect::<Vec<_>>().join("\n")
}
