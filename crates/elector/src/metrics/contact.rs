//! The contact to the API server, as it is at the scrape.

use std::fmt::{self, Error};
use std::sync::{Arc, Mutex, PoisonError};

use elector_runtime::{MetricDescription, ServerContact};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Shows the contact of the elector that began last. Clones are the same one.
#[derive(Clone, Default)]
pub(super) struct ContactCollector(Arc<Mutex<Option<ServerContact>>>);

const SILENCE: &str = "elector_api_server_silence";
const SILENCE_HELP: &str = "Time since the API server last gave this elector an answer of use";
const EXPIRATION: &str = "elector_client_certificate_expiration_timestamp";
const EXPIRATION_HELP: &str =
    "When the client certificate in use expires, since the epoch of Unix; none without one";

// === impl ContactCollector ===

impl ContactCollector {
    pub(super) fn descriptions() -> impl Iterator<Item = MetricDescription> {
        let gauges = [(SILENCE, SILENCE_HELP), (EXPIRATION, EXPIRATION_HELP)];
        gauges.into_iter().map(|(name, help)| {
            MetricDescription::new(
                format!("{name}_seconds"),
                "gauge",
                &[],
                Some("seconds"),
                help,
            )
        })
    }

    pub(super) fn set(&self, contact: ServerContact) {
        // A poisoned lock holds a valid state: every update is an assignment.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(contact);
    }

    fn contact(&self) -> Option<ServerContact> {
        let contact = self.0.lock();
        contact.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Collector for ContactCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let Some(contact) = self.contact() else {
            return Ok(());
        };
        let mut gauge = |name, help, value: f64| {
            let unit = Unit::Seconds;
            let metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)
        };
        gauge(SILENCE, SILENCE_HELP, contact.silence().as_secs_f64())?;
        if let Some(expires) = contact.certificate_expires() {
            let seconds = expires.as_micros().div_euclid(1_000_000);
            // Whole seconds of any year that a certificate can name are exact.
            gauge(EXPIRATION, EXPIRATION_HELP, seconds as f64)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ContactCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContactCollector").finish_non_exhaustive()
    }
}
