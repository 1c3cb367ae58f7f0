//! What Elector's shells share: kube client, watches, the compare-and-swap writer, the clocks.
