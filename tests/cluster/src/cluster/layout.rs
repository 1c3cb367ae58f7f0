//! The files of a cluster: where each lies, and the ones that are written before the start.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

/// The user without any rights beyond discovery.
pub(super) const USER: &str = "unprivileged";

/// The folder of one cluster.
#[derive(Clone, Debug)]
pub(super) struct ClusterLayout {
    folder: PathBuf,
}

// === impl ClusterLayout ===

impl ClusterLayout {
    /// A cluster in this folder, which may not exist yet.
    pub(super) fn at(folder: &Path) -> Result<Self> {
        let folder = std::path::absolute(folder)
            .with_context(|| format!("failed to make {} absolute", folder.display()))?;
        Ok(Self { folder })
    }

    /// Creates the folders; no other user can read them.
    pub(super) fn create(&self) -> Result<()> {
        for path in [self.folder.clone(), self.pki(""), self.logs()] {
            fs::create_dir_all(&path)
                .with_context(|| format!("failed to create {}", path.display()))?;
        }
        restrict(&self.folder)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn etcd_data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    pub(super) fn log(&self, program: &str) -> PathBuf {
        self.logs().join(format!("{program}.log"))
    }

    pub(super) fn pki(&self, name: &str) -> PathBuf {
        self.folder.join("pki").join(name)
    }

    pub(super) fn tokens(&self) -> PathBuf {
        self.pki("tokens.csv")
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    pub(super) fn user_kubeconfig(&self) -> PathBuf {
        self.folder.join("user.kubeconfig")
    }

    /// The socket of the process that owns a cluster which outlives the command that started it.
    pub(super) fn owner(&self) -> PathBuf {
        self.folder.join("owner")
    }

    /// Removes what this module and the servers wrote, and the folder itself if nothing else lies in it: with
    /// `--dir` it may be anybody's.
    pub(super) fn remove(&self) -> Result<()> {
        for folder in [self.etcd_data(), self.logs(), self.pki("")] {
            ignore_missing(fs::remove_dir_all(&folder))
                .with_context(|| format!("failed to remove {}", folder.display()))?;
        }
        // The socket goes last: as long as it is there, `down` can be repeated.
        for file in [self.kubeconfig(), self.user_kubeconfig(), self.owner()] {
            ignore_missing(fs::remove_file(&file))
                .with_context(|| format!("failed to remove {}", file.display()))?;
        }
        match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            result => ignore_missing(result)
                .with_context(|| format!("failed to remove {}", self.folder.display())),
        }
    }

    /// Writes keys, certificates, tokens and kubeconfigs for a server at `url`; returns what a probe needs.
    pub(super) fn write_credentials(&self, url: &str) -> Result<Credentials> {
        let authority = authority()?;
        let (certificate, key) = server_certificate(&authority)?;
        let service_accounts = KeyPair::generate().context("failed to generate a key")?;
        let (admin, user) = (token()?, token()?);
        private(&self.pki("ca.crt"), &authority.pem())?;
        private(&self.pki("ca.key"), &authority.key().serialize_pem())?;
        private(&self.pki("server.crt"), &certificate)?;
        private(&self.pki("server.key"), &key)?;
        private(
            &self.pki("service-accounts.key"),
            &service_accounts.serialize_pem(),
        )?;
        private(
            &self.pki("service-accounts.pub"),
            &service_accounts.public_key_pem(),
        )?;
        private(
            &self.tokens(),
            &format!("{admin},admin,admin,\"system:masters\"\n{user},{USER},{USER}\n"),
        )?;
        let kubeconfig = |user: &str, token: &str| {
            kubeconfig(url, &self.pki("ca.crt"), user, &[("token", token)])
        };
        private(&self.kubeconfig(), &kubeconfig("admin", &admin))?;
        private(&self.user_kubeconfig(), &kubeconfig(USER, &user))?;
        Ok(Credentials {
            authority: authority.der().to_vec(),
            token: admin,
        })
    }

    /// Signs a client certificate for a user, in that group if any, and writes it, its key and a kubeconfig with both into
    /// that folder; returns the kubeconfig.
    pub(super) fn write_client(
        &self,
        url: &str,
        (user, group): (&str, Option<&str>),
        folder: &Path,
    ) -> Result<PathBuf> {
        let authority = fs::read_to_string(self.pki("ca.key")).context("there is no authority")?;
        let authority = KeyPair::from_pem(&authority).context("failed to read a key")?;
        let authority = Issuer::new(authority_params(), authority);
        let (certificate, key) = client_certificate(&authority, user, group)?;
        let name = user.replace([':', '/'], "-");
        let file = |kind: &str| folder.join(format!("{name}.{kind}"));
        private(&file("crt"), &certificate)?;
        private(&file("key"), &key)?;
        let paths = (file("crt"), file("key"), file("kubeconfig"));
        let credentials = [
            ("client-certificate", &*paths.0.to_string_lossy()),
            ("client-key", &*paths.1.to_string_lossy()),
        ];
        let text = kubeconfig(url, &self.pki("ca.crt"), user, &credentials);
        private(&paths.2, &text)?;
        Ok(paths.2)
    }
}

/// The means of a cluster's owner to ask it something.
pub(super) struct Credentials {
    /// The certificate authority, DER.
    pub(super) authority: Vec<u8>,
    /// The administrator's bearer token.
    pub(super) token: String,
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>> {
    let key = KeyPair::generate().context("failed to generate a key")?;
    CertifiedIssuer::self_signed(authority_params(), key)
        .context("failed to sign the certificate authority")
}

/// The parameters of the certificate authority of servers and of users.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "elector test cluster");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

fn server_certificate(authority: &CertifiedIssuer<'_, KeyPair>) -> Result<(String, String)> {
    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
    let mut params =
        CertificateParams::new(names.to_vec()).context("failed to name the certificate")?;
    params
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().context("failed to generate a key")?;
    let certificate = params
        .signed_by(&key, authority)
        .context("failed to sign the certificate")?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// The certificate and key of that user: the common name is the user's, the organization that of its group.
fn client_certificate(
    authority: &Issuer<'_, KeyPair>,
    user: &str,
    group: Option<&str>,
) -> Result<(String, String)> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().context("failed to generate a key")?;
    let certificate = params
        .signed_by(&key, authority)
        .context("failed to sign the certificate")?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// 128 random bits as hexadecimal digits.
fn token() -> Result<String> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("failed to read /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn kubeconfig(url: &str, authority: &Path, user: &str, credentials: &[(&str, &str)]) -> String {
    // Every value is quoted as JSON, which YAML reads.
    let authority = serde_json::Value::from(authority.to_string_lossy());
    let line = |(name, value): &(&str, &str)| {
        let value = serde_json::Value::from(*value);
        format!("    {name}: {value}\n")
    };
    let credentials: String = credentials.iter().map(line).collect();
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: elector\n  cluster:\n    server: \"{url}\"\n    certificate-authority: {authority}\n\
         users:\n\
         - name: \"{user}\"\n  user:\n{credentials}\
         contexts:\n\
         - name: elector\n  context:\n    cluster: elector\n    user: \"{user}\"\n\
         current-context: elector\n"
    )
}

/// Writes a file that only its owner can read.
fn private(path: &Path, text: &str) -> Result<()> {
    ignore_missing(fs::remove_file(path))
        .and_then(|()| {
            fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
        })
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("failed to write {}", path.display()))
}

fn restrict(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        .with_context(|| format!("failed to restrict {}", folder.display()))
}

fn ignore_missing(result: std::io::Result<()>) -> std::io::Result<()> {
    result.or_else(|error| {
        if error.kind() == ErrorKind::NotFound {
            Ok(())
        } else {
            Err(error)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn credentials_are_private_and_name_each_user_once() {
        let folder = tempfile::tempdir().unwrap();
        let layout = ClusterLayout::at(&folder.path().join("cluster")).unwrap();
        layout.create().unwrap();
        let credentials = layout.write_credentials("https://127.0.0.1:1").unwrap();

        for file in [
            layout.kubeconfig(),
            layout.user_kubeconfig(),
            layout.tokens(),
            layout.pki("server.key"),
            layout.pki("ca.key"),
        ] {
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.display());
        }
        let admin = fs::read_to_string(layout.kubeconfig()).unwrap();
        let user = fs::read_to_string(layout.user_kubeconfig()).unwrap();
        assert!(admin.contains(&credentials.token) && !user.contains(&credentials.token));
        assert!(admin.contains("server: \"https://127.0.0.1:1\""), "{admin}");

        // A second start in the same folder replaces them.
        let again = layout.write_credentials("https://127.0.0.1:1").unwrap();
        assert_ne!(again.token, credentials.token);
    }

    #[test]
    fn a_client_has_a_certificate_of_its_own_and_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let layout = ClusterLayout::at(&folder.path().join("cluster")).unwrap();
        layout.create().unwrap();
        let url = "https://127.0.0.1:1";
        layout.write_credentials(url).unwrap();
        let client = ("system:somebody", Some("a-group"));
        let kubeconfig = layout.write_client(url, client, folder.path()).unwrap();

        let text = fs::read_to_string(&kubeconfig).unwrap();
        assert!(!text.contains("token"), "{text}");
        for file in ["system-somebody.crt", "system-somebody.key"] {
            let path = folder.path().join(file);
            assert!(text.contains(&*path.to_string_lossy()), "{text}");
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }

    #[test]
    fn removing_leaves_what_others_put_there() {
        let folder = tempfile::tempdir().unwrap();
        let layout = ClusterLayout::at(folder.path()).unwrap();
        layout.create().unwrap();
        layout.write_credentials("https://127.0.0.1:1").unwrap();
        fs::create_dir(layout.etcd_data()).unwrap();
        let foreign = folder.path().join("notes.txt");
        fs::write(&foreign, "mine").unwrap();

        layout.remove().unwrap();
        let left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(left, std::slice::from_ref(&foreign));

        fs::remove_file(foreign).unwrap();
        layout.remove().unwrap();
        assert!(!folder.path().exists());
    }
}
