"""Addresses of servers, and sizes of pools and batches: from the environment, fixed while a process runs."""

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from mnemon_contracts.login import AUTHORITY, CERTIFICATE, CERTIFICATE_KEY, CREDENTIALS, NKEY_SEED

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_PREFIX: Final = "MNEMON_"

_OTHER_VARIABLES: Final = (
    *(CREDENTIALS, NKEY_SEED, AUTHORITY, CERTIFICATE, CERTIFICATE_KEY),
    *("MNEMON_MCP_TOKEN", "MNEMON_MODEL"),
)
"""Variables that mnemon reads in addition to those of `Deployment`."""

_SIMILARITY: Final = 0.8
"""Least similarity of a misspelt name to a known one, without the prefix, as difflib computes it."""

_SERVICE_LINK: Final = re.compile(r"\w+_(SERVICE_(HOST|PORT)\w*|PORT_\d+_\w+)=.*|\w+_PORT=\w+://.*")
"""Variables, as `NAME=value`, that Kubernetes and Docker set for a service such as `mnemon-qdrant`."""


class Deployment(BaseSettings):
    """One deployment: its servers and the sizes of pools and batches.

    Run-time settings that may change under a running process are in `mnemon_contracts.settings.groups`.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        env_prefix=_PREFIX,
        env_ignore_empty=True,  # an env file may name variables without a value
    )

    nats_url: str | None = Field(
        default=None,
        description="Addresses of the NATS servers, comma-separated, such as nats://name:password@host:4222. "
        "Default: the embedded server of `mnemon up`.",
    )
    log_key: SecretStr | None = Field(
        default=None,
        description="Key with which the embedded NATS server encrypts its streams, such as the output of "
        "`openssl rand -base64 32`. After the first start in a data folder, the key cannot be added, "
        "changed or removed; without it, the log cannot be read. Default: none, the streams are not "
        "encrypted.",
    )
    replicas: int = Field(
        default=1, description="Number of NATS servers that keep a copy of each stream: 1, 3 or 5."
    )
    qdrant_url: str | None = Field(
        default=None,
        description="Address of the Qdrant server, such as http://host:6333. "
        "Default: the embedded vector store of `mnemon up`.",
    )
    qdrant_grpc_port: int = Field(
        default=6334, ge=1, le=65_535, description="Port of the Qdrant server for gRPC."
    )
    qdrant_api_key: SecretStr | None = Field(
        default=None, description="API key of the Qdrant server. Default: none; no key is sent."
    )
    qdrant_ca: Path | None = Field(
        default=None,
        description="File with the certificate of the authority that signed the Qdrant server's certificate. "
        "Default: the certificate authorities of gRPC.",
    )
    vectors_folder: Path | None = Field(
        default=None,
        description="Folder of the embedded vector store, which is used without a Qdrant server. Default: "
        "the folder `vectors` in the data folder of `mnemon up`.",
    )
    embedding_url: str | None = Field(
        default=None,
        description="Address of an OpenAI-compatible embedding endpoint, such as http://host:11434/v1. "
        "Default: OpenAI itself.",
    )
    embedding_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("MNEMON_EMBEDDING_API_KEY", "OPENAI_API_KEY", "embedding_api_key"),
        description="API key of the embedding endpoint. Required for the embedding provider `openai`, unless "
        "MNEMON_EMBEDDING_URL names an endpoint that needs no key.",
    )
    reranker_url: str | None = Field(
        default=None,
        description="Address to which requests to a reranker are posted, such as http://host:8080/rerank. "
        "Default: none, no reranker is asked.",
    )
    reranker_api_key: SecretStr | None = Field(
        default=None, description="API key of the reranker. Default: none, no key is sent."
    )

    model_url: str | None = Field(
        default=None,
        description="Address of an OpenAI-compatible endpoint for language models, such as "
        "http://host:11434/v1. Default: OpenAI itself.",
    )
    model_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("MNEMON_MODEL_API_KEY", "OPENAI_API_KEY", "model_api_key"),
        description="API key of the provider `openai`. Required for this provider, unless MNEMON_MODEL_URL "
        "names an endpoint that needs no key.",
    )
    anthropic_url: str | None = Field(
        default=None,
        description="Address of an endpoint that serves Anthropic's API, such as https://llm.example.com. "
        "Default: Anthropic itself.",
    )
    anthropic_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("ANTHROPIC_API_KEY", "anthropic_api_key"),
        description="API key of the provider `anthropic`. Required for this provider, unless "
        "MNEMON_ANTHROPIC_URL names an endpoint that needs no key.",
    )
    google_url: str | None = Field(
        default=None,
        description="Address of an endpoint that serves Google's Gemini API, such as "
        "https://llm.example.com. Default: Google itself.",
    )
    google_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("GEMINI_API_KEY", "GOOGLE_API_KEY", "google_api_key"),
        description="API key of the provider `google`. Required for this provider, unless MNEMON_GOOGLE_URL "
        "names an endpoint that needs no key.",
    )
    model_timeout: float = Field(
        default=60,
        gt=0,
        le=3600,
        description="Maximum wait for the answer of a language model, in seconds per attempt; a call has "
        "up to three attempts.",
    )
    model_requests: int = Field(
        default=8,
        ge=1,
        le=1000,
        description="Maximum number of concurrent calls of language models per process.",
    )

    proxy_memory_seconds: float = Field(
        default=0.3,
        gt=0,
        le=60,
        description="Maximum time that the gateway's proxy waits for the context of a request, in seconds; "
        "after it, the request is forwarded without memory. The check of the API key has the same limit: "
        "a key that is not checked in time is refused with 503, unless the key was accepted in the last five "
        "minutes, or the request has a key of the provider.",
    )

    database_dsn: str | None = Field(
        default=None,
        validation_alias=AliasChoices("DATABASE_URL", "database_dsn"),
        description="Address of the PostgreSQL database, such as postgresql://user:password@host:5432/name; "
        "it takes precedence over the `PG_*` variables. Default: the address that the `PG_*` variables give; "
        "if none of them is set, the embedded server of `mnemon up`.",
    )
    pg_host: str | None = Field(
        default=None,
        validation_alias=AliasChoices("PG_HOST", "pg_host"),
        description="Host of PostgreSQL, or the folder of its socket. Default: localhost if another `PG_*` "
        "variable is set.",
    )
    pg_port: int | None = Field(
        default=None,
        validation_alias=AliasChoices("PG_PORT", "pg_port"),
        description="Port of PostgreSQL. Default: 5432 if another `PG_*` variable is set.",
    )
    pg_db: str | None = Field(
        default=None,
        validation_alias=AliasChoices("PG_DB", "pg_db"),
        description="Name of the PostgreSQL database. Default: mnemon if another `PG_*` variable is set.",
    )
    pg_user: str | None = Field(
        default=None,
        validation_alias=AliasChoices("PG_USER", "pg_user"),
        description="User of PostgreSQL. Default: postgres if another `PG_*` variable is set.",
    )
    pg_password: str | None = Field(
        default=None,
        validation_alias=AliasChoices("PG_PASSWORD", "pg_password"),
        description="Password of the PostgreSQL user. Default: none.",
    )

    database_schema: str = Field(
        default="mnemon",
        pattern=r"^[a-z_][a-z0-9_]{0,62}$",
        description="Schema of all tables, and first part of the names of collections on a Qdrant server, "
        "such as mnemon_eu.",
    )
    pg_pool_min: int = Field(
        default=1,
        ge=0,
        description="Number of connections that each database pool keeps open. A process with consumers has "
        "one pool, and one more each for `compact` and `extract`. The pools of snapshots and of the admin "
        "page keep no connections open.",
    )
    pg_pool_max: int = Field(
        default=10,
        ge=1,
        description="Maximum number of connections of a database pool; a value below 2, or below "
        "`MNEMON_PG_POOL_MIN`, is raised to that number. The pools of `compact`, of snapshots and of the "
        "admin page have limits of their own.",
    )

    persist_batch: int = Field(
        default=2000, ge=1, le=5000, description="Maximum number of events per transaction of `persist`."
    )
    persist_linger_ms: int = Field(
        default=20,
        ge=1,
        le=5000,
        description="Maximum time for which a batch of `persist` waits for more events, in milliseconds.",
    )
    persist_writers: int = Field(
        default=4, ge=1, le=16, description="Number of concurrent batches of a `persist` process."
    )
    index_batch: int = Field(
        default=500, ge=1, le=5000, description="Maximum number of events per batch of `index`."
    )
    index_linger_ms: int = Field(
        default=20,
        ge=1,
        le=5000,
        description="Maximum time for which a batch of `index` waits for more events, in milliseconds.",
    )
    index_writers: int = Field(
        default=2, ge=1, le=16, description="Number of concurrent batches of an `index` process."
    )
    dedupe_users: int = Field(
        default=2,
        ge=1,
        le=64,
        description="Maximum number of users whose facts a `dedupe` process decides on at the same time.",
    )
    maintain_seconds: float = Field(
        default=60,
        ge=1,
        le=86_400,
        description="Interval between removals of expired facts, in seconds; the value of the process that "
        "starts last applies to all.",
    )
    extract_seconds: float = Field(
        default=5,
        ge=1,
        le=3600,
        description="Interval of the periodic work of `extract`, in seconds: scans, checks of batches, and "
        "retries of windows; the value of the process that starts last applies to all.",
    )
    extract_resume_seconds: float = Field(
        default=60,
        ge=0,
        le=86_400,
        description="Time before a batch is submitted again, in seconds. It applies to a batch that the "
        "provider does not have, because its submission was interrupted or got no answer. Within this time, "
        "the first request may still reach the provider.",
    )
    dead_limit: int = Field(
        default=1000,
        ge=1,
        description="Maximum number of dead letters of one consumer in a process within a minute; above "
        "it, the consumer pauses in every process for five minutes.",
    )
    erasure_register: str | None = Field(
        default=None,
        description="Folder, or bucket such as s3://bucket/prefix, that gets an entry for each erasure. "
        "Default: none, so a restore cannot repeat erasures that came after its backup.",
    )
    admin_token: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="Token for the login to the admin page, at least 16 characters. Default: the token "
        "that is stored in the data folder; without a folder, a new token on each run, which "
        "`mnemon admin` prints.",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        description="Port of `/metrics`, `/healthz` and `/readyz`, such as 9100. "
        "Default: none, the paths are not served.",
    )
    metrics_host: str = Field(
        default="127.0.0.1",
        description="Address at which a process serves `/metrics`, `/healthz` and `/readyz`, such as "
        "0.0.0.0. Default: 127.0.0.1, for clients on this machine only.",
    )
    cached_users: int = Field(
        default=10_000,
        ge=1,
        description="Maximum number of users whose memory a `retrieve` process caches.",
    )

    @classmethod
    def list_variables(cls) -> list[str]:
        """Return the names of the variables that are read."""
        return [
            str(name)
            for field, description in cls.model_fields.items()
            for name in getattr(description.validation_alias, "choices", [f"{_PREFIX}{field.upper()}"])
            if name.isupper()
        ]

    def to_json(self) -> str:
        """Return all values as JSON, secrets included, for another mnemon process only."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return json.dumps(values, default=_reveal_secret)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse the JSON of `to_json`. The JSON has all values, so the environment has no effect."""
        return cls(**json.loads(text))

    @field_validator("embedding_url", "model_url", "anthropic_url", "google_url")
    @classmethod
    def _check_endpoint(cls, url: str | None) -> str | None:
        if url is None or _is_http_address(url):
            return url
        raise ValueError("expected an address such as http://host:11434/v1")

    @field_validator("reranker_url")
    @classmethod
    def _check_reranker_url(cls, url: str | None) -> str | None:
        if url is None or _is_http_address(url):
            return url
        raise ValueError("expected an address such as http://host:8080/rerank")

    @field_validator("reranker_api_key")
    @classmethod
    def _check_reranker_key(cls, key: SecretStr | None) -> SecretStr | None:
        stripped = "" if key is None else key.get_secret_value().strip()
        if stripped.isascii() and stripped.isprintable():
            return SecretStr(stripped) if stripped else None
        raise ValueError(
            "expected printable ASCII characters only: set the key again, without line breaks or "
            "typographic quotation marks"
        )

    @field_validator("replicas")
    @classmethod
    def _check_replicas(cls, replicas: int) -> int:
        if replicas in (1, 3, 5):
            return replicas
        raise ValueError("expected 1, 3 or 5")

    @field_validator("log_key")
    @classmethod
    def _check_log_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is None or key.get_secret_value().isprintable():
            return key
        raise ValueError(
            "expected printable characters only, such as the output of `openssl rand -base64 32`"
        )

    @field_validator("database_dsn")
    @classmethod
    def _check_database_dsn(cls, dsn: str | None) -> str | None:
        if dsn is None:
            return None
        # Import SQLAlchemy here: the import takes a second, and commands that use NATS only do not need it.
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        expected = "expected an address such as postgresql://user:password@host:5432/name"
        try:
            url = make_url(dsn)
        except (ArgumentError, ValueError) as error:  # ValueError: the port is not a number
            raise ValueError(expected) from error
        if not url.drivername.startswith("postgres"):
            raise ValueError(expected)
        if dsn.partition("?")[0].count("@") > 1:
            # Errors of the driver would repeat the host, and with it a part of the password.
            raise ValueError("more than one @: write @ in a password as %40")
        return url.render_as_string(hide_password=False)

    @cached_property
    def database_url(self) -> "URL | None":
        """Address of the database for SQLAlchemy; None if `DATABASE_URL` and all `PG_*` are unset."""
        from sqlalchemy.engine import URL, make_url

        if self.database_dsn:
            return make_url(self.database_dsn).set(drivername="postgresql+psycopg")
        given = self.pg_host, self.pg_port, self.pg_db, self.pg_user, self.pg_password
        if all(each is None for each in given):
            return None
        host, port = self.pg_host or "localhost", self.pg_port or 5432
        login = "postgresql+psycopg", self.pg_user or "postgres", self.pg_password
        database = self.pg_db or "mnemon"
        if host.startswith("/"):  # the folder of a socket
            return URL.create(*login, database=database, query={"host": host, "port": str(port)})
        return URL.create(*login, host, port, database)


def find_misspelt_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the misspelt variables of mnemon in an environment, each with the most similar known name.

    Variables that resemble no known name are left out: they may belong to another program.
    """
    known = {name.removeprefix(_PREFIX): name for name in (*Deployment.list_variables(), *_OTHER_VARIABLES)}
    misspelt: dict[str, str] = {}
    for name, value in environment.items():
        suffix = name.upper().removeprefix(_PREFIX)  # pydantic ignores case
        if not name.upper().startswith(_PREFIX) or known.get(suffix) == name.upper():
            continue
        nearest = get_close_matches(suffix, known, 1, _SIMILARITY)
        if nearest and not _SERVICE_LINK.fullmatch(f"{name}={value}"):
            misspelt[name] = known[nearest[0]]
    return misspelt


def _is_http_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _reveal_secret(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
