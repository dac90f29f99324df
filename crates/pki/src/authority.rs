//! Self-signed authorities and the certificates that they issue.

use std::net::IpAddr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, SanType, SerialNumber,
};

use crate::{Certificate, PkiError, PrivateKey, crypto};

/// The default validity of an authority.
pub const DEFAULT_CA_DAYS: i32 = 3650;
/// The default validity of a leaf certificate.
pub const DEFAULT_LEAF_DAYS: i32 = 365;

/// An authority is valid from a little before its creation, because clocks differ by minutes.
pub const BACKDATED: SignedDuration = SignedDuration::from_mins(5);

/// Parameters of a new authority.
#[derive(Debug, Clone)]
pub struct CaRequest {
    /// Common name of subject and issuer.
    pub common_name: String,
    /// Days it is valid.
    pub days: i32,
}

impl CaRequest {
    /// An authority with the default lifetime of ten years.
    pub fn new(common_name: impl Into<String>) -> Self {
        Self {
            common_name: common_name.into(),
            days: DEFAULT_CA_DAYS,
        }
    }
}

/// The side of a TLS connection for which a leaf certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafUsage {
    /// A client certificate.
    Client,
    /// A server certificate.
    Server,
    /// Both, for connections between etcd members.
    Peer,
}

/// A certificate to issue.
#[derive(Debug, Clone)]
pub struct LeafRequest {
    /// Common name: the user for a client certificate.
    pub common_name: String,
    /// The group in a client certificate.
    pub organization: Option<String>,
    /// Names and addresses of a server; addresses are recognised by their form.
    pub alternative_names: Vec<String>,
    /// Its usage.
    pub usage: LeafUsage,
    /// Days it is valid.
    pub days: i32,
}

impl LeafRequest {
    /// A client certificate for a user in a group, valid for a year.
    pub fn client(user: impl Into<String>, group: impl Into<String>) -> Self {
        Self {
            common_name: user.into(),
            organization: Some(group.into()),
            alternative_names: Vec::new(),
            usage: LeafUsage::Client,
            days: DEFAULT_LEAF_DAYS,
        }
    }

    /// The administrator of a cluster, as kubeadm names it.
    pub fn administrator() -> Self {
        Self::client("kubernetes-admin", "system:masters")
    }

    /// A server certificate for names and addresses, valid for a year.
    pub fn server(common_name: impl Into<String>, alternative_names: Vec<String>) -> Self {
        Self {
            common_name: common_name.into(),
            organization: None,
            alternative_names,
            usage: LeafUsage::Server,
            days: DEFAULT_LEAF_DAYS,
        }
    }
}

/// A certificate authority with its key; clones share the key.
#[derive(Debug, Clone)]
pub struct CertificateAuthority {
    certificate: Certificate,
    key: PrivateKey,
}

impl CertificateAuthority {
    /// Creates a self-signed authority that may issue leaf certificates, but no further authorities.
    pub fn self_signed(request: &CaRequest, key: PrivateKey, now: Timestamp) -> Result<Self, PkiError> {
        let mut params = params(&request.common_name, None)?;
        // Timestamps reach far into the past: the minimum is never reached.
        let from = now.checked_sub(BACKDATED).unwrap_or(Timestamp::MIN);
        set_validity(&mut params, from, after_days(now, request.days));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::KeyCertSign,
        ];
        let signed = params.self_signed(key.pair()).map_err(crypto("signing an authority"))?;
        Ok(Self {
            certificate: Certificate::from_der(signed.der().to_vec())?,
            key,
        })
    }

    /// Parses an authority, and checks that the key belongs to the certificate.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, PkiError> {
        let certificate = Certificate::from_pem(certificate)?;
        let key = PrivateKey::from_pem(key)?;
        if certificate.public_key_der() != key.public_der() {
            return Err(PkiError::KeyMismatch {
                subject: certificate.common_name().to_owned(),
            });
        }
        Ok(Self { certificate, key })
    }

    /// Issues a certificate for the holder of `key`. As in kubeadm, it is valid from the same time as the authority, so that
    /// machines with slow clocks accept it.
    pub fn issue(&self, request: &LeafRequest, key: &PrivateKey, now: Timestamp) -> Result<Certificate, PkiError> {
        let mut params = params(&request.common_name, request.organization.as_deref())?;
        set_validity(
            &mut params,
            self.certificate.not_before(),
            after_days(now, request.days),
        );
        params.subject_alt_names = request
            .alternative_names
            .iter()
            .map(|name| alternative_name(name))
            .collect::<Result<_, _>>()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = match request.usage {
            LeafUsage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            LeafUsage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            LeafUsage::Peer => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        };
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_der(&self.certificate.der().into(), self.key.pair())
            .map_err(crypto("reading the authority"))?;
        let signed = params
            .signed_by(key.pair(), &issuer)
            .map_err(crypto("signing a certificate"))?;
        Certificate::from_der(signed.der().to_vec())
    }

    /// The authority's certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The authority's key.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }
}

fn params(common_name: &str, organization: Option<&str>) -> Result<CertificateParams, PkiError> {
    let mut serial = [0u8; 8];
    aws_lc_rs::rand::fill(&mut serial).map_err(|error| PkiError::Crypto {
        what: "choosing a serial number",
        why: error.to_string(),
    })?;
    // Serial numbers are positive and not zero.
    serial[0] &= 0x7f;
    serial[7] |= 1;
    let mut params = CertificateParams::default();
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    Ok(params)
}

fn alternative_name(name: &str) -> Result<SanType, PkiError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    name.try_into().map(SanType::DnsName).map_err(|_| PkiError::Malformed {
        what: "the alternative name",
        why: format!("\"{name}\" is neither an address nor a DNS name in ASCII"),
    })
}

fn after_days(now: Timestamp, days: i32) -> Timestamp {
    // X.509 ends with the year 9999, as timestamps do.
    let end = now.checked_add(SignedDuration::from_hours(i64::from(days) * 24));
    end.unwrap_or(Timestamp::MAX)
}

/// Certificates hold whole seconds; the certificate library has a time type of its own.
fn set_validity(params: &mut CertificateParams, from: Timestamp, until: Timestamp) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let moment = |at: Timestamp| {
        let span = Duration::from_secs(at.as_second().unsigned_abs());
        if at.as_second() < 0 { epoch - span } else { epoch + span }
    };
    params.not_before = moment(from);
    params.not_after = moment(until);
}
