//! The time until which a client certificate is good: the one field of it that is of interest here.
//!
//! The parser of certificates that TLS uses shows no times, and others are ten more crates in every program that links this
//! one. So the few elements before that field are skipped by their lengths, and nothing of them is judged.

use elector_protocol::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use k8s_openapi::ByteString;
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// One element of DER: its tag, its content, and what follows it.
struct DerElement<'d> {
    tag: u8,
    content: &'d [u8],
    rest: &'d [u8],
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The explicit tag of the version, which old certificates leave out.
const VERSION: u8 = 0xa0;

/// When the client certificate of a user expires, the first where there is a chain. `None` where there is none that can be
/// read.
pub(super) fn expiry(user: &AuthInfo) -> Option<Timestamp> {
    let pem = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => {
            serde_json::from_value::<ByteString>(data.as_str().into())
                .ok()?
                .0
        }
        (None, Some(file)) => std::fs::read(file).ok()?,
        (None, None) => return None,
    };
    let certificate = CertificateDer::from_pem_slice(&pem).ok()?;
    not_after(&certificate)
}

/// Certificate, its to-be-signed part, and there version, serial number, algorithm and issuer before the validity.
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let certificate = DerElement::of(certificate, SEQUENCE)?;
    let mut fields = DerElement::of(certificate.content, SEQUENCE)?.content;
    if let Some(version) = DerElement::of(fields, VERSION) {
        fields = version.rest;
    }
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        fields = DerElement::of(fields, tag)?.rest;
    }
    let validity = DerElement::of(fields, SEQUENCE)?;
    let not_before = DerElement::first(validity.content)?;
    time(&DerElement::first(not_before.rest)?)
}

/// YYMMDDHHMMSSZ, of the years from 1950 to 2049, or with four digits of the year.
fn time(element: &DerElement<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(element.content).ok()?;
    let (year, rest) = match element.tag {
        UTC_TIME => {
            let year: i16 = text.get(..2)?.parse().ok()?;
            let century = if year < 50 { 2000 } else { 1900 };
            (century + year, text.get(2..)?)
        }
        GENERALIZED_TIME => (text.get(..4)?.parse().ok()?, text.get(4..)?),
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let date = Date::new(year, part(0)?, part(2)?).ok()?;
    let time = jiff::civil::Time::new(part(4)?, part(6)?, part(8)?, 0).ok()?;
    let zoned = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
    Timestamp::from_micros(zoned.timestamp().as_microsecond())
}

// === impl DerElement ===

impl<'d> DerElement<'d> {
    /// The first element, where it has that tag.
    fn of(bytes: &'d [u8], tag: u8) -> Option<Self> {
        Self::first(bytes).filter(|element| element.tag == tag)
    }

    fn first(bytes: &'d [u8]) -> Option<Self> {
        let (&tag, bytes) = bytes.split_first()?;
        let (&first, bytes) = bytes.split_first()?;
        let (length, bytes) = match first {
            0..=0x7f => (usize::from(first), bytes),
            // The number of bytes of a longer one; no certificate has a length of more than four.
            0x81..=0x84 => {
                let (length, bytes) = bytes.split_at_checked(usize::from(first - 0x80))?;
                let digits = length.iter().map(|byte| usize::from(*byte));
                (digits.fold(0, |length, byte| length << 8 | byte), bytes)
            }
            _ => return None,
        };
        let (content, rest) = bytes.split_at_checked(length)?;
        Some(Self { tag, content, rest })
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn expiring(year: i32) -> rcgen::Certificate {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 3, 4);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    fn base64(text: String) -> String {
        let value = serde_json::to_value(ByteString(text.into_bytes())).unwrap();
        value.as_str().unwrap().to_owned()
    }

    fn at(text: &str) -> Option<Timestamp> {
        let time: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_micros(time.as_microsecond())
    }

    #[test]
    fn the_expiry_is_read_from_a_file_and_from_data() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.crt");
        // From 2050 on the year has four digits.
        for (year, expected) in [
            (1950, "1950-03-04T00:00:00Z"),
            (2031, "2031-03-04T00:00:00Z"),
            (2061, "2061-03-04T00:00:00Z"),
        ] {
            let pem = expiring(year).pem();
            std::fs::write(&file, &pem).unwrap();
            let user = AuthInfo {
                client_certificate: Some(file.display().to_string()),
                ..AuthInfo::default()
            };
            assert_eq!(expiry(&user), at(expected));
        }
        let pem = expiring(2033).pem();
        let user = AuthInfo {
            client_certificate_data: Some(base64(pem)),
            ..AuthInfo::default()
        };
        let expected = at("2033-03-04T00:00:00Z");
        assert_eq!(expiry(&user), expected, "data goes before a file");
        assert_eq!(expiry(&AuthInfo::default()), None);
    }

    #[test]
    fn a_certificate_that_is_cut_or_damaged_has_no_expiry_and_does_no_harm() {
        let der = expiring(2031).der().to_vec();
        let known = not_after(&der);
        assert!(known.is_some());
        for end in 0..der.len() {
            assert_eq!(not_after(&der[..end]), None, "cut at {end}");
        }
        for index in 0..der.len() {
            for value in [0x00, 0x80, 0x84, 0xff] {
                let mut damaged = der.clone();
                damaged[index] = value;
                let _ = not_after(&damaged);
            }
        }
        let nines = [0x84, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(not_after(&[&[SEQUENCE][..], &nines].concat()), None);
    }
}
