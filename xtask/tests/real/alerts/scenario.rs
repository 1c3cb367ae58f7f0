//! The scrapes of Prometheus, half a minute apart, of two electors, two candidates of a lease and a kube-apiserver.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Six hours in the life of a cluster, and the alerts that fire at some time of it.
pub(crate) struct AlertScenario {
    pub(crate) name: &'static str,
    pub(crate) fires: Vec<&'static str>,
    series: BTreeMap<String, String>,
}

/// All of the time.
const ALWAYS: usize = 720;
/// The time before and after an outage of 20 minutes.
const BEFORE: usize = 60;
const OUTAGE: usize = 40;

/// The series of the two electors, `a` which acts and `b` which stands by, each with its values.
const OF_AN_ELECTOR: &str = r#"elector_build_info{version="0.1.0"} 1
elector_acting 0
elector_ready 1
elector_api_server_silence_seconds 5
elector_leases{namespace="web",state="led"} 3
elector_leases{namespace="web",state="leaderless"} 0
elector_leases{namespace="web",state="released"} 0
elector_longest_leaderless_seconds{namespace="web"} 0
elector_oldest_preference_seconds{namespace="web"} 0
elector_preference_duration_seconds_count 0
elector_preference_duration_seconds_bucket{le="10.0"} 0
elector_leader_changes_total{namespace="web",reason="released"} 0
elector_writes_total{resource="leases",verb="update",outcome="unknown"} 0
elector_watch_failures_total{resource="leases"} 0
workqueue_queue_duration_seconds_bucket{name="elections",le="1.0"} 0
workqueue_queue_duration_seconds_bucket{name="elections",le="10.0"} 0
workqueue_queue_duration_seconds_bucket{name="elections",le="+Inf"} 0"#;
const LED: &str = "elector_leases{namespace=\"web\",state=\"led\"}";
const RELEASED: &str = "elector_leases{namespace=\"web\",state=\"released\"}";
const LEADERLESS: &str = "elector_longest_leaderless_seconds{namespace=\"web\"}";
const PREFERENCE: &str = "elector_oldest_preference_seconds{namespace=\"web\"}";
const CHANGES: &str = "elector_leader_changes_total{namespace=\"web\",reason=\"released\"}";
const UNKNOWN: &str =
    "elector_writes_total{resource=\"leases\",verb=\"update\",outcome=\"unknown\"}";
const WATCHES: &str = "elector_watch_failures_total{resource=\"leases\"}";
const SILENCE: &str = "elector_api_server_silence_seconds";
const DENIED: &str = "apiserver_validating_admission_policy_check_total{policy=\"elector-lease\",enforcement_action=\"deny\"}";
const RENEWED: &str = "elector_candidate_writes_total{purpose=\"renew\",outcome=\"done\"}";
const NOT_RENEWED: &str = "elector_candidate_writes_total{purpose=\"renew\",outcome=\"unknown\"}";
const LEADING: &str = "elector_candidate_leading";
const WELL: &str = "elector_candidate_well";
const LOST: &str = "elector_candidate_terms_ended_total{cause=\"deadline_passed\"}";

fn of_an_elector() -> impl Iterator<Item = (&'static str, &'static str)> {
    OF_AN_ELECTOR
        .lines()
        .filter_map(|line| line.split_once(' '))
}

/// A value, and from the time before an outage on another.
fn since(before: &'static str, after: &'static str) -> [(&'static str, usize); 2] {
    [(before, BEFORE), (after, ALWAYS - BEFORE)]
}

/// Another value for so many scrapes after that time, and then a third.
fn around(
    [before, meanwhile, after]: [&'static str; 3],
    scrapes: usize,
) -> [(&'static str, usize); 3] {
    let rest = ALWAYS - BEFORE - scrapes;
    [(before, BEFORE), (meanwhile, scrapes), (after, rest)]
}

// === impl AlertScenario ===

impl AlertScenario {
    /// Two electors and the leader of a lease with a standby, and nothing happens.
    fn healthy(name: &'static str, fires: &[&'static str]) -> Self {
        let mut scenario = Self {
            name,
            fires: fires.to_vec(),
            series: BTreeMap::new(),
        };
        for elector in ["a", "b"] {
            for (series, value) in of_an_elector() {
                scenario.elector(elector, series, &[(value, ALWAYS)]);
            }
        }
        scenario.elector("a", "elector_acting", &[("1", ALWAYS)]);
        for (pod, leads) in [("p", "1"), ("q", "0")] {
            scenario.candidate(pod, LEADING, &[(leads, ALWAYS)]);
            scenario.candidate(pod, WELL, &[("1", ALWAYS)]);
            scenario.candidate(pod, LOST, &[("0", ALWAYS)]);
        }
        scenario.candidate("p", RENEWED, &[("+15", ALWAYS)]);
        scenario.candidate("p", NOT_RENEWED, &[("0", ALWAYS)]);
        scenario.of_server(DENIED, &[("0", ALWAYS)]);
        scenario
    }

    /// The series in the form of promtool.
    pub(crate) fn series(&self) -> Vec<Value> {
        let series = self.series.iter();
        series
            .map(|(series, values)| json!({"series": series, "values": values}))
            .collect()
    }

    /// A series of one elector has these values.
    fn elector(&mut self, instance: &str, series: &str, values: &[(&str, usize)]) -> &mut Self {
        let labels = format!("job=\"elector\",instance=\"{instance}\"");
        self.set(series, &labels, values)
    }

    /// A series of both of them.
    fn electors(&mut self, series: &str, values: &[(&str, usize)]) -> &mut Self {
        self.elector("a", series, values);
        self.elector("b", series, values)
    }

    /// A series of one candidate.
    fn candidate(&mut self, pod: &str, series: &str, values: &[(&str, usize)]) -> &mut Self {
        let labels = format!("job=\"web\",instance=\"{pod}\",namespace=\"web\",lease=\"l\"");
        self.set(series, &labels, values)
    }

    /// A series of kube-apiserver.
    fn of_server(&mut self, series: &str, values: &[(&str, usize)]) -> &mut Self {
        self.set(series, "job=\"apiserver\"", values)
    }

    /// Values are parts of so many scrapes each: a constant, `+N` for what grows by N from one scrape to the next, from where it
    /// is or from zero after a gap, `_` for none. A series that ends before the others do is gone from then on.
    fn set(&mut self, series: &str, labels: &str, values: &[(&str, usize)]) -> &mut Self {
        let (name, own) = series.split_once('{').unwrap_or((series, "}"));
        let separator = if own == "}" { "" } else { "," };
        let series = format!("{name}{{{labels}{separator}{own}");
        let (mut parts, mut last) = (Vec::new(), 0);
        for (value, scrapes) in values {
            let times = scrapes - 1;
            if *value == "_" {
                parts.push(format!("_x{scrapes}"));
                last = 0;
            } else if let Some(step) = value.strip_prefix('+') {
                let step: usize = step.parse().unwrap();
                parts.push(format!("{}+{step}x{times}", last + step));
                last += step * scrapes;
            } else {
                parts.push(format!("{value}x{times}"));
                last = value.parse().unwrap();
            }
        }
        if values.iter().map(|(_, scrapes)| scrapes).sum::<usize>() < ALWAYS {
            parts.push("stale".to_owned());
        }
        self.series.insert(series, parts.join(" "));
        self
    }

    /// A process is gone, with all of its series, after so many scrapes.
    fn end(&mut self, instance: &str, after: usize) {
        let its = format!("instance=\"{instance}\"");
        for (_, values) in self.series.iter_mut().filter(|(it, _)| it.contains(&its)) {
            let (value, _) = values.split_once('x').unwrap();
            *values = format!("{value}x{} stale", after - 1);
        }
    }
}

/// Nothing fires but the alert that the scenario is about.
pub(crate) fn silent() -> Vec<AlertScenario> {
    let rest = ALWAYS - BEFORE - OUTAGE;
    let mut scenarios = vec![AlertScenario::healthy("nothing happens", &[])];

    let mut drained = AlertScenario::healthy(
        "a node is drained, with the elector that acts and leaders",
        &[],
    );
    drained.end("a", BEFORE);
    drained.end("p", BEFORE);
    drained.elector("b", "elector_acting", &since("0", "1"));
    for (series, value) in of_an_elector() {
        let value = [("_", BEFORE + 2), (value, ALWAYS - BEFORE - 2)];
        drained.elector("c", series, &value);
    }
    for (series, value) in [(LEADERLESS, "16"), (PREFERENCE, "3"), (LED, "1")] {
        let before = if series == LED { "3" } else { "0" };
        let values = around([before, value, before], 1);
        drained.elector("b", series, &values);
    }
    drained.elector("b", CHANGES, &around(["0", "+6", "6"], 1));
    // The Pods are scraped one after the other, so both may show the term for one scrape.
    drained.candidate("p", LEADING, &[("1", BEFORE + 1)]);
    drained.candidate("q", LEADING, &since("0", "1"));
    scenarios.push(drained);

    let mut outage =
        AlertScenario::healthy("the API server is away for 20 minutes", &["ElectorCutOff"]);
    for elector in ["a", "b"] {
        cut_off(&mut outage, elector);
    }
    let acting = around(["1", "0", "1"], OUTAGE);
    outage.elector("a", "elector_acting", &acting);
    let values = [("0", BEFORE + OUTAGE), ("+3", 1), ("3", rest - 1)];
    outage.electors(CHANGES, &values);
    let leading = around(["1", "0", "1"], OUTAGE);
    outage.candidate("p", LEADING, &leading);
    outage.candidate("p", LOST, &since("0", "1"));
    outage.candidate("p", RENEWED, &around(["+15", "+0", "+15"], OUTAGE));
    outage.candidate("p", NOT_RENEWED, &since("0", "5"));
    scenarios.push(outage);

    let mut at_rest = AlertScenario::healthy("all candidates are scaled to zero", &[]);
    for (series, before, after) in [(LED, "3", "0"), (RELEASED, "0", "3")] {
        at_rest.electors(series, &[(before, BEFORE), (after, ALWAYS - BEFORE)]);
    }
    for pod in ["p", "q"] {
        at_rest.end(pod, BEFORE);
    }
    scenarios.push(at_rest);

    let mut one = AlertScenario::healthy(
        "the elector that acts is cut off for 20 minutes",
        &["ElectorCutOff"],
    );
    cut_off(&mut one, "a");
    one.elector("a", "elector_acting", &since("1", "0"));
    one.elector("b", "elector_acting", &since("0", "1"));
    scenarios.push(one);
    scenarios
}

/// An elector hears nothing for 20 minutes: to it all leases expire, and none of its requests is answered.
fn cut_off(scenario: &mut AlertScenario, elector: &str) {
    let rest = ALWAYS - BEFORE - OUTAGE;
    scenario.elector(elector, SILENCE, &around(["5", "+30", "5"], OUTAGE));
    scenario.elector(elector, LED, &around(["3", "0", "3"], OUTAGE));
    let leaderless = "elector_leases{namespace=\"web\",state=\"leaderless\"}";
    scenario.elector(elector, leaderless, &around(["0", "3", "0"], OUTAGE));
    // At the first scrape after it the leases are not led yet.
    let longest = [("0", BEFORE), ("+30", OUTAGE + 1), ("0", rest - 1)];
    scenario.elector(elector, LEADERLESS, &longest);
    for series in [WATCHES, UNKNOWN] {
        scenario.elector(elector, series, &around(["0", "+15", "600"], OUTAGE));
    }
}

/// One fault each, and the alert that it fires.
pub(crate) fn faults() -> Vec<AlertScenario> {
    let mut scenarios = Vec::new();
    let mut fault = |alert: &'static str, change: &dyn Fn(&mut AlertScenario)| {
        let mut scenario = AlertScenario::healthy(alert, &[alert]);
        change(&mut scenario);
        scenarios.push(scenario);
    };
    let always = |value| [(value, ALWAYS)];
    fault("ElectorAbsent", &|it| {
        it.series
            .retain(|series, _| !series.contains("job=\"elector\""));
    });
    fault("ElectorNoneActs", &|it| {
        it.electors("elector_acting", &always("0"));
    });
    fault("ElectorCutOff", &|it| {
        it.elector("b", SILENCE, &always("+30"));
    });
    fault("ElectorFewerThanTwoReady", &|it| {
        it.elector("b", "elector_ready", &always("0"));
    });
    fault("ElectorTwoVersions", &|it| {
        it.elector(
            "b",
            "elector_build_info{version=\"0.1.0\"}",
            &[("_", ALWAYS)],
        );
        it.elector("b", "elector_build_info{version=\"0.2.0\"}", &always("1"));
    });
    fault("ElectorReplicasDisagree", &|it| {
        it.elector("b", LED, &always("2"));
    });
    fault("ElectorLeaderlessLeases", &|it| {
        it.electors(LEADERLESS, &since("0", "+30"));
    });
    fault("ElectorGroupUneven", &|it| {
        let due = "elector_group_parts{namespace=\"web\",state=\"to_move\"}";
        it.electors(due, &around(["0", "1", "0"], 40));
    });
    fault("ElectorLeaderMakesNoRoom", &|it| {
        it.electors(PREFERENCE, &since("0", "+30"));
    });
    for (alert, obstacle) in [
        ("ElectorObstructedLeases", "foreign_strategy"),
        ("ElectorPreferencesHeldBack", "holder_cannot_yield"),
        ("ElectorLeaseFrozen", "frozen"),
    ] {
        fault(alert, &|it| {
            let series = "elector_obstructed_leases{namespace=\"web\",obstacle=\"";
            it.elector("a", &format!("{series}{obstacle}\"}}"), &always("1"));
        });
    }
    fault("ElectorSlowHandOver", &|it| {
        let slow = around(["0", "+1", "4"], 4);
        it.electors("elector_preference_duration_seconds_count", &slow);
    });
    fault("ElectorLeadersChangeOften", &|it| {
        it.electors(CHANGES, &always("+1"));
    });
    fault("ElectorWritesFail", &|it| {
        it.elector("a", UNKNOWN, &always("+15"));
    });
    fault("ElectorWatchesFail", &|it| {
        it.elector("b", WATCHES, &always("+15"));
    });
    fault("ElectorLimitHit", &|it| {
        let hit = "elector_limits_hit_total{namespace=\"web\",limit=\"candidates_of_lease\"}";
        it.elector("a", hit, &since("_", "1"));
    });
    fault("ElectorQueueSlow", &|it| {
        for le in ["10.0", "+Inf"] {
            let bucket = "workqueue_queue_duration_seconds_bucket{name=\"elections\",le=\"";
            it.elector("a", &format!("{bucket}{le}\"}}"), &always("+1"));
        }
    });
    fault("ElectorCertificateExpires", &|it| {
        let name = "elector_client_certificate_expiration_timestamp_seconds";
        // Prometheus' clock begins at zero.
        it.elector("a", name, &always("31536000"));
        it.elector("b", name, &always("620000"));
    });
    fault("ElectorPolicyDenies", &|it| {
        it.of_server(DENIED, &always("+15"));
    });
    fault("ElectorTwoLeaders", &|it| {
        it.candidate("q", LEADING, &around(["0", "1", "0"], 4));
    });
    fault("ElectorCandidateRenewalsFail", &|it| {
        it.candidate("p", NOT_RENEWED, &always("+15"));
    });
    fault("ElectorLeadershipLost", &|it| {
        it.candidate("p", LOST, &around(["0", "+1", "4"], 4));
    });
    fault("ElectorCandidateUnwell", &|it| {
        it.candidate("q", WELL, &always("0"));
    });
    scenarios
}
