FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/mnemon && /opt/mnemon/bin/pip install --no-cache-dir ".[server,anthropic,google]"

FROM python:3.11-slim
COPY --from=build /opt/mnemon /opt/mnemon
ENV PATH=/opt/mnemon/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --system --no-create-home mnemon
USER mnemon
ENTRYPOINT ["mnemon"]
CMD ["--help"]
