# In this image there is no sandbox, so people below full trust have no shell: docs/sandbox.md.
#
# The gateway in an image that holds the program, the list of certificate
# authorities, and nothing else: no shell, no package manager.
#
#   docker build --build-arg VERSION=1.0.0 -t gatehouse .
#
# See docs/deployment.md and configs/compose.yaml.

# Pinned by digest, of all platforms together: a tag can be moved. For another
# version: docker buildx imagetools inspect golang:VERSION-bookworm
FROM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN make "dist/gatehouse-linux-$(go env GOARCH)" VERSION="$VERSION" \
 && mkdir -p /out/vault /out/vault-backups /out/vault-keys /out/tmp /out/certs \
 && mv "dist/gatehouse-linux-$(go env GOARCH)" /out/gatehouse \
 && cp /etc/ssl/certs/ca-certificates.crt /out/certs/ \
 && chmod 0700 /out/vault /out/vault-backups /out/vault-keys && chmod 1777 /out/tmp

FROM scratch
COPY --from=build /out/gatehouse /gatehouse
COPY --from=build /out/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /out/vault /vault
COPY --from=build --chown=65532:65532 /out/vault-backups /vault-backups
COPY --from=build --chown=65532:65532 /out/vault-keys /vault-keys
COPY --from=build /out/tmp /tmp

# Beyond loopback, as in a container, the gateway wants an admin password:
# GATEHOUSE_ADMIN_PASSWORD_FILE.
ENV GATEHOUSE_VAULT_PATH=/vault GATEHOUSE_ADDR=0.0.0.0:3333 GATEHOUSE_LOG_FORMAT=json HOME=/vault TMPDIR=/tmp
USER 65532:65532
VOLUME /vault /vault-backups /vault-keys
EXPOSE 3333
# Answers that are being made get DRAIN_TIMEOUT (30 s) before the program ends:
# give "docker stop" a little more (--time 40).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 CMD ["/gatehouse", "doctor", "--live"]
ENTRYPOINT ["/gatehouse"]
CMD ["serve"]
