# The elector alone: no shell, no libraries, no files to write. `cargo xtask release` makes and tests what is copied.
FROM scratch
ARG TARGETARCH
COPY --chmod=0555 target/release-artefacts/elector-linux-${TARGETARCH} /usr/local/bin/elector
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/elector"]
