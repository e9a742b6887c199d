"""Configuration of a deployment by the environment, and errors in it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon.cli.options.target import _warn_of_misspelt_variables
from mnemon_infra.config import Deployment, find_misspelt_variables

ADDRESSES = ("MNEMON_EMBEDDING_URL", "MNEMON_MODEL_URL", "MNEMON_ANTHROPIC_URL", "MNEMON_GOOGLE_URL")


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:11434",
        "localhost:11434/v1",
        "ollama",
        "http:///v1",
        "http://[::1/v1",
        "http://host:1143x/v1",
        "http://host:99999/v1",
    ],
)
def test_an_unusable_address_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, name: str, address: str
) -> None:
    monkeypatch.setenv(name, address)
    with pytest.raises(ValidationError, match="expected an address such as http://host:11434/v1"):
        Deployment()


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:80", "reranker", "http:///rerank", "http://[::1/rerank", "http://host:99999/", "file://a/b"],
)
def test_unusable_address_of_reranker_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("MNEMON_RERANKER_URL", address)
    with pytest.raises(ValidationError, match="expected an address such as http://host:8080/rerank"):
        Deployment()


@pytest.mark.parametrize(("key", "expected"), [(" one\n", "one"), (" ", None)])
def test_key_of_reranker_is_stripped(monkeypatch: pytest.MonkeyPatch, key: str, expected: str | None) -> None:
    monkeypatch.setenv("MNEMON_RERANKER_API_KEY", key)
    found = Deployment().reranker_api_key
    assert (found and found.get_secret_value()) == expected


def test_key_of_reranker_that_cannot_be_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMON_RERANKER_API_KEY", "ключ")
    with pytest.raises(ValidationError, match="expected printable ASCII characters only"):
        Deployment()


def test_command_names_the_invalid_variable_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMON_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/none")
    monkeypatch.setenv("MNEMON_MODEL_URL", "me:one-that-must-not-be-seen@host/v1")
    result = CliRunner().invoke(app, ["run", "compact"])
    assert result.exit_code == 2
    assert "MNEMON_MODEL_URL is invalid: expected an address such as http://host:11434/v1" in result.output
    assert "must-not-be-seen" not in result.output


def test_a_variable_that_is_empty_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ADDRESSES, "MNEMON_MODEL_API_KEY", "GEMINI_API_KEY", "DATABASE_URL"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    monkeypatch.setenv("GOOGLE_API_KEY", "another")
    deployment = Deployment()
    assert (deployment.model_url, deployment.google_url, deployment.database_url) == (None, None, None)
    keys = [deployment.model_api_key, deployment.google_api_key]
    assert [key and key.get_secret_value() for key in keys] == ["one", "another"]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("MNEMON_NATS_ULR", "MNEMON_NATS_URL"),
        ("Mnemon_Nats_Ulr", "MNEMON_NATS_URL"),
        ("MNEMON_NATS_CREDENTIAL", "MNEMON_NATS_CREDENTIALS"),
        ("MNEMON_MCP_TOKN", "MNEMON_MCP_TOKEN"),
        ("MNEMON_DATABASE_URL", "DATABASE_URL"),
        ("MNEMON_METRIC_PORT", "MNEMON_METRICS_PORT"),
    ],
)
def test_misspelt_variable_is_found_with_the_nearest_name(name: str, nearest: str) -> None:
    assert find_misspelt_variables({name: "9100"}) == {name: nearest}


@pytest.mark.parametrize(
    "variable",
    [
        "MNEMON_QDRANT_PORT=tcp://10.0.0.7:6333",
        "MNEMON_QDRANT_PORT_6333_TCP=tcp://10.0.0.7:6333",
        "MNEMON_QDRANT_PORT_6333_TCP_ADDR=10.0.0.7",
        "MNEMON_QDRANT_SERVICE_HOST=10.0.0.7",
        "MNEMON_METRICS_SERVICE_PORT_HTTP=9100",
        "MNEMON_SERVICE_HOST=10.0.0.7",
        "MNEMON_PORT=tcp://10.0.0.7:80",
        "MNEMON_BACKUP_FOLDER=/srv/backup",
        "mnemon_nats_url=nats://127.0.0.1",
        "NATS_ULR=nats://127.0.0.1",
    ],
)
def test_variable_of_another_program_is_not_misspelt(variable: str) -> None:
    assert find_misspelt_variables(dict([variable.split("=")])) == {}


def test_no_variable_of_clients_tests_and_documents_is_misspelt() -> None:
    listed = subprocess.run(
        ["git", "grep", "-hoE", r"\bMNEMON_[A-Z_]+\b", "--", ":!*test_config.py"],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    names = set(listed.stdout.split()) - {"MNEMON_NATS_ULR"}  # the example of the documents
    assert find_misspelt_variables(dict.fromkeys(names, "")) == {}


@pytest.mark.long
def test_command_warns_once_of_a_misspelt_variable_and_goes_on() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "mnemon", "chat"],
        env=os.environ | {"MNEMON_NATS_URL": "nats://127.0.0.1:1", "MNEMON_QDRANT_ULR": "http://qdrant:6333"},
        capture_output=True,
        text=True,
        check=False,
    )
    warning, suggestion, *rest = ended.stderr.splitlines()
    assert warning == "mnemon: the environment variable MNEMON_QDRANT_ULR is ignored: its name is not known"
    assert suggestion == "  Did you mean MNEMON_QDRANT_URL?"
    assert "no connection to NATS" in rest[0]
    assert "MNEMON_QDRANT_ULR" not in "".join(rest)


def test_demo_refuses_invalid_variables_and_warns_of_misspelt_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMON_QDRANT_ULR", "http://qdrant:6333")
    monkeypatch.setenv("MNEMON_REPLICAS", "2")
    _warn_of_misspelt_variables.cache_clear()
    ended = CliRunner().invoke(app, ["demo"])
    assert ended.exit_code == 2
    assert (
        "MNEMON_QDRANT_ULR is ignored: its name is not known\n  Did you mean MNEMON_QDRANT_URL?"
        in ended.stderr
    )
    assert "the environment variable MNEMON_REPLICAS is invalid" in ended.stderr


def test_number_of_replicas_is_odd(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Deployment().replicas == 1
    monkeypatch.setenv("MNEMON_REPLICAS", "3")
    assert Deployment().replicas == 3
    monkeypatch.setenv("MNEMON_REPLICAS", "2")
    with pytest.raises(ValidationError, match="expected 1, 3 or 5"):
        Deployment()


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, None),
        ({"PG_HOST": ""}, None),
        ({"PG_DB": "ai_db"}, "postgresql+psycopg://postgres@localhost:5432/ai_db"),
        ({"PG_PASSWORD": "secret"}, "postgresql+psycopg://postgres:secret@localhost:5432/mnemon"),
        ({"PG_USER": "bot", "PG_PORT": "6432"}, "postgresql+psycopg://bot@localhost:6432/mnemon"),
        ({"PG_HOST": "db"}, "postgresql+psycopg://postgres@db:5432/mnemon"),
        ({"PG_HOST": "/run/pg"}, "postgresql+psycopg://postgres@/mnemon?host=%2Frun%2Fpg&port=5432"),
        ({"DATABASE_URL": "postgresql://a@b/c", "PG_DB": "d"}, "postgresql+psycopg://a@b/c"),
    ],
)
def test_omitted_part_of_a_database_address_has_a_default(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], address: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for deployment in (Deployment(), Deployment.from_json(Deployment().to_json())):
        url = deployment.database_url
        assert (url.render_as_string(hide_password=False) if url else None) == address


@pytest.mark.parametrize(
    "address",
    [
        "mysql://root:hidden@db/mnemon",
        "sqlite:////var/lib/other.db",
        "postgresql://mnemon:hidden@db:port/mnemon",
        "host=db password=hidden",
    ],
)
def test_address_of_another_kind_of_database_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", address)
    expected = "expected an address such as postgresql://user:password@host:5432/name"
    with pytest.raises(ValidationError, match=re.escape(expected)):
        Deployment()


@pytest.mark.parametrize("password", ["must-not@be-seen", "must-not@x/be-seen"])
def test_unescaped_at_sign_in_a_password_is_refused_without_the_password(
    monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("MNEMON_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("DATABASE_URL", f"postgresql://mnemon:{password}@db/mnemon")
    result = CliRunner().invoke(app, ["migrate"])
    assert result.exit_code == 2
    assert "DATABASE_URL is invalid: more than one @: write @ in a password as %40" in result.output
    assert "must-not" not in result.output
    assert "be-seen" not in result.output


@pytest.mark.parametrize("command", [["migrate"], ["batches"]])
def test_password_among_the_options_of_a_database_address_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/none?user=me&password=must-not-be-seen")
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 3
    assert "no connection to the database postgresql://127.0.0.1:1/none?user=me" in result.output
    assert "must-not-be-seen" not in result.output


def test_up_refuses_a_metrics_port_without_a_next_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MNEMON_METRICS_PORT", "65535")
    result = CliRunner().invoke(app, ["up", "--data", str(tmp_path / "memory")])
    assert result.exit_code == 2
    assert "the metrics port 65535 leaves no port for the second process" in result.output


def test_every_field_is_described() -> None:
    assert [name for name, field in Deployment.model_fields.items() if not field.description] == []
