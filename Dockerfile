# Berth in a container.
#
#   docker build -t berth .                    agents with a shell and git
#   docker build -t berth --target bare .      the program alone: no commands, file tools only
#
#   docker run --init -p 127.0.0.1:8080:8080 -v berth-data:/data -v "$PWD":/work berth
#   docker exec CONTAINER berth token create --name me --root /work
#
# docs/deploy/compose.yaml does the same with less typing.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/ ./cmd/berth ./cmd/berth-acp-bridge
# What the image without a system needs besides the program.
RUN mkdir -p /root-of-bare/etc/ssl/certs /root-of-bare/data /root-of-bare/config /root-of-bare/work /root-of-bare/tmp \
 && cp /etc/ssl/certs/ca-certificates.crt /root-of-bare/etc/ssl/certs/ \
 && echo 'berth:x:10001:10001:Berth:/data:/sbin/nologin' > /root-of-bare/etc/passwd \
 && echo 'berth:x:10001:' > /root-of-bare/etc/group \
 && chmod 1777 /root-of-bare/tmp

FROM scratch AS bare
COPY --from=build --chown=10001:10001 /root-of-bare/ /
COPY --from=build /out/ /usr/local/bin/
ENV PATH=/usr/local/bin HOME=/data BERTH_CONFIG_DIR=/config BERTH_DATA_DIR=/data \
    BERTH_GATEWAY__LISTEN=0.0.0.0:8080 BERTH_GATEWAY__INSECURE=true BERTH_LOG__FORMAT=json
USER 10001:10001
WORKDIR /work
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=6s --start-period=10s CMD ["/usr/local/bin/berth", "daemon", "--check"]
ENTRYPOINT ["/usr/local/bin/berth"]
CMD ["daemon"]

FROM debian:stable-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bash ca-certificates git openssh-client patch \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 berth && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin berth \
 && install -d -o 10001 -g 10001 -m 0700 /data && install -d -o 10001 -g 10001 /config /work
COPY --from=build /out/ /usr/local/bin/
# The port is published to loopback by those who run the container; whoever
# publishes it further sets gateway.tls_cert and gateway.tls_key.
ENV HOME=/data BERTH_CONFIG_DIR=/config BERTH_DATA_DIR=/data \
    BERTH_GATEWAY__LISTEN=0.0.0.0:8080 BERTH_GATEWAY__INSECURE=true BERTH_LOG__FORMAT=json
USER 10001:10001
WORKDIR /work
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=6s --start-period=10s CMD ["/usr/local/bin/berth", "daemon", "--check"]
ENTRYPOINT ["/usr/local/bin/berth"]
CMD ["daemon"]
