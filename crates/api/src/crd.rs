//! The custom resource definition of [`CandidateApi::Elector`](crate::CandidateApi::Elector), as data.

/// `leasecandidates.elector.dev` as JSON, ready to be applied: structural schema, rules in CEL, printer columns.
///
/// The same as `manifests/components/crd`, of which `cargo xtask codegen` makes it.
///
/// ```
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
///
/// let crd: CustomResourceDefinition = serde_json::from_str(elector_api::CANDIDATE_CRD)?;
/// assert_eq!(crd.metadata.name.as_deref(), Some("leasecandidates.elector.dev"));
/// # Ok::<_, serde_json::Error>(())
/// ```
pub const CANDIDATE_CRD: &str = include_str!("crd.json");

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

    use super::*;
    use crate::candidate::LeaseCandidate;
    use crate::candidate_api::CandidateApi;

    #[test]
    fn it_defines_what_is_spoken() {
        let crd: CustomResourceDefinition = serde_json::from_str(CANDIDATE_CRD).unwrap();
        let (spec, api) = (crd.spec, CandidateApi::Elector);
        assert_eq!(spec.group, api.group());
        assert_eq!(spec.names.plural, CandidateApi::PLURAL);
        assert_eq!(spec.names.kind, LeaseCandidate::KIND);
        assert_eq!(spec.names.short_names, Some(vec!["lcand".to_owned()]));
        assert_eq!(spec.scope, "Namespaced");
        let [version] = &spec.versions[..] else {
            panic!("{} versions", spec.versions.len());
        };
        assert_eq!(version.name, api.version());
        assert!(version.served && version.storage);
        let selectable = version.selectable_fields.iter().flatten();
        let paths: Vec<_> = selectable.map(|field| field.json_path.as_str()).collect();
        assert_eq!(paths, [".spec.leaseName"]);
        let columns = version.additional_printer_columns.iter().flatten();
        let names: Vec<_> = columns.map(|column| column.name.to_uppercase()).collect();
        assert_eq!(
            names,
            [
                "LEASE",
                "BINARY",
                "EMULATION",
                "STRATEGY",
                "ANSWERED",
                "AGE"
            ]
        );
    }
}
