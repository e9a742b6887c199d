# syntax=docker/dockerfile:1
# One image for every part: `docker run mnemon run persist`. What it runs as needs no right and no folder.
FROM python:3.11-slim AS build
ENV PIP_CACHE_DIR=/var/cache/pip PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/var/cache/pip \
    python -m venv /opt/mnemon \
    && /opt/mnemon/bin/pip install ".[server,anthropic,google,nkeys,mcp,otel,backup]" \
    && /opt/mnemon/bin/pip uninstall --yes pip

FROM python:3.11-slim
LABEL org.opencontainers.image.title="mnemon" \
      org.opencontainers.image.description="Replayable long-term memory for chat bots, on NATS JetStream." \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin mnemon
COPY --from=build /opt/mnemon /opt/mnemon
ENV PATH=/opt/mnemon/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# By number, so that Kubernetes sees that it is not root.
USER 10001
ENTRYPOINT ["mnemon"]
CMD ["--help"]
