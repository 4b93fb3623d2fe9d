# The image of hutch's container backend: interpreters, git, certificates. `hutch image build FILE` builds another one.
FROM debian:stable-slim
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        bash ca-certificates git nodejs procps python3 && \
    rm -rf /var/lib/apt/lists/*
