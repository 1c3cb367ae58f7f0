//! A TLS server that wants client certificates and remembers them, and certificates that change.

use std::path::Path;
use std::slice;
use std::sync::{Arc, Mutex};

use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::super::{ClientArgs, Environment, configuration, open, rotation};
use super::*;

type CertificateAuthority = CertifiedIssuer<'static, KeyPair>;

/// A certificate and its key.
struct Pair {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

/// A server, and the certificate that each of its connections showed.
#[derive(Clone)]
struct TlsServer {
    port: u16,
    shown: Arc<Mutex<Vec<CertificateDer<'static>>>>,
    tls: Arc<Mutex<Arc<ServerConfig>>>,
}

/// A kubeconfig whose certificates are files beside it.
struct Folder(TempDir);

fn authority() -> CertificateAuthority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

// === impl Pair ===

impl Pair {
    fn new(authority: &CertificateAuthority, usage: ExtendedKeyUsagePurpose, year: i32) -> Self {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, authority).unwrap();
        Self { certificate, key }
    }

    fn client(authority: &CertificateAuthority) -> Self {
        Self::client_until(authority, 4000)
    }

    fn client_until(authority: &CertificateAuthority, year: i32) -> Self {
        Self::new(authority, ExtendedKeyUsagePurpose::ClientAuth, year)
    }
}

// === impl TlsServer ===

impl TlsServer {
    async fn start(authority: &CertificateAuthority) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            shown: Arc::default(),
            tls: Arc::new(Mutex::new(Self::tls(authority, authority))),
        };
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().serve(stream));
            }
        });
        server
    }

    /// One authority for the server's certificate, one for those of clients.
    fn tls(own: &CertificateAuthority, clients: &CertificateAuthority) -> Arc<ServerConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(clients.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
        let pair = Pair::new(own, ExtendedKeyUsagePurpose::ServerAuth, 4000);
        let key = PrivateKeyDer::Pkcs8(pair.key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![pair.certificate.der().clone()], key);
        Arc::new(config.unwrap())
    }

    /// Answers every request; `/last` is the last one of its connection.
    async fn serve(self, stream: TcpStream) {
        let tls = Arc::clone(&self.tls.lock().unwrap());
        let Ok(mut stream) = TlsAcceptor::from(tls).accept(stream).await else {
            return;
        };
        let leaf = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
        self.shown.lock().unwrap().push(leaf.into_owned());
        let mut head = Vec::new();
        while let Ok(byte) = stream.read_u8().await {
            head.push(byte);
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            let last = head.starts_with(b"GET /last ");
            let more = if last { "connection: close\r\n" } else { "" };
            let answer = format!("HTTP/1.1 200 OK\r\n{more}content-length: 2\r\n\r\n{{}}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            if last {
                let _ = stream.shutdown().await;
                return;
            }
            head.clear();
        }
    }

    fn shown(&self) -> Vec<CertificateDer<'static>> {
        self.shown.lock().unwrap().clone()
    }
}

// === impl Folder ===

impl Folder {
    fn new(server: &TlsServer, authority: &CertificateAuthority, pair: &Pair) -> Self {
        let folder = Self(TempDir::new().unwrap());
        let port = server.port;
        folder.write(
            "config",
            &format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
                 clusters:\n- name: x\n  cluster: {{server: \"https://127.0.0.1:{port}\", certificate-authority: ca.crt}}\n\
                 users:\n- name: x\n  user: {{client-certificate: client.crt, client-key: client.key}}\n\
                 contexts:\n- name: x\n  context: {{cluster: x, user: x}}\n"
            ),
        );
        folder.write("ca.crt", &authority.pem());
        folder.write("client.crt", &pair.certificate.pem());
        folder.write("client.key", &pair.key.serialize_pem());
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    async fn client(&self, look_every: Duration) -> Client {
        self.client_with(look_every, &ServerContact::new()).await
    }

    /// A client as in a pod, where certificates are files and there is no kubeconfig.
    async fn client_in_pod(&self) -> Client {
        let args = ClientArgs::of_kubeconfig(self.path().join("config"));
        let config = configuration(&args, &Environment::default()).await.unwrap();
        let none: Reread = Box::new(|_| Err("there is no kubeconfig".to_owned()));
        let mut rotation =
            Rotation::new(none, FollowedFiles::new(Vec::new()), ServerContact::new());
        rotation.look_every = Duration::ZERO;
        rotation.client(config).unwrap()
    }

    async fn client_with(&self, look_every: Duration, contact: &ServerContact) -> Client {
        let args = ClientArgs::of_kubeconfig(self.path().join("config"));
        let environment = Environment::default();
        let mut rotation = rotation(&args, &environment, contact.clone()).unwrap();
        rotation.look_every = look_every;
        let config = configuration(&args, &environment).await.unwrap();
        rotation.client(config).unwrap()
    }

    /// A kubeconfig with the certificate in it, as `kubeadm kubeconfig user` writes it.
    fn write_embedded(&self, port: u16, authority: &CertificateAuthority, pair: &Pair) {
        let base64 = |text: String| serde_json::to_value(ByteString(text.into_bytes())).unwrap();
        let [authority, certificate, key] = [
            authority.pem(),
            pair.certificate.pem(),
            pair.key.serialize_pem(),
        ]
        .map(base64);
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "clusters": [{"name": "x", "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority-data": authority,
            }}],
            "users": [{"name": "x", "user": {
                "client-certificate-data": certificate,
                "client-key-data": key,
            }}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        });
        // As a tool replaces a file: under another name first.
        self.write("config.new", &config.to_string());
        let [from, to] = ["config.new", "config"].map(|name| self.path().join(name));
        std::fs::rename(from, to).unwrap();
    }
}

async fn get(client: &Client, path: &str) -> Result<(), String> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{error:?}")),
    }
}

#[tokio::test]
async fn a_rotated_client_certificate_is_shown_without_a_restart() {
    let authority = authority();
    let (old, new) = (Pair::client(&authority), Pair::client(&authority));
    let server = TlsServer::start(&authority).await;
    let folder = Folder::new(&server, &authority, &old);
    let client = folder.client(Duration::ZERO).await;
    let (old, new_der) = (old.certificate.der(), new.certificate.der());

    get(&client, "/a").await.unwrap();
    get(&client, "/last").await.unwrap();
    assert_eq!(server.shown(), slice::from_ref(old), "one connection");
    folder.write("client.crt", &new.certificate.pem());
    get(&client, "/a").await.unwrap();
    get(&client, "/a").await.unwrap();
    assert_eq!(
        server.shown(),
        [old.clone(), old.clone()],
        "half a pair is none, a new connection shows the old one"
    );
    folder.write("client.key", &new.key.serialize_pem());
    get(&client, "/a").await.unwrap();
    assert_eq!(
        server.shown(),
        [old.clone(), old.clone(), new_der.clone()],
        "also where a connection with the old one is open"
    );
    get(&client, "/a").await.unwrap();
    assert_eq!(server.shown().len(), 3, "which then stays");
}

/// A client is made anew, or a line says that it cannot be, once for each change.
#[test]
fn a_change_is_found_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("client.crt");
    std::fs::write(&path, "old").unwrap();
    let mut files = FollowedFiles::new(vec![path.clone()]);
    assert!(!files.have_changed());
    for text in ["half", "new"] {
        std::fs::write(&path, text).unwrap();
        assert!(files.have_changed(), "{text}");
        assert!(!files.have_changed(), "{text}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(files.have_changed(), "it is gone");
    assert!(!files.have_changed(), "it is gone");
}

#[tokio::test]
async fn files_are_looked_at_once_in_a_while() {
    let authority = authority();
    let (old, new) = (Pair::client(&authority), Pair::client(&authority));
    let server = TlsServer::start(&authority).await;
    let folder = Folder::new(&server, &authority, &old);
    let client = folder.client(Duration::from_secs(3600)).await;
    folder.write("client.crt", &new.certificate.pem());
    folder.write("client.key", &new.key.serialize_pem());
    get(&client, "/a").await.unwrap();
    assert_eq!(server.shown(), slice::from_ref(old.certificate.der()));
}

#[tokio::test]
async fn a_rotated_authority_of_the_server_is_trusted_without_a_restart() {
    for in_pod in [false, true] {
        let (before, after) = (authority(), authority());
        let server = TlsServer::start(&before).await;
        let folder = Folder::new(&server, &before, &Pair::client(&before));
        let client = match in_pod {
            false => folder.client(Duration::ZERO).await,
            true => folder.client_in_pod().await,
        };
        get(&client, "/last").await.unwrap();
        *server.tls.lock().unwrap() = TlsServer::tls(&after, &before);
        folder.write("ca.crt", "half of it");
        let error = get(&client, "/a").await.unwrap_err();
        assert!(error.contains("InvalidCertificate"), "{error}");
        folder.write("ca.crt", &after.pem());
        get(&client, "/a").await.unwrap();
    }
}

#[tokio::test]
async fn a_certificate_that_is_renewed_within_the_kubeconfig_is_used_without_a_restart() {
    let authority = authority();
    let (old, new) = (
        Pair::client_until(&authority, 2031),
        Pair::client_until(&authority, 2032),
    );
    let server = TlsServer::start(&authority).await;
    let folder = Folder::new(&server, &authority, &old);
    folder.write_embedded(server.port, &authority, &old);
    let contact = ServerContact::new();
    let client = folder.client_with(Duration::ZERO, &contact).await;
    get(&client, "/a").await.unwrap();
    let before = contact.certificate_expires().unwrap();
    let args = ClientArgs::of_kubeconfig(folder.path().join("config"));
    let cluster = open(&args, &Environment::default()).await.unwrap();
    assert_eq!(cluster.contact().certificate_expires(), Some(before));

    folder.write("config", "users: [");
    get(&client, "/a").await.unwrap();
    let elsewhere = TlsServer::start(&authority).await;
    folder.write_embedded(elsewhere.port, &authority, &new);
    get(&client, "/a").await.unwrap();
    let shown = slice::from_ref(old.certificate.der());
    assert_eq!(
        server.shown(),
        shown,
        "half a file is none, nor is one of another server"
    );
    assert!(elsewhere.shown().is_empty());

    folder.write_embedded(server.port, &authority, &new);
    get(&client, "/a").await.unwrap();
    get(&client, "/a").await.unwrap();
    let shown = [&old, &new].map(|pair| pair.certificate.der().clone());
    assert_eq!(server.shown(), shown);
    let year = 365 * 24 * 3600 * 1_000_000;
    let gained = contact.certificate_expires().unwrap().as_micros() - before.as_micros();
    assert!(gained >= year, "{gained}");
}

#[tokio::test]
async fn a_context_that_becomes_the_current_one_later_changes_nothing() {
    let authority = authority();
    let (old, new) = (Pair::client(&authority), Pair::client(&authority));
    let server = TlsServer::start(&authority).await;
    let folder = Folder::new(&server, &authority, &old);
    let client = folder.client(Duration::ZERO).await;
    get(&client, "/a").await.unwrap();

    folder.write_embedded(server.port, &authority, &new);
    let text = std::fs::read(folder.path().join("config")).unwrap();
    let mut config: Value = serde_json::from_slice(&text).unwrap();
    config["current-context"] = json!("nobody");
    let nobody = json!({"name": "nobody", "context": {"cluster": "x", "user": "nobody"}});
    config["contexts"].as_array_mut().unwrap().push(nobody);
    folder.write("config", &config.to_string());
    get(&client, "/a").await.unwrap();
    let shown = [&old, &new].map(|pair| pair.certificate.der().clone());
    assert_eq!(
        server.shown(),
        shown,
        "that of the first context, as it is now"
    );
}
