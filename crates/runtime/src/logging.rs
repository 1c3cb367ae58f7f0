//! Logs: one line per event on stderr, as text or as JSON, with Kubernetes' flags. What comes from objects is escaped.
//!
//! A JSON line has `ts` (milliseconds since 1970, as Kubernetes has it), `level` (`error`, `warn`, `info`, `debug`,
//! `trace`), `msg`, `logger` (the crate and module), then the fields of the spans around it and its own, by name.

use std::collections::BTreeMap;
use std::env;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::registry::{LookupSpan, Scope};
use tracing_subscriber::util::SubscriberInitExt;

use crate::terminal::{printable, printable_json};

/// The verbosity and the form of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "clap",
    derive(clap::Args),
    command(next_help_heading = "Logs")
)]
pub struct LogArgs {
    /// Form of the log lines.
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, global = true, env = "ELECTOR_LOGGING_FORMAT"))]
    pub logging_format: LogFormat,
    /// Verbosity: 0 warnings, 1 to 3 leadership changes and the like, 4 every decision, 6 every request and event.
    /// $RUST_LOG overrides it.
    #[cfg_attr(
        feature = "clap",
        arg(
            short = 'v',
            long = "v",
            value_name = "N",
            default_value_t = 2,
            global = true,
            env = "ELECTOR_V"
        )
    )]
    pub verbosity: u8,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Logging could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// $RUST_LOG is no filter.
    #[error("understand $RUST_LOG: {0}")]
    Filter(String),
    /// The process has a logger already.
    #[error("set up logging: {0}")]
    Installed(String),
}

/// Formats the message and the fields of a text line, which may come from anywhere.
struct TextFields;

/// Formats an event as one line of JSON.
struct JsonLine;

/// Collects the fields of an event.
#[derive(Default)]
struct LogFields {
    message: String,
    others: BTreeMap<String, Value>,
}

/// Sets up logging to stderr, for the whole process. Colours only for a terminal, and not with $NO_COLOR.
///
/// # Errors
///
/// When $RUST_LOG is no filter, or logging was set up before.
pub fn init_logging(args: &LogArgs) -> Result<(), LogError> {
    let filter = args.filter(env::var("RUST_LOG").ok().as_deref())?;
    let no_colour = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = io::stderr().is_terminal() && !no_colour;
    let subscriber = args.subscriber(filter, colour, io::stderr);
    subscriber
        .try_init()
        .map_err(|error| LogError::Installed(error.to_string()))
}

// === impl LogArgs ===

impl Default for LogArgs {
    fn default() -> Self {
        Self {
            logging_format: LogFormat::Text,
            verbosity: 2,
        }
    }
}

impl LogArgs {
    fn filter(&self, variable: Option<&str>) -> Result<EnvFilter, LogError> {
        if let Some(text) = variable.filter(|text| !text.trim().is_empty()) {
            return EnvFilter::try_new(text).map_err(|error| LogError::Filter(error.to_string()));
        }
        let (ours, others) = match self.verbosity {
            0 => ("warn", "error"),
            1..=3 => ("info", "error"),
            4 | 5 => ("debug", "warn"),
            6 | 7 => ("trace", "info"),
            _ => ("trace", "debug"),
        };
        // The client logs every failed request by itself; its sender logs one line that names the cause.
        let client = if self.verbosity < 6 { "off" } else { others };
        let text = format!(
            "{others},kube_client::client::builder={client},elector={ours},kubectl_elector={ours}"
        );
        EnvFilter::try_new(text).map_err(|error| LogError::Filter(error.to_string()))
    }

    fn subscriber<W>(
        &self,
        filter: EnvFilter,
        colour: bool,
        writer: W,
    ) -> Box<dyn Subscriber + Send + Sync>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let builder = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(writer)
            // Where standard error is closed, its complaint about that would be a panic.
            .log_internal_errors(false);
        match self.logging_format {
            LogFormat::Text => {
                let modules = self.verbosity >= 4;
                let builder = builder.with_ansi(colour).with_target(modules);
                Box::new(builder.fmt_fields(TextFields).finish())
            }
            LogFormat::Json => {
                let builder = builder.with_ansi(false).fmt_fields(JsonFields::new());
                Box::new(builder.event_format(JsonLine).finish())
            }
        }
    }
}

// === impl TextFields ===

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&printable(&text))
    }
}

// === impl JsonLine ===

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = LogFields::default();
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let formatted = extensions.get::<FormattedFields<N>>();
            let text = formatted.map_or("{}", |formatted| formatted.fields.as_str());
            if let Ok(Value::Object(map)) = serde_json::from_str(text) {
                fields.others.extend(map);
            }
        }
        event.record(&mut fields);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let metadata = event.metadata();
        let mut line = String::new();
        write!(
            line,
            "{{\"ts\":{}.{:03},\"level\":\"{}\",\"msg\":{},\"logger\":\"{}\"",
            now.as_millis(),
            now.subsec_micros() % 1000,
            metadata.level().as_str().to_lowercase(),
            Value::from(fields.message),
            metadata.target(),
        )?;
        for (name, value) in fields.others {
            // These four are taken.
            let prefix = if matches!(name.as_str(), "ts" | "level" | "msg" | "logger") {
                "field."
            } else {
                ""
            };
            write!(line, ",{}:{value}", Value::from(format!("{prefix}{name}")))?;
        }
        line.push_str("}\n");
        writer.write_str(&printable_json(&line))
    }
}

// === impl LogFields ===

impl LogFields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => {
                self.others.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// The log, line by line.
    #[derive(Clone, Default)]
    struct LogLines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogLines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(args: &LogArgs, variable: Option<&str>, log: impl FnOnce()) -> Vec<String> {
        let lines = LogLines::default();
        let writer = lines.clone();
        let filter = args.filter(variable).unwrap();
        let subscriber = args.subscriber(filter, false, move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn json() -> LogArgs {
        LogArgs {
            logging_format: LogFormat::Json,
            verbosity: 2,
        }
    }

    #[test]
    fn a_json_line_has_its_fields_by_name() {
        let lines = logged(&json(), None, || {
            let span = tracing::info_span!("reconcile", lease = "ns/l", step = 1);
            let _inside = span.enter();
            tracing::info!(holder = %"a\"b", term = 7u64, step = 2, msg = true, share = 0.5, why = "ended", "leader\nchanged");
        });
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(line.starts_with("{\"ts\":1"), "{line}");
        let mut value: Value = serde_json::from_str(line).unwrap();
        assert!(value["ts"].as_f64().unwrap() > 1_767_225_600_000.0);
        value["ts"] = 0.into();
        assert_eq!(
            value,
            serde_json::json!({
                "ts": 0, "level": "info", "msg": "leader\nchanged", "logger": "elector_runtime::logging::tests",
                "lease": "ns/l", "step": 2, "holder": "a\"b", "term": 7, "field.msg": true, "share": 0.5, "why": "ended",
            })
        );
    }

    #[test]
    fn text_is_one_line_with_fields() {
        let lines = logged(&LogArgs::default(), None, || {
            tracing::warn!(lease = %"ns/l", "slow");
        });
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with(" WARN slow lease=ns/l"), "{lines:?}");
    }

    #[test]
    fn what_comes_from_objects_neither_breaks_a_line_nor_reaches_the_terminal() {
        let log = || {
            let span = tracing::info_span!("reconcile", lease = "ns/\u{1b}[2J\n");
            let _inside = span.enter();
            let named = "\u{9b}2J\r\nINFO \u{202e}b\u{2028}\u{7f}";
            tracing::info!(holder = named, to = %named, why = ?named, "changed {named}");
        };
        let text = logged(&LogArgs::default(), None, log);
        let json = logged(&json(), None, log);
        for lines in [&text, &json] {
            let [line] = &lines[..] else {
                panic!("{lines:?}")
            };
            assert_eq!(printable(line), *line);
        }
        let value: Value = serde_json::from_str(&json[0]).unwrap();
        assert_eq!(value["to"], "\u{9b}2J\r\nINFO \u{202e}b\u{2028}\u{7f}");
        assert_eq!(value["lease"], "ns/\u{1b}[2J\n");
    }

    #[test]
    fn verbosity_chooses_what_is_logged_and_rust_log_overrides_it() {
        let all = || {
            tracing::error!("error");
            tracing::warn!("warn");
            tracing::info!("info");
            tracing::debug!("debug");
            tracing::trace!("trace");
            tracing::warn!(target: "kube_client", "theirs");
            tracing::debug!(target: "hyper", "theirs");
            tracing::error!(target: "kube_client::client::builder", "what the caller says too");
        };
        for (verbosity, variable, count) in [
            (0, None, 2),
            (1, None, 3),
            (3, None, 3),
            (4, None, 5),
            (6, None, 7),
            (8, None, 8),
            (255, Some(" "), 8),
            (8, Some("warn"), 4),
            (0, Some("hyper=debug"), 1),
        ] {
            let args = LogArgs {
                verbosity,
                ..json()
            };
            assert_eq!(
                logged(&args, variable, all).len(),
                count,
                "{verbosity} {variable:?}"
            );
        }
    }

    #[test]
    fn a_broken_filter_is_refused() {
        let error = json().filter(Some("a=b=c")).unwrap_err();
        let holds = error.to_string().starts_with("understand $RUST_LOG: ");
        assert!(holds, "{error}");
    }
}
