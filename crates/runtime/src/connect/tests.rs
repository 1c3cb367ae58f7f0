use std::net::SocketAddr;

use clap::Parser;
use elector_api::{CandidateApi, Lease};
use elector_protocol::LeaseKey;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::testing::ForkPermit;
use crate::watch::{Scope, Watch, WatchEvent, WatchOptions, watch_leases};
use crate::writer::Writer;

#[derive(Parser)]
struct TestCommand {
    #[command(flatten)]
    client: ClientArgs,
}

fn parsed(arguments: &[&str]) -> Result<ClientArgs, String> {
    let arguments = std::iter::once(&"command").chain(arguments);
    TestCommand::try_parse_from(arguments)
        .map(|command| command.client)
        .map_err(|error| error.to_string())
}

/// A kubeconfig with the contexts `one` and `two`, current or not.
fn kubeconfig(server: &str, current: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\n{current}\n\
         clusters:\n- name: c1\n  cluster: {{server: {server}}}\n- name: c2\n  cluster: {{server: \"https://two\", proxy-url: \"http://own:1\"}}\n\
         users:\n- name: u1\n  user: {{token: t1}}\n- name: u2\n  user: {{token: t2}}\n\
         contexts:\n- name: one\n  context: {{cluster: c1, user: u1, namespace: n1}}\n\
         - name: two\n  context: {{cluster: c2, user: u2}}\n- name: none\n  context: {{cluster: lost, user: u1}}\n"
    )
}

fn write(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let file = directory.path().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    file
}

/// The same kubeconfig in a file of that name, with the context `one`.
fn current(directory: &TempDir, name: &str, server: &str) -> PathBuf {
    write(directory, name, &kubeconfig(server, "current-context: one"))
}

fn flag(file: &Path) -> ClientArgs {
    ClientArgs {
        kubeconfig: Some(file.to_owned()),
        ..ClientArgs::default()
    }
}

/// A server's listener and its address, and the flags for a connection to it, with the folder of their file.
async fn listening() -> (TcpListener, SocketAddr, ClientArgs, TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let directory = TempDir::new().unwrap();
    let args = flag(&current(&directory, "k", &format!("http://{address}")));
    (listener, address, args, directory)
}

async fn failure(args: &ClientArgs, environment: &Environment) -> String {
    configuration(args, environment)
        .await
        .unwrap_err()
        .to_string()
}

#[test]
fn flags_have_kubectls_names_and_these_defaults() {
    assert_eq!(parsed(&[]), Ok(ClientArgs::default()));
    let flags = "--kubeconfig=/k --context=x --cluster=c --user=u --as=a --as-group=g --as-group=h --request-timeout=7";
    let all = parsed(&flags.split(' ').collect::<Vec<_>>());
    let expected = ClientArgs {
        kubeconfig: Some("/k".into()),
        context: Some("x".into()),
        cluster: Some("c".into()),
        user: Some("u".into()),
        as_user: Some("a".into()),
        as_groups: vec!["g".into(), "h".into()],
        request_timeout: Duration::from_secs(7),
    };
    assert_eq!(all, Ok(expected));
    for bad in ["0", "99ms", "soon", "-1s"] {
        let holds = parsed(&[&format!("--request-timeout={bad}")]).is_err();
        assert!(holds, "{bad}");
    }
    assert!(parsed(&["--request-timeout=100ms"]).is_ok());
    assert!(parsed(&["--as-group=g"]).is_err());
}

#[test]
fn an_explicit_wish_never_falls_back() {
    let home = TempDir::new().unwrap();
    let usual = write(&home, ".kube/config", &kubeconfig("https://home", ""));
    let (here, nowhere) = (Some(home.path()), Some(Path::new("/nowhere")));
    let within = |kubeconfig: &str, home: Option<&Path>, in_pod| Environment {
        kubeconfig: Some(kubeconfig.into()),
        home: home.map(Into::into),
        in_pod,
        proxies: ProxyVariables::default(),
    };
    let (plain, explicit) = (ClientArgs::default(), flag(Path::new("/f")));
    let context = ClientArgs {
        context: Some("x".into()),
        ..ClientArgs::default()
    };
    let user = ClientArgs {
        user: Some("x".into()),
        ..ClientArgs::default()
    };
    let listed = ConfigSource::List(vec!["/a".into(), "/b".into()]);
    let (file, in_pod) = (ConfigSource::File, ConfigSource::InCluster);
    let none = || Err(ConnectError::NoCluster);
    for (args, environment, expected) in [
        (&explicit, within("/a", here, true), Ok(file("/f".into()))),
        (&plain, within("/a::/b", here, true), Ok(listed)),
        (&plain, within("", here, true), Ok(file(usual))),
        (&plain, within("", nowhere, true), Ok(in_pod)),
        (&context, within("", nowhere, true), none()),
        (&user, within("", nowhere, true), none()),
        (&plain, within("", None, false), none()),
    ] {
        assert_eq!(args.source(&environment), expected);
    }
    assert_eq!(Environment::read().home, env::home_dir());
}

#[tokio::test]
async fn context_cluster_and_user_are_chosen_one_by_one() {
    let directory = TempDir::new().unwrap();
    let file = current(&directory, "k", "https://one");
    let environment = Environment::default();
    let config = configuration(&flag(&file), &environment).await.unwrap();
    assert_eq!(
        (config.cluster_url.host(), config.default_namespace.as_str()),
        (Some("one"), "n1")
    );
    assert!(!config.default_retry);
    let expected = (Some(Duration::from_secs(5)), None);
    assert_eq!((config.connect_timeout, config.read_timeout), expected);
    let args = ClientArgs {
        cluster: Some("c2".into()),
        as_user: Some("somebody".into()),
        as_groups: vec!["g".into()],
        ..flag(&file)
    };
    let config = configuration(&args, &environment).await.unwrap();
    assert_eq!(
        (config.cluster_url.host(), config.default_namespace.as_str()),
        (Some("two"), "n1")
    );
    assert_eq!(config.auth_info.impersonate.as_deref(), Some("somebody"));
    let expected = Some(vec!["g".to_owned()]);
    assert_eq!(config.auth_info.impersonate_groups, expected);
}

#[tokio::test]
async fn a_proxy_comes_from_the_kubeconfig_or_the_environment() {
    let directory = TempDir::new().unwrap();
    let file = current(&directory, "k", "https://one");
    let environment = Environment {
        proxies: ProxyVariables {
            https_proxy: Some("http://environment:2".into()),
            no_proxy: Some("excepted".into()),
            ..ProxyVariables::default()
        },
        ..Environment::default()
    };
    let proxy = async |args: ClientArgs| {
        let config = configuration(&args, &environment).await.unwrap();
        config.proxy_url.map(|url| url.to_string())
    };
    let expected = Some("http://environment:2/");
    assert_eq!(proxy(flag(&file)).await.as_deref(), expected);
    let two = ClientArgs {
        context: Some("two".into()),
        ..flag(&file)
    };
    assert_eq!(proxy(two).await.as_deref(), Some("http://own:1/"));
    let file = current(&directory, "e", "https://excepted");
    assert_eq!(proxy(flag(&file)).await, None);
}

#[tokio::test]
async fn a_list_of_files_is_merged_and_may_have_holes() {
    let directory = TempDir::new().unwrap();
    let first = write(
        &directory,
        "a",
        "apiVersion: v1\nkind: Config\ncurrent-context: two\n",
    );
    let second = current(&directory, "b", "https://one");
    let missing = directory.path().join("missing");
    let list = env::join_paths([&first, &missing, &second]).unwrap();
    let environment = Environment {
        kubeconfig: Some(list),
        ..Environment::default()
    };
    let config = configuration(&ClientArgs::default(), &environment)
        .await
        .unwrap();
    assert_eq!(config.cluster_url.host(), Some("two"));
    let environment = Environment {
        kubeconfig: Some(missing.clone().into()),
        in_pod: true,
        ..Environment::default()
    };
    assert_eq!(
        failure(&ClientArgs::default(), &environment).await,
        format!(
            "read kubeconfig {}: none of these files exists",
            missing.display()
        )
    );
}

#[tokio::test]
async fn each_mistake_is_one_line_with_the_file_and_the_name() {
    let directory = TempDir::new().unwrap();
    let environment = Environment::default();
    let file = write(&directory, "k", &kubeconfig("https://one", ""));
    let broken = write(&directory, "broken", "apiVersion: [\n");
    let shown = file.display();
    let with = |change: fn(&mut ClientArgs)| {
        let mut args = flag(&file);
        change(&mut args);
        args
    };
    for (args, text) in [
        (
            flag(&file),
            format!("use kubeconfig {shown}: it has no current context, name one with --context"),
        ),
        (
            with(|args| args.context = Some("lost".into())),
            format!("use kubeconfig {shown}: there is no context \"lost\""),
        ),
        (
            with(|args| args.context = Some("none".into())),
            format!("use kubeconfig {shown}: there is no cluster \"lost\""),
        ),
        (
            with(|args| {
                args.context = Some("one".into());
                args.user = Some("lost".into());
            }),
            format!("use kubeconfig {shown}: there is no user \"lost\""),
        ),
        (
            flag(Path::new("/nowhere/k")),
            "read kubeconfig /nowhere/k: No such file or directory (os error 2)".to_owned(),
        ),
    ] {
        assert_eq!(failure(&args, &environment).await, text);
    }
    let text = failure(&flag(&broken), &environment).await;
    assert!(
        text.starts_with(&format!(
            "read kubeconfig {}: failed to parse",
            broken.display()
        )),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[tokio::test]
async fn no_message_repeats_a_password_or_a_token() {
    let _permit = ForkPermit::obtain();
    let directory = TempDir::new().unwrap();
    let config = |server: &str, proxy: &str, user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
             clusters:\n- name: x\n  cluster: {{server: \"{server}\", proxy-url: \"{proxy}\"}}\n\
             users:\n- name: x\n  user: {user}\n\
             contexts:\n- name: x\n  context: {{cluster: x, user: x}}\n"
        )
    };
    let plugin = |script: &str| {
        format!(
            "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, \
             args: [-c, \"{script}\"], env: [{{name: KEY, value: s3cret}}]}}}}"
        )
    };
    let failing = plugin("echo token: s3cret; echo no session >&2; exit 3");
    let rambling = plugin("echo s3cret");
    let plain = "{token: s3cret}";
    let no_proxy = Environment::default();
    let proxied = |proxy: &str| Environment {
        proxies: ProxyVariables {
            https_proxy: Some(proxy.to_owned()),
            ..ProxyVariables::default()
        },
        ..Environment::default()
    };
    for (text, environment, reason) in [
        (
            config("https://u:s3cret@host", "", plain),
            proxied("http://me:s3cret @proxy:3128"),
            "connection to https://host: the proxy of the environment is no URL",
        ),
        (
            config("https://host", "http://me:s3cret @proxy:3128", plain),
            no_proxy.clone(),
            "the cluster's proxy-url is no URL",
        ),
        (
            config("https://host", "me:s3cret@proxy:3128", plain),
            no_proxy.clone(),
            "the proxy's URL lacks its protocol",
        ),
        (
            config("https://u:s3cret@host", "ftp://me:s3cret@proxy", plain),
            no_proxy.clone(),
            "connection to https://host: the proxy's protocol \"ftp\" is neither",
        ),
        (
            config("https://host", "", "s3cret"),
            no_proxy.clone(),
            "failed to parse kubeconfig YAML: ",
        ),
        (
            config("https://host", "", &failing),
            no_proxy.clone(),
            "the credential plugin failed with exit status: 3: no session",
        ),
        (
            config("https://host", "", &rambling),
            no_proxy.clone(),
            "the credential plugin printed no ExecCredential",
        ),
    ] {
        let file = write(&directory, "k", &text);
        let Err(error) = open(&flag(&file), &environment).await else {
            panic!("{text}");
        };
        let (shown, debugged) = (error.to_string(), format!("{error:?}"));
        assert!(shown.contains(reason), "{shown}");
        let holds = !shown.contains("s3cret") && !debugged.contains("s3cret");
        assert!(holds, "{debugged}");
    }
    let text = config("http://u:s3cret@127.0.0.1:1", "", plain);
    let cluster = open(&flag(&write(&directory, "k", &text)), &no_proxy).await;
    assert_eq!(cluster.unwrap().url(), "http://127.0.0.1:1");
}

#[tokio::test]
async fn an_unreachable_server_is_named() {
    let (listener, address, args, _directory) = listening().await;
    drop(listener);
    let cluster = connect(&args).await.unwrap();
    assert_eq!(cluster.namespace(), "n1");
    let error = cluster.candidate_api().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "get the API coordination.k8s.io/v1beta1: http://{address} is unreachable: \
             Connection refused (os error 111)"
        )
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_in_time_and_never_asked_twice() {
    let (listener, address, mut args, _directory) = listening().await;
    args.request_timeout = Duration::from_millis(200);
    let cluster = connect(&args).await.unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..length]).to_lowercase();
        assert!(head.contains("authorization: bearer t1"), "{head}");
        // The head of an answer, and then nothing.
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
            .await
            .unwrap();
        assert_eq!(
            stream.read(&mut [0; 1]).await.unwrap_or(0),
            0,
            "the client hangs up"
        );
    };
    let writer = Writer::new(cluster, CandidateApi::V1Beta1);
    let key = LeaseKey::new("ns", "l");
    let (answer, ()) = tokio::join!(writer.read_lease(&key), server);
    assert_eq!(
        answer.unwrap_err().to_string(),
        format!("get leases.coordination.k8s.io ns/l: no answer from http://{address} in 200ms")
    );
    let again = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(again.is_err(), "nothing is retried");
}

/// Five seconds were all that any answer had to begin in, whatever the list's own limit was said to be.
#[tokio::test]
async fn a_list_may_take_its_own_time_to_begin_with_its_answer() {
    let (listener, _, mut args, _directory) = listening().await;
    let request_timeout = Duration::from_millis(100);
    args.request_timeout = request_timeout;
    let cluster = connect(&args).await.unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let length = stream.read(&mut vec![0; 4096]).await.unwrap();
        assert_ne!(length, 0);
        tokio::time::sleep(request_timeout * 3).await;
        let list = r#"{"metadata": {"resourceVersion": "7"}, "items": []}"#;
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{list}",
            list.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream
    };
    let mut watch: Watch<Lease> =
        watch_leases(&cluster, &Scope::Cluster, &WatchOptions::elector(0));
    let events = async {
        assert!(matches!(watch.next().await, WatchEvent::Gap { .. }));
        watch.next().await
    };
    let (listed, _stream) = tokio::join!(events, server);
    let holds = matches!(&listed, WatchEvent::Listed { items, .. } if items.is_empty());
    assert!(holds, "{listed:?}");
}
