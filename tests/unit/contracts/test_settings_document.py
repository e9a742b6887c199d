"""Settings documents: values that exclude each other, and the merge of documents."""

import json

import pytest

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.publication.settings_page import render_page
from mnemon_contracts.settings.document import (
    DEFAULTS,
    Document,
    build_document,
    encode_document,
    find_settings,
    flatten_document,
    merge_documents,
    parse_document,
    resolve_settings,
    set_value,
    unset_value,
)
from mnemon_contracts.settings.groups import (
    DEFAULT_KEY,
    Policy,
    SettingsV1,
    build_settings_key,
    parse_settings_tenant,
)
from mnemon_contracts.subjects import InvalidId, InvalidSubject


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"recent_messages": 0}, "recent_messages"),
        ({"recent_messages": True}, "recent_messages"),
        ({"recent_messages": "5"}, "recent_messages"),
        ({"recent_messages": 5.0}, "recent_messages"),
        ({"recent_messages": None}, "recent_messages"),
        ({"time_stamps": {"enabled": "yes"}}, "time_stamps.enabled"),
        ({"time_stamps": {"zone": "Moon"}}, "time_stamps.zone"),
        ({"time_stamps": {"template": "{time}"}}, "time_stamps.template"),
        ({"time_stamps": {"template": "{text} {user}"}}, "time_stamps.template"),
        ({"time_stamps": {"template": "{text:>999999999}"}}, "time_stamps.template"),
        ({"retrieval": {"threshold": 1.1}}, "retrieval.threshold"),
        ({"retrieval": {"threshold": float("nan")}}, "retrieval.threshold"),
        ({"extraction": {"provider": "oracle"}}, "extraction.provider"),
        ({"context": {"sections": {"facts": -1}}}, "context.sections.facts"),
        ({"policy": 5}, "policy"),
        # Each value is valid by itself, but not with the other one or with its default.
        ({"policy": {"min_length": 241}}, "policy.max_length"),
        ({"policy": {"max_length": 11}}, "policy.max_length"),
        ({"dedupe": {"update_threshold": 0.9, "duplicate_threshold": 0.8}}, "dedupe.duplicate_threshold"),
        ({"limits": {"per_user": 49}}, "limits.profile"),
        ({"limits": {"per_user": 49, "profile": 9}}, "limits.working"),
        ({"limits": {"profile": 501}}, "limits.profile"),
        ({"compaction": {"messages": 17}}, "compaction.messages"),
    ],
)
def test_invalid_setting_is_refused_by_name(document: Document, field: str) -> None:
    with pytest.raises(InvalidBody) as refused:
        resolve_settings(document)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "document",
    [
        {"policy": {"min_length": 240}},
        {"dedupe": {"update_threshold": 0.9}},
        {"dedupe": {"update_threshold": 0.9, "duplicate_threshold": 0.9}},
        {"limits": {"per_user": 5, "profile": 5, "working": 5}},
        {"retrieval": {"decay_days": 30}},
        {"compaction": {"messages": 16}},
    ],
)
def test_boundary_values_are_accepted(document: Document) -> None:
    shown = flatten_document(resolve_settings(document).model_dump(mode="json"))
    assert shown == {**DEFAULTS, **flatten_document(document)}


def test_settings_of_an_older_version_are_read() -> None:
    older = (
        b'{"recent_messages":7,"time_stamps":{"enabled":false,"zone":"UTC"},"wait_for_log_ms":100,"gone":1}'
    )
    settings = SettingsV1.parse(older)
    assert (settings.recent_messages, settings.time_stamps.enabled) == (7, False)
    assert settings.limits == SettingsV1().limits
    assert resolve_settings(parse_document(older)) == settings


def test_documents_lie_one_over_another() -> None:
    default = {"recent_messages": 20, "limits": {"profile": 40}, "retrieval": {"threshold": 0.5}}
    own = {"limits": {"per_user": 60}, "retrieval": {"threshold": None}}
    settings = resolve_settings(default, own)
    assert settings.recent_messages == 20
    assert (settings.limits.per_user, settings.limits.profile, settings.limits.working) == (60, 40, 50)
    assert settings.retrieval.threshold is None
    assert default == {"recent_messages": 20, "limits": {"profile": 40}, "retrieval": {"threshold": 0.5}}


def test_combined_documents_are_validated() -> None:
    assert resolve_settings({"limits": {"profile": 100}}).limits.profile == 100
    with pytest.raises(InvalidBody, match=r"limits\.profile: 100 is more than per_user, which is 60"):
        resolve_settings({"limits": {"profile": 100}}, {"limits": {"per_user": 60}})


def test_a_tenant_has_no_vectors_of_its_own() -> None:
    assert resolve_settings({"embedding": {"provider": "none"}}).embedding.provider == "none"
    with pytest.raises(InvalidBody, match="embedding: is the same for every tenant"):
        resolve_settings({}, {"embedding": {"provider": "none"}})


def test_merge_replaces_a_group_with_a_value_and_a_value_with_a_group() -> None:
    assert merge_documents({"a": {"b": 1}}, {"a": 2}) == {"a": 2}
    assert merge_documents({"a": 2}, {"a": {"b": 1}}) == {"a": {"b": 1}}


def test_document_sets_and_unsets_values() -> None:
    document = set_value(set_value({}, "context.sections.facts", 9), "recent_messages", 3)
    assert document == {"context": {"sections": {"facts": 9}}, "recent_messages": 3}
    assert unset_value(document, "context.sections.facts") == {"recent_messages": 3}
    assert unset_value(document, "context") == {"recent_messages": 3}
    assert unset_value(document, "limits.per_user") == document
    two = set_value(document, "context.budget", 5)
    assert unset_value(two, "context.sections.facts") == {"context": {"budget": 5}, "recent_messages": 3}


def test_setting_of_newer_version_stays() -> None:
    document = parse_document(b'{"colour": "red", "limits": {"per_moon": 5}}')
    changed = set_value(document, "limits.per_user", 100)
    assert changed == {"colour": "red", "limits": {"per_moon": 5, "per_user": 100}}
    assert resolve_settings(changed).limits.per_user == 100


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("recent_mesages", "recent_messages"),
        ("limit.per_user", "limits.per_user"),
        ("per_user", "limits.per_user"),
        ("zone", "time_stamps.zone"),
    ],
)
def test_unknown_name_is_refused_with_similar_names(name: str, near: str) -> None:
    for act in (lambda: set_value({}, name, 1), lambda: unset_value({}, name), lambda: find_settings(name)):
        with pytest.raises(InvalidBody, match=rf"^{name}: is not a setting; did you mean .*{near}"):
            act()


def test_a_group_is_no_setting() -> None:
    assert find_settings("time_stamps") == [name for name in DEFAULTS if name.startswith("time_stamps.")]
    with pytest.raises(
        InvalidBody, match=r"^policy: is a group of settings; set one of policy\.min_length, "
    ):
        set_value({}, "policy", {"min_length": 3})
    with pytest.raises(InvalidBody, match=r"^polic: "):
        find_settings("polic")


def test_a_second_price_of_a_model_is_refused_and_a_stored_one_stays_valid() -> None:
    prices = [
        {"model": "m", "input": 1, "output": 2},
        {"model": "m-mini", "input": 1, "output": 2},
        {"model": "m", "input": 0, "output": 0},
    ]
    with pytest.raises(InvalidBody, match=r"^spending\.prices\.2\.model: "):
        set_value({}, "spending.prices", prices)
    assert set_value({}, "spending.prices", prices[:2]) == {"spending": {"prices": prices[:2]}}
    stored = {"spending": {"prices": prices}}
    assert len(resolve_settings(set_value(stored, "recent_messages", 3)).spending.prices) == 3


@pytest.mark.parametrize("prices", ["cheap", None, [1, 1], [{"input": 1}, {"input": 1}], [{"model": []}] * 2])
def test_an_invalid_list_of_prices_is_refused_by_its_contract(prices: object) -> None:
    with pytest.raises(InvalidBody, match=r"^spending\.prices"):
        resolve_settings(set_value({}, "spending.prices", prices))


def test_only_what_differs_is_stored() -> None:
    settings = SettingsV1(recent_messages=3, policy=Policy(min_length=4))
    assert build_document(settings) == {"recent_messages": 3, "policy": {"min_length": 4}}
    assert resolve_settings(parse_document(encode_document(build_document(settings)))) == settings
    assert encode_document(parse_document(None)) == b"{}"


@pytest.mark.parametrize(
    "body", [b"[]", b"5", b"null", b"{", b"\xff", b'{"a": "\\ud800"}', b"[" * 9999, b'{"a": NaN}']
)
def test_malformed_document_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidBody):
        parse_document(body)


@pytest.mark.parametrize("tenant", ["acme", "a.b", "-", "акме 1", "100%", "default", "tenant.x"])
def test_every_tenant_has_a_key_of_its_own(tenant: str) -> None:
    key = build_settings_key(tenant)
    assert key.count(".") == 1
    assert parse_settings_tenant(key) == tenant


def test_keys_without_tenant_are_refused() -> None:
    assert build_settings_key(None) == DEFAULT_KEY
    assert parse_settings_tenant(DEFAULT_KEY) is None
    with pytest.raises(InvalidId):
        build_settings_key("")
    with pytest.raises(InvalidSubject):
        parse_settings_tenant("tenant.a.b")


def test_the_page_has_every_setting_once() -> None:
    settings, _ = render_page().split("\n## Presets\n")
    rows = [line.split(" | ")[0] for line in settings.splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(f"| `{name}`" for name in DEFAULTS)
    assert f"| `policy.max_length` | `{json.dumps(240)}` | integer, 1 to 10,000 | " in render_page()
