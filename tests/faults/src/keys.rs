//! The keys of the proxy: an authority of its own, which the kubeconfigs of its clients name.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

/// The proxy's credentials towards its clients.
#[derive(Clone)]
pub(crate) struct Keys {
    /// The authority's certificate, PEM.
    pub(crate) authority: String,
    /// Speaks TLS with clients, and HTTP/2 with those that can.
    pub(crate) acceptor: TlsAcceptor,
}

// === impl Keys ===

impl Keys {
    /// New ones.
    pub(crate) fn generate() -> Result<Self> {
        let authority = authority()?;
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()])
            .context("failed to name the certificate")?;
        params
            .distinguished_name
            .push(DnType::CommonName, "elector fault proxy");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().context("failed to generate a key")?;
        let certificate = params
            .signed_by(&key, &authority)
            .context("failed to sign the certificate")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("failed to choose the TLS versions")?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .context("failed to use the certificate")?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            authority: authority.pem(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "elector fault proxy authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate().context("failed to generate a key")?;
    CertifiedIssuer::self_signed(params, key).context("failed to sign the authority")
}
