//! Finding a cluster as kubectl finds it, and connecting to it as a controller should.

mod certificate;
mod rotation;
mod stack;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(feature = "clap")]
use elector_api::parse_duration_or_seconds;
use futures::FutureExt as _;
use kube::Config;
use kube::config::{self, KubeConfigOptions, Kubeconfig, KubeconfigError};

use self::rotation::{FollowedFiles, Rotation};
use crate::cluster::Cluster;
use crate::line::one_line;
use crate::proxy::ProxyVariables;
use crate::secrets::{setup_failure, shown};
use crate::server_contact::ServerContact;

/// Which cluster to talk to, and as which user. Flags of kubectl's names, each with a variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "clap",
    derive(clap::Args),
    command(next_help_heading = "Cluster")
)]
#[non_exhaustive]
pub struct ClientArgs {
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the service account of the pod]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "FILE", global = true, env = "ELECTOR_KUBECONFIG")
    )]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current one]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", global = true, env = "ELECTOR_CONTEXT")
    )]
    pub context: Option<String>,
    /// Cluster of the kubeconfig [default: that of the context]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", global = true, env = "ELECTOR_CLUSTER")
    )]
    pub cluster: Option<String>,
    /// User of the kubeconfig [default: that of the context]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", global = true, env = "ELECTOR_USER")
    )]
    pub user: Option<String>,
    /// User to impersonate [default: none]
    #[cfg_attr(
        feature = "clap",
        arg(long = "as", value_name = "USER", global = true, env = "ELECTOR_AS")
    )]
    pub as_user: Option<String>,
    /// Group to impersonate; may be given several times, and the variable names one [default: none]
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "as-group",
            value_name = "GROUP",
            global = true,
            requires = "as_user",
            env = "ELECTOR_AS_GROUP"
        )
    )]
    pub as_groups: Vec<String>,
    /// Timeout of one request, its answer included. At least 100ms
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "DURATION",
            default_value = "5s",
            global = true,
            value_parser = timeout,
            env = "ELECTOR_REQUEST_TIMEOUT"
        )
    )]
    pub request_timeout: Duration,
}

/// No connection could be set up. Nothing was sent yet: an unreachable server is found out by the first request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No flag, file or variable names the cluster.
    #[error(
        "find a cluster: there is no --kubeconfig, no $KUBECONFIG, no ~/.kube/config and no service account of a pod"
    )]
    NoCluster,
    /// A kubeconfig cannot be read or parsed.
    #[error("read kubeconfig {file}: {why}")]
    Kubeconfig {
        /// The file, or the files of $KUBECONFIG.
        file: String,
        /// The first line of the reason.
        why: String,
    },
    /// The kubeconfig lacks what was asked for.
    #[error("use kubeconfig {file}: {why}")]
    Selection {
        /// The file, or the files of $KUBECONFIG.
        file: String,
        /// The part that is lacking, by name.
        why: String,
    },
    /// The pod's service account is not usable.
    #[error("use the pod's service account: {0}")]
    InCluster(String),
    /// The client cannot be made: TLS, proxy or credentials.
    #[error("set up the connection to {url}: {why}")]
    Client {
        /// The API server.
        url: String,
        /// The first line of the reason.
        why: String,
    },
}

/// The cluster settings of the environment.
#[derive(Clone, Debug, Default)]
struct Environment {
    kubeconfig: Option<OsString>,
    home: Option<PathBuf>,
    in_pod: bool,
    proxies: ProxyVariables,
}

/// Where a configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ConfigSource {
    /// One file that must exist.
    File(PathBuf),
    /// The files of $KUBECONFIG, of which one must exist.
    List(Vec<PathBuf>),
    /// The pod's service account.
    InCluster,
}

/// Connects to the cluster that the flags and the environment name.
///
/// The client retries nothing. The watches and the writer of this crate give up each request after the time that is theirs,
/// the request timeout where nothing else is said. Must be called in a tokio runtime.
///
/// # Errors
///
/// When no cluster is named, or what names it is wrong; the text says which file and what in it.
pub async fn connect(args: &ClientArgs) -> Result<Cluster, ConnectError> {
    open(args, &Environment::read()).await
}

async fn open(args: &ClientArgs, environment: &Environment) -> Result<Cluster, ConnectError> {
    let contact = ServerContact::new();
    let rotation = rotation(args, environment, contact.clone())?;
    let config = configuration(args, environment).await?;
    let url = shown(&config.cluster_url);
    let client = rotation
        .client(config)
        .map_err(|error| ConnectError::Client {
            url: url.clone(),
            why: setup_failure(&error),
        })?;
    Ok(Cluster::new(client, url, args.request_timeout).with_contact(contact))
}

/// Follows the kubeconfigs, as they are now, from before they are used.
fn rotation(
    args: &ClientArgs,
    environment: &Environment,
    contact: ServerContact,
) -> Result<Rotation, ConnectError> {
    let kubeconfigs = match args.source(environment)? {
        ConfigSource::File(file) => vec![file],
        ConfigSource::List(files) => files,
        ConfigSource::InCluster => Vec::new(),
    };
    let files = FollowedFiles::new(kubeconfigs.clone());
    let mut args = args.clone();
    if args.context.is_none() {
        // Another context that becomes the current one later changes nothing.
        let mut contexts = kubeconfigs.iter().filter_map(|file| {
            let kubeconfig = Kubeconfig::read_from(file).ok()?;
            kubeconfig.current_context.filter(|it| !it.is_empty())
        });
        args.context = contexts.next();
    }
    let environment = environment.clone();
    let reread = move |before: &Config| -> Result<Config, String> {
        // Files are read without waiting.
        let config = configuration(&args, &environment).now_or_never();
        let config = config.unwrap_or(Err(ConnectError::NoCluster));
        let config = config.map_err(|error| one_line(&error.to_string()))?;
        if config.cluster_url == before.cluster_url {
            return Ok(config);
        }
        // It may be another cluster, and this process goes by what it knows of the one that it has.
        let url = shown(&config.cluster_url);
        Err(format!(
            "they name another server, {url}, which takes a restart"
        ))
    };
    Ok(Rotation::new(Box::new(reread), files, contact))
}

// === impl ClientArgs ===

impl Default for ClientArgs {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            cluster: None,
            user: None,
            as_user: None,
            as_groups: Vec::new(),
            request_timeout: Cluster::REQUEST_TIMEOUT,
        }
    }
}

impl ClientArgs {
    /// The current context of that kubeconfig, and all else by default.
    pub fn of_kubeconfig(file: impl Into<PathBuf>) -> Self {
        Self {
            kubeconfig: Some(file.into()),
            ..Self::default()
        }
    }

    /// A file wins over the environment, and flags that name any part of a kubeconfig never mean the pod.
    fn source(&self, environment: &Environment) -> Result<ConfigSource, ConnectError> {
        if let Some(file) = &self.kubeconfig {
            return Ok(ConfigSource::File(file.clone()));
        }
        let list = environment
            .kubeconfig
            .as_ref()
            .map(env::split_paths)
            .into_iter()
            .flatten();
        let list: Vec<_> = list.filter(|path| !path.as_os_str().is_empty()).collect();
        if !list.is_empty() {
            return Ok(ConfigSource::List(list));
        }
        let usual = environment
            .home
            .as_ref()
            .map(|home| home.join(".kube/config"));
        if let Some(file) = usual.filter(|file| file.exists()) {
            return Ok(ConfigSource::File(file));
        }
        let asked = self.context.is_some() || self.cluster.is_some() || self.user.is_some();
        if environment.in_pod && !asked {
            return Ok(ConfigSource::InCluster);
        }
        Err(ConnectError::NoCluster)
    }
}

// === impl Environment ===

impl Environment {
    fn read() -> Self {
        Self {
            kubeconfig: env::var_os("KUBECONFIG"),
            home: env::home_dir(),
            in_pod: env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            proxies: ProxyVariables::read(|name| env::var(name).ok()),
        }
    }
}

async fn configuration(
    args: &ClientArgs,
    environment: &Environment,
) -> Result<Config, ConnectError> {
    let (mut config, own_proxy) = match args.source(environment)? {
        ConfigSource::File(file) => from_files(args, &[file], false).await?,
        ConfigSource::List(files) => from_files(args, &files, true).await?,
        ConfigSource::InCluster => {
            let config = Config::incluster()
                .map_err(|error| ConnectError::InCluster(one_line(&error.to_string())))?;
            (config, false)
        }
    };
    if !own_proxy {
        let proxy = environment.proxies.proxy_for(&config.cluster_url);
        config.proxy_url = match proxy.as_deref().map(str::parse) {
            None => None,
            Some(Ok(proxy)) => Some(proxy),
            Some(Err(error)) => {
                return Err(ConnectError::Client {
                    url: shown(&config.cluster_url),
                    why: format!("the proxy of the environment is no URL: {error}"),
                });
            }
        };
    }
    if let Some(user) = &args.as_user {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups = Some(args.as_groups.clone());
    }
    // A writer by compare-and-swap must see every failure; a retried PUT that had been applied is a conflict.
    config.default_retry = false;
    config.connect_timeout = Some(args.request_timeout);
    config.write_timeout = Some(args.request_timeout);
    // A watch may be silent for longer than any request; it has a limit of its own.
    config.read_timeout = None;
    Ok(config)
}

/// Reads and merges kubeconfigs. The second value tells whether the cluster's entry names a proxy of its own.
async fn from_files(
    args: &ClientArgs,
    files: &[PathBuf],
    skip_missing: bool,
) -> Result<(Config, bool), ConnectError> {
    let names: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let names = names.join(":");
    let mut merged: Option<Kubeconfig> = None;
    for file in files {
        if skip_missing && !file.exists() {
            continue;
        }
        let one = read_kubeconfig(file)?;
        merged = Some(match merged {
            None => one,
            Some(before) => before
                .merge(one)
                .map_err(|error| unreadable(file, &error))?,
        });
    }
    let Some(kubeconfig) = merged else {
        let why = "none of these files exists".to_owned();
        return Err(ConnectError::Kubeconfig { file: names, why });
    };
    let lacking = |why: String| ConnectError::Selection {
        file: names.clone(),
        why,
    };
    if let Some(user) = &args.user
        && !kubeconfig.auth_infos.iter().any(|one| one.name == *user)
    {
        return Err(lacking(format!("there is no user {user:?}")));
    }
    let cluster = chosen_cluster(args, &kubeconfig);
    let own_proxy = cluster.is_some_and(|cluster| {
        let proxy = cluster.proxy_url.as_deref();
        proxy.is_some_and(|proxy| !proxy.is_empty())
    });
    let authority = cluster
        .filter(|cluster| cluster.certificate_authority_data.is_none())
        .and_then(|cluster| cluster.certificate_authority.clone());
    let options = KubeConfigOptions {
        context: args.context.clone(),
        cluster: args.cluster.clone(),
        user: args.user.clone(),
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| {
        lacking(match error {
            KubeconfigError::CurrentContextNotSet => {
                "it has no current context, name one with --context".to_owned()
            }
            KubeconfigError::LoadContext(name) => format!("there is no context {name:?}"),
            KubeconfigError::LoadClusterOfContext(name) => format!("there is no cluster {name:?}"),
            KubeconfigError::ParseProxyUrl(error) if own_proxy => {
                format!("the cluster's proxy-url is no URL: {error}")
            }
            KubeconfigError::ParseProxyUrl(error) => {
                format!("the proxy of the environment is no URL: {error}")
            }
            other => one_line(&other.to_string()),
        })
    })?;
    config.root_cert_file = authority.map(PathBuf::from);
    Ok((config, own_proxy))
}

fn read_kubeconfig(file: &Path) -> Result<Kubeconfig, ConnectError> {
    Kubeconfig::read_from(file).map_err(|error| unreadable(file, &error))
}

fn unreadable(file: &Path, error: &KubeconfigError) -> ConnectError {
    ConnectError::Kubeconfig {
        file: file.display().to_string(),
        why: match error {
            KubeconfigError::ReadConfig(error, _) => error.to_string(),
            // The lines below the first show the file around the place, secrets and all.
            other => one_line(&other.to_string()),
        },
    }
}

fn chosen_cluster<'k>(
    args: &ClientArgs,
    kubeconfig: &'k Kubeconfig,
) -> Option<&'k config::Cluster> {
    let context = args
        .context
        .as_ref()
        .or(kubeconfig.current_context.as_ref());
    let context = kubeconfig
        .contexts
        .iter()
        .find(|one| Some(&one.name) == context);
    let named = context
        .and_then(|one| one.context.as_ref())
        .map(|context| &context.cluster);
    let cluster = args.cluster.as_ref().or(named);
    let mut clusters = kubeconfig.clusters.iter();
    let found = clusters.find(|one| Some(&one.name) == cluster);
    found?.cluster.as_ref()
}

#[cfg(feature = "clap")]
fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = parse_duration_or_seconds(text).map_err(|error| error.to_string())?;
    if timeout < Duration::from_millis(100) {
        return Err("must be at least 100ms".to_owned());
    }
    Ok(timeout)
}

#[cfg(test)]
#[cfg(feature = "clap")]
mod tests;
