//! The EndpointSlice that names the leader: its content, and the one write that it takes. Nothing here is asked or written.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

/// The family of addresses of a slice, which has one of its own for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressFamily {
    Ipv4,
    Ipv6,
}

/// The Service whose traffic goes to the leader.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoutedService {
    pub(super) namespace: String,
    pub(super) name: String,
    uid: String,
    is_headless: bool,
    ports: Vec<Value>,
}

/// The content that a slice is to have.
#[derive(Clone, Debug)]
pub(super) struct WantedSlice<'a> {
    pub(super) service: &'a RoutedService,
    pub(super) family: AddressFamily,
    /// Those of this Pod, of any family.
    pub(super) addresses: &'a [IpAddr],
    /// The name of the Pod, where it is known.
    pub(super) pod: Option<&'a str>,
    pub(super) holder: &'a str,
    pub(super) token: u64,
    /// True while traffic is wanted.
    pub(super) serves: bool,
}

/// The next write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SliceStep {
    /// It says so.
    Nothing,
    /// It belongs to a later term, which this one must not overwrite.
    Superseded,
    Create(Value),
    /// On the very revision that was read.
    Replace(Value),
}

/// The label and its value by which controllers know whose slices are whose.
const MANAGED_BY: (&str, &str) = (
    "endpointslice.kubernetes.io/managed-by",
    "candidate.elector.dev",
);

/// The annotation with the fencing token of the term.
const TOKEN: &str = "elector.dev/token";

/// The annotation with the identity of the leader.
const HOLDER: &str = "elector.dev/holder";

// === impl AddressFamily ===

impl AddressFamily {
    pub(super) const ALL: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    const fn address_type(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        }
    }

    const fn has(self, address: IpAddr) -> bool {
        matches!(
            (self, address),
            (Self::Ipv4, IpAddr::V4(_)) | (Self::Ipv6, IpAddr::V6(_))
        )
    }
}

// === impl RoutedService ===

impl RoutedService {
    /// The Service, as the server gave it.
    ///
    /// # Errors
    ///
    /// Where its traffic cannot be sent to the leader; the text says why.
    pub(super) fn of(service: &Value) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (metadata, spec) = (&service["metadata"], &service["spec"]);
        if spec["selector"]
            .as_object()
            .is_some_and(|it| !it.is_empty())
        {
            return Err("it has a selector, by which Kubernetes sends traffic to all of its Pods: remove that".to_owned());
        }
        if spec["type"] == "ExternalName" {
            return Err("it is of the type ExternalName, which has no endpoints".to_owned());
        }
        let ports = spec["ports"].as_array().map(Vec::as_slice);
        let ports = ports.unwrap_or_default().iter().map(slice_port);
        Ok(Self {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            is_headless: spec["clusterIP"] == "None",
            ports: ports.collect::<Result<_, _>>()?,
        })
    }

    /// The name of its slice.
    pub(super) fn slice_name(service: &str, family: AddressFamily) -> String {
        let family = family.address_type().to_ascii_lowercase();
        format!("{service}-leader-{family}")
    }
}

/// A port of a slice, which has the name of that of the Service and the number of the target.
fn slice_port(port: &Value) -> Result<Value, String> {
    let number = match &port["targetPort"] {
        Value::Null => &port["port"],
        Value::Number(_) => &port["targetPort"],
        name => {
            return Err(format!(
                "its port has the targetPort {name}, a name: give the number"
            ));
        }
    };
    let mut slice = Map::new();
    // A Service with one port may leave out its name, which is empty here.
    let name = port["name"].as_str().unwrap_or_default();
    slice.insert("name".to_owned(), name.into());
    slice.insert("port".to_owned(), number.clone());
    let protocol = port["protocol"].as_str().unwrap_or("TCP");
    slice.insert("protocol".to_owned(), protocol.into());
    if let Some(protocol) = port.get("appProtocol") {
        slice.insert("appProtocol".to_owned(), protocol.clone());
    }
    Ok(slice.into())
}

// === impl WantedSlice ===

impl WantedSlice<'_> {
    /// The step from the slice as it is, if there is one.
    ///
    /// # Errors
    ///
    /// Where the slice is not one of a candidate; the text says whose it is.
    pub(super) fn step(&self, current: Option<&Value>) -> Result<SliceStep, String> {
        let endpoints = self.endpoints();
        let Some(current) = current else {
            // Where a family is none of this Pod's, nothing was ever written that would have to be fended off.
            let is_own = self.addresses.iter().any(|it| self.family.has(*it));
            return Ok(match is_own {
                true => SliceStep::Create(self.object(&json!({}), &endpoints)),
                false => SliceStep::Nothing,
            });
        };
        let metadata = &current["metadata"];
        let managed_by = metadata["labels"][MANAGED_BY.0].as_str();
        if managed_by != Some(MANAGED_BY.1) {
            let by = managed_by.unwrap_or("nobody that it names");
            return Err(format!("it is managed by {by}"));
        }
        let annotation = |name: &str| metadata["annotations"][name].as_str();
        let token = annotation(TOKEN).and_then(|token| token.parse::<u64>().ok());
        if token.is_some_and(|token| token > self.token) {
            return Ok(SliceStep::Superseded);
        }
        let wanted = self.object(metadata, &endpoints);
        let same = ["endpoints", "ports"].iter().all(|field| {
            // The server leaves out what is empty.
            let list = |object: &Value| object[*field].as_array().cloned().unwrap_or_default();
            list(current) == list(&wanted)
        });
        let is_own = token == Some(self.token) && annotation(HOLDER) == Some(self.holder);
        Ok(match same && is_own {
            true => SliceStep::Nothing,
            false => SliceStep::Replace(wanted),
        })
    }

    fn endpoints(&self) -> Vec<Value> {
        let addresses = self.addresses.iter().filter(|it| self.family.has(**it));
        // Other addresses of an endpoint than the first are not used.
        let first = addresses.map(IpAddr::to_string).next();
        let Some(address) = first.filter(|_| self.serves) else {
            return Vec::new();
        };
        let mut endpoint = json!({
            "addresses": [address],
            "conditions": {"ready": true, "serving": true, "terminating": false},
        });
        if let Some(pod) = self.pod {
            let namespace = &self.service.namespace;
            endpoint["targetRef"] = json!({"kind": "Pod", "namespace": namespace, "name": pod});
        }
        vec![endpoint]
    }

    /// The slice with this metadata, and with what of it is ours.
    fn object(&self, metadata: &Value, endpoints: &[Value]) -> Value {
        let service = self.service;
        let mut metadata = metadata.clone();
        metadata["name"] = RoutedService::slice_name(&service.name, self.family).into();
        metadata["namespace"] = service.namespace.as_str().into();
        metadata["labels"]["kubernetes.io/service-name"] = service.name.as_str().into();
        metadata["labels"][MANAGED_BY.0] = MANAGED_BY.1.into();
        if service.is_headless {
            metadata["labels"]["service.kubernetes.io/headless"] = "".into();
        }
        metadata["annotations"][TOKEN] = self.token.to_string().into();
        metadata["annotations"][HOLDER] = self.holder.into();
        // It goes with its Service.
        metadata["ownerReferences"] = json!([
            {"apiVersion": "v1", "kind": "Service", "name": service.name, "uid": service.uid},
        ]);
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("managedFields");
        }
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata,
            "addressType": self.family.address_type(),
            "endpoints": endpoints,
            "ports": service.ports,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> RoutedService {
        let service = json!({
            "metadata": {"namespace": "shop", "name": "web", "uid": "u-1"},
            "spec": {"clusterIP": "10.0.0.1", "ports": [
                {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
                {"name": "dns", "port": 53, "protocol": "UDP", "appProtocol": "example.com/x"},
            ]},
        });
        RoutedService::of(&service).unwrap()
    }

    /// The slice as the leader of that token and number wants it.
    fn wanted(service: &RoutedService, token: u64, serves: bool) -> WantedSlice<'_> {
        const ADDRESSES: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 1, 1))];
        WantedSlice {
            service,
            family: AddressFamily::Ipv4,
            addresses: &ADDRESSES,
            pod: Some("web-0"),
            holder: "web-0-x",
            token,
            serves,
        }
    }

    fn created(step: Result<SliceStep, String>) -> Value {
        match step {
            Ok(SliceStep::Create(object)) => object,
            step => panic!("{step:?}"),
        }
    }

    fn replaced(step: Result<SliceStep, String>) -> Value {
        match step {
            Ok(SliceStep::Replace(object)) => object,
            step => panic!("{step:?}"),
        }
    }

    #[test]
    fn a_slice_is_what_kube_proxy_and_the_conventions_want() {
        let service = service();
        let made = created(wanted(&service, 7, true).step(None));
        assert_eq!(
            made,
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {
                    "namespace": "shop", "name": "web-leader-ipv4",
                    "labels": {
                        "kubernetes.io/service-name": "web",
                        "endpointslice.kubernetes.io/managed-by": "candidate.elector.dev",
                    },
                    "annotations": {"elector.dev/token": "7", "elector.dev/holder": "web-0-x"},
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "u-1"}],
                },
                "endpoints": [{
                    "addresses": ["10.1.1.1"],
                    "conditions": {"ready": true, "serving": true, "terminating": false},
                    "targetRef": {"kind": "Pod", "namespace": "shop", "name": "web-0"},
                }],
                "ports": [
                    {"name": "http", "port": 8080, "protocol": "TCP"},
                    {"name": "dns", "port": 53, "protocol": "UDP", "appProtocol": "example.com/x"},
                ],
            })
        );
        let expected = Ok(SliceStep::Nothing);
        assert_eq!(wanted(&service, 7, true).step(Some(&made)), expected);
        let other_family = WantedSlice {
            family: AddressFamily::Ipv6,
            ..wanted(&service, 7, true)
        };
        assert_eq!(other_family.step(None), Ok(SliceStep::Nothing));
    }

    /// In one write, on the revision that was read, with what others have added.
    #[test]
    fn a_successor_replaces_what_a_dead_leader_left_and_never_the_other_way_round() {
        let service = service();
        let mut left = created(wanted(&service, 7, true).step(None));
        left["metadata"]["resourceVersion"] = "70".into();
        left["metadata"]["labels"]["team"] = "a".into();
        left["metadata"]["managedFields"] = json!([]);
        left["endpoints"][0]["addresses"] = json!(["10.9.9.9"]);
        let next = replaced(wanted(&service, 8, true).step(Some(&left)));
        let metadata = &next["metadata"];
        assert_eq!(metadata["resourceVersion"], "70");
        assert_eq!(metadata["labels"]["team"], "a");
        assert!(metadata.get("managedFields").is_none());
        assert_eq!(next["endpoints"].as_array().unwrap().len(), 1);
        assert_eq!(next["endpoints"][0]["addresses"], json!(["10.1.1.1"]));
        for serves in [true, false] {
            let late = wanted(&service, 7, serves).step(Some(&next));
            assert_eq!(late, Ok(SliceStep::Superseded));
        }
    }

    /// A write of it that is still under way must meet another revision, so it leaves its token in any case.
    #[test]
    fn a_leader_that_stops_empties_the_slice_whatever_it_says() {
        let service = service();
        let own = created(wanted(&service, 7, true).step(None));
        let older = created(wanted(&service, 6, false).step(None));
        for before in [own, older] {
            let emptied = replaced(wanted(&service, 7, false).step(Some(&before)));
            assert_eq!(emptied["endpoints"], json!([]));
            assert_eq!(emptied["metadata"]["annotations"][TOKEN], "7");
            let mut stored = emptied;
            stored.as_object_mut().unwrap().remove("endpoints");
            let again = wanted(&service, 7, false).step(Some(&stored));
            assert_eq!(again, Ok(SliceStep::Nothing));
        }
        let none = created(wanted(&service, 7, false).step(None));
        assert_eq!(none["endpoints"], json!([]));
    }

    #[test]
    fn what_belongs_to_others_is_refused_with_a_reason() {
        let service = service();
        let mut other = created(wanted(&service, 7, true).step(None));
        other["metadata"]["labels"][MANAGED_BY.0] = "endpointslice-controller.k8s.io".into();
        let refusal = wanted(&service, 8, true).step(Some(&other)).unwrap_err();
        assert_eq!(refusal, "it is managed by endpointslice-controller.k8s.io");
        let refusal = |spec: Value| RoutedService::of(&json!({"spec": spec})).unwrap_err();
        assert!(refusal(json!({"selector": {"app": "web"}})).contains("remove that"));
        assert!(refusal(json!({"type": "ExternalName"})).contains("ExternalName"));
        let by_name = json!({"ports": [{"port": 80, "targetPort": "http"}]});
        let expected = "its port has the targetPort \"http\", a name: give the number";
        assert_eq!(refusal(by_name), expected);
    }
}
