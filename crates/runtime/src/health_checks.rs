//! Health checks by name, answered in the words of kube-apiserver and controller-runtime.
//!
//! | path | answer |
//! |---|---|
//! | `/livez`, `/readyz` | 200 and `ok`, or 500 and a line for each check; with `?verbose` that in any case |
//! | `/livez/NAME`, `/readyz/NAME` | 200 and `ok`, or 500 and the reason |
//! | `/healthz`, `/healthz/NAME` | as `/livez`, for probes that still use the older name |
//!
//! `?exclude=NAME`, also several times, leaves checks out.

use std::fmt::{self, Write as _};

use crate::http_server::ServerReply;

/// A check by its name.
pub struct HealthCheck {
    name: &'static str,
    check: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// The checks of a program: whether it has to be restarted, and whether it can do its work.
#[derive(Debug)]
pub struct HealthChecks {
    /// A program that fails one of these is of no use any more.
    pub live: Vec<HealthCheck>,
    /// A program that fails one of these is not to be relied upon yet, or no longer.
    pub ready: Vec<HealthCheck>,
}

// === impl HealthCheck ===

impl HealthCheck {
    /// A check of that name: a word of a-z and -. The text of a failure is for `/livez/NAME` and holds nothing that comes
    /// from objects.
    pub fn new(
        name: &'static str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            check: Box::new(check),
        }
    }

    /// The check that a program answers at all.
    pub fn ping() -> Self {
        Self::new("ping", || Ok(()))
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HealthCheck").field(&self.name).finish()
    }
}

// === impl HealthChecks ===

impl HealthChecks {
    /// The answer to a request for that path and query.
    pub fn answer(&self, path: &str, query: Option<&str>) -> ServerReply {
        let mut segments = path.trim_start_matches('/').splitn(2, '/');
        let (name, checks) = match segments.next() {
            Some("livez") => ("livez", &self.live),
            Some("healthz") => ("healthz", &self.live),
            Some("readyz") => ("readyz", &self.ready),
            _ => return ServerReply::not_found(),
        };
        match segments.next() {
            None | Some("") => answer_all(name, checks, query.unwrap_or_default()),
            Some(one) => match checks.iter().find(|check| check.name == one) {
                Some(check) => answer_one(check),
                None => ServerReply::not_found(),
            },
        }
    }
}

fn answer_one(check: &HealthCheck) -> ServerReply {
    match (check.check)() {
        Ok(()) => ServerReply::ok("ok"),
        Err(why) => ServerReply::failed(format!("internal server error: {why}\n")),
    }
}

fn answer_all(name: &str, checks: &[HealthCheck], query: &str) -> ServerReply {
    let parameters = || {
        query
            .split('&')
            .map(|it| it.split_once('=').unwrap_or((it, "")))
    };
    let excluded = |name: &str| parameters().any(|it| it == ("exclude", name));
    let unknown = parameters()
        .filter(|(key, value)| *key == "exclude" && checks.iter().all(|check| check.name != *value))
        .count();
    let (mut lines, mut failed) = (String::new(), false);
    for check in checks {
        let result = match (excluded(check.name), (check.check)()) {
            (true, _) => "excluded: ok",
            (false, Ok(())) => "ok",
            (false, Err(_)) => {
                failed = true;
                "failed: reason withheld"
            }
        };
        let sign = if result.starts_with("failed") {
            '-'
        } else {
            '+'
        };
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "[{sign}]{} {result}", check.name);
    }
    if unknown > 0 {
        // kube-apiserver repeats the names, which are the client's own text.
        let _ = writeln!(
            lines,
            "warn: some health checks cannot be excluded: no matches for {unknown} of the names"
        );
    }
    if failed {
        return ServerReply::failed(format!("{lines}{name} check failed\n"));
    }
    match parameters().any(|(key, _)| key == "verbose") {
        true => ServerReply::ok(format!("{lines}{name} check passed\n")),
        false => ServerReply::ok("ok"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ping` passes, `loop` fails, `sync` passes.
    fn checks() -> HealthChecks {
        let failing = || HealthCheck::new("loop", || Err("the loop stands still".to_owned()));
        let sync = || HealthCheck::new("sync", || Ok(()));
        HealthChecks {
            live: vec![HealthCheck::ping(), failing(), sync()],
            ready: vec![HealthCheck::ping(), sync()],
        }
    }

    fn answer(path: &str) -> (u16, String) {
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(path, query)| (path, Some(query)));
        let reply = checks().answer(path, query);
        (reply.code(), reply.body().to_owned())
    }

    #[test]
    fn what_passes_is_ok_and_verbose_on_request() {
        let ok = (200, "ok".to_owned());
        let expected = [ok.clone(), ok.clone()];
        assert_eq!([answer("/readyz"), answer("/readyz/")], expected);
        assert_eq!(answer("/livez/ping"), ok);
        assert_eq!(
            answer("/readyz?verbose"),
            (
                200,
                "[+]ping ok\n[+]sync ok\nreadyz check passed\n".to_owned()
            )
        );
        assert_eq!(
            answer("/livez?verbose&exclude=loop"),
            (
                200,
                "[+]ping ok\n[+]loop excluded: ok\n[+]sync ok\nlivez check passed\n".to_owned()
            )
        );
    }

    #[test]
    fn what_fails_is_always_verbose_and_gives_its_reason_under_its_name() {
        let lines = "[+]ping ok\n[-]loop failed: reason withheld\n[+]sync ok\n";
        for name in ["livez", "healthz"] {
            let expected = (500, format!("{lines}{name} check failed\n"));
            assert_eq!(answer(&format!("/{name}")), expected);
        }
        assert_eq!(
            answer("/livez/loop"),
            (
                500,
                "internal server error: the loop stands still\n".to_owned()
            )
        );
    }

    #[test]
    fn what_the_client_wrote_is_not_repeated() {
        let (code, body) = answer("/livez?exclude=loop&exclude=secret&exclude=<b>&verbose=1");
        assert_eq!(code, 200);
        let holds = body.contains("no matches for 2 of the names\nlivez check passed");
        assert!(holds, "{body}");
        assert!(!body.contains("secret") && !body.contains("<b>"), "{body}");
        for path in [
            "/",
            "/metrics",
            "/livez/secret",
            "/livez/loop/x",
            "/LIVEZ",
            "/readyz/loop",
        ] {
            let expected = (404, "404 page not found\n".to_owned());
            assert_eq!(answer(path), expected, "{path}");
        }
    }
}
