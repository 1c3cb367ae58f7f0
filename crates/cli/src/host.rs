//! What a process calls itself.

use std::env;

/// The name of its Pod, which the environment variable `POD_NAME` tells, or of its host.
pub(crate) fn pod_or_host_name() -> String {
    let pod = env::var("POD_NAME").ok().filter(|name| !name.is_empty());
    pod.unwrap_or_else(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    })
}
