# The elector alone: no shell, no libraries, no files to write. `cargo xtask release` makes and tests what is copied.
FROM scratch
ARG TARGETARCH
# docker build --build-arg VERSION=0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" --build-arg SOURCE=…
ARG VERSION=unknown
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="elector" \
      org.opencontainers.image.description="Coordinated leader election for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
COPY --chmod=0444 target/release-artefacts/LICENSE /licenses/LICENSE
COPY --chmod=0444 target/release-artefacts/THIRD-PARTY-NOTICES-linux-${TARGETARCH} /licenses/THIRD-PARTY-NOTICES
COPY --chmod=0555 target/release-artefacts/elector-linux-${TARGETARCH} /usr/local/bin/elector
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/elector"]
