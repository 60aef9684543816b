//! The run's own certificate authority, and the certificates it gives out.
//!
//! Everything lives in memory and ends with the run: the authority's key never leaves this module,
//! and each attempt has a key of its own.

use musec_protocol::{ALPN, LaunchId, RunId, Ticket};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;
use thiserror::Error;

/// The authority of one run.
pub(crate) struct Identity {
    run: RunId,
    authority: CertifiedIssuer<'static, KeyPair>,
    provider: Arc<CryptoProvider>,
}

/// What one attempt proves itself with.
pub(crate) struct AttemptIdentity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key_pkcs8: Vec<u8>,
}

/// Keys or certificates could not be made.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The random number generator of the system failed.
    #[error("no random numbers from the system")]
    Random,
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// TLS did not accept what was made.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// TLS did not accept the run's authority.
    #[error("cannot set up the check of client certificates")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
}

/// `N` random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], IdentityError> {
    let mut bytes = [0; N];
    let provider = aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| IdentityError::Random)?;
    Ok(bytes)
}

impl Identity {
    pub(crate) fn new(run: RunId) -> Result<Self, IdentityError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, format!("musec run {run}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let authority = CertifiedIssuer::self_signed(params, key)?;
        // The lighter of the two ciphers for which processors have instructions: messages are short
        // and many, and its keys are as good as the certificates'.
        let mut provider = aws_lc_rs::default_provider();
        let light = aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
        provider.cipher_suites.sort_by_key(|suite| *suite != light);
        Ok(Self { run, authority, provider: Arc::new(provider) })
    }

    pub(crate) fn authority_der(&self) -> &[u8] {
        self.authority.der()
    }

    /// A fresh key and its certificate, made out to one launch of this run.
    pub(crate) fn issue(&self, launch: LaunchId) -> Result<AttemptIdentity, IdentityError> {
        let name = Ticket::attempt_name(self.run, launch);
        let (certificate, key) = self.sign(name, ExtendedKeyUsagePurpose::ClientAuth)?;
        Ok(AttemptIdentity { certificate, key_pkcs8: key.serialize_der() })
    }

    /// The coordinator's side of TLS: version 1.3 alone, a client certificate of this run's
    /// authority required, no resumption.
    pub(crate) fn server_config(&self) -> Result<ServerConfig, IdentityError> {
        let name = Ticket::coordinator_name(self.run);
        let (certificate, key) = self.sign(name, ExtendedKeyUsagePurpose::ServerAuth)?;
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone())?;
        let provider = Arc::clone(&self.provider);
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate], key)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.ignore_client_order = true;
        Ok(config)
    }

    fn sign(
        &self,
        name: String,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<(CertificateDer<'static>, KeyPair), IdentityError> {
        let mut params = CertificateParams::new(vec![name])?;
        params.extended_key_usages = vec![purpose];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.authority)?;
        Ok((certificate.der().clone(), key))
    }
}
