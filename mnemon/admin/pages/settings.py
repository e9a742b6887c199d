"""Settings: their values, descriptions and history."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from nats.aio.client import Client
from starlette.responses import Response

from mnemon.admin.forms.settings import EMPTY_PRICE_LINES, SettingControl, list_errors
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.rendering.outages import PageError
from mnemon.operations.embedding_change import apply_change
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import SHARED_GROUPS, Document, set_value, unset_value
from mnemon_contracts.settings.fields import Group, list_groups
from mnemon_infra.settings.effective import EffectiveSettings, Source, read_effective_settings
from mnemon_infra.settings.history import NoSuchRevision, read_history, roll_back_settings
from mnemon_infra.settings.store import LiveSettings, SettingsContended, change_settings

pages = PageSection("Settings", "/settings")

_CONTROLS = [
    (group, [SettingControl.from_setting(field) for field in group.fields]) for group in list_groups()
]
_UNNAMED_GROUP = "general"
"""Id of the group that has no name."""


@dataclass(frozen=True)
class SettingRow:
    """A setting as the page shows it.

    Attributes:
        was: the value that the page showed, to detect a change.
        source: the level that sets the value.
        below: the value in force if the setting is unset.
        lines: the lines of a list of prices.
        error: the reason why the submitted value is refused.
    """

    control: SettingControl
    text: str
    was: str
    source: Source
    below: str
    lines: Sequence[Mapping[str, Any]] = ()
    error: str | None = None


@dataclass(frozen=True)
class SettingsCard:
    """A group of settings as the page shows it. `changed` counts the settings set at the shown level."""

    id: str
    name: str
    description: str
    rows: Sequence[SettingRow]
    changed: int
    problem: str | None = None


@pages.get("/settings")
async def show_settings(visit: Visit) -> Response:
    """Show all settings, as they apply to all tenants or to one tenant."""
    tenant = visit.query.get("tenant") or None
    connection = await visit.connections.get_broker()
    return await _render_settings(visit, connection, tenant)


@pages.post("/settings/save")
async def save_settings(visit: Visit) -> Response:
    """Save only the settings that were changed in the form of a group."""
    tenant = visit.form.get("tenant") or None
    controls = {group.name or _UNNAMED_GROUP: each for group, each in _CONTROLS}.get(visit.form["group"])
    if controls is None:
        raise InvalidBody("group", f"{visit.form['group']!r} is not a group of settings; reload the page")
    changed = {each.name: each.read_value(visit.form) for each in controls if _is_changed(each, visit.form)}

    def edit(document: Document) -> Document:
        for name, value in changed.items():
            document = set_value(document, name, value)
        return document

    connection = await visit.connections.get_broker()
    try:
        revision, steps = await apply_change(connection, partial(change_settings, connection, edit, tenant))
    except InvalidBody as error:
        return await _render_settings(visit, connection, tenant, list_errors(error))
    except SettingsContended as error:
        return await _render_settings(visit, connection, tenant, {"": str(error)})
    names = ", ".join(f"{name} = {_format_setting(value)}" for name, value in changed.items())
    return visit.redirect(
        _build_group_path(tenant, visit.form["group"]),
        _describe_change(revision, f": {names}", steps),
    )


@pages.post("/settings/unset")
async def unset_setting(visit: Visit) -> Response:
    """Unset a setting of one tenant or of all tenants, so that the value of the level below is in force."""
    tenant, name = visit.form.get("tenant") or None, visit.form["name"]
    path = _build_group_path(tenant, name.partition(".")[0] if "." in name else _UNNAMED_GROUP)
    connection = await visit.connections.get_broker()
    unset = partial(change_settings, connection, partial(unset_value, name=name), tenant)
    revision, steps = await apply_change(connection, unset)
    return visit.redirect(path, _describe_change(revision, f": {name} is no longer set", steps))


@pages.get("/settings/history")
async def show_history(visit: Visit) -> Response:
    """Show the revisions of the settings that are kept, newest first."""
    tenant = visit.query.get("tenant") or None
    connection = await visit.connections.get_broker()
    found = await read_history(connection, tenant)
    return visit.render(
        "settings/history.html",
        tenant=tenant,
        tenants=await _list_tenants(connection),
        revisions=found[::-1],
        words=_format_setting,
    )


@pages.post("/settings/rollback")
async def roll_back(visit: Visit) -> Response:
    """Restore the settings of a revision."""
    tenant, revision = visit.form.get("tenant") or None, visit.form.get_number("revision")
    if revision is None:
        raise InvalidBody("revision", "is missing; reload the page")
    connection = await visit.connections.get_broker()
    try:
        made, steps = await apply_change(
            connection, partial(roll_back_settings, connection, revision, tenant)
        )
    except NoSuchRevision:
        return visit.render_error(
            PageError(
                409,
                "The revision does not exist",
                f"Revision {revision} is not stored, or is a deletion.",
                "Choose a revision that the history lists.",
            )
        )
    return visit.redirect(
        f"/settings/history{_build_tenant_query(tenant)}",
        _describe_change(made, f", as it was at {revision}", steps),
    )


def _describe_change(revision: int | None, change: str, steps: str | None) -> str:
    said = "Nothing was changed." if revision is None else f"In force as revision {revision}{change}."
    return f"{said} {steps}" if steps else said


async def _render_settings(
    visit: Visit, connection: Client, tenant: str | None, refused: Mapping[str, str] | None = None
) -> Response:
    found = await read_effective_settings(connection, tenant)
    cards = [
        _build_card(group, controls, found, tenant, visit.form, refused)
        for group, controls in _CONTROLS
        if tenant is None or group.name not in SHARED_GROUPS
    ]
    return visit.render(
        "settings/page.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK,
        tenant=tenant,
        tenants=await _list_tenants(connection),
        cards=cards,
        problem=found.problem,
    )


async def _list_tenants(connection: Client) -> list[str]:
    """Return the tenants that have valid settings of their own, sorted."""
    live = LiveSettings()
    async with live.watch_bucket(connection):
        return sorted(live.list_tenants())


def _build_card(
    group: Group,
    controls: Sequence[SettingControl],
    in_force: EffectiveSettings,
    tenant: str | None,
    form: Mapping[str, str],
    refused: Mapping[str, str] | None,
) -> SettingsCard:
    id_ = group.name or _UNNAMED_GROUP
    is_sent = refused is not None and form.get("group") == id_
    rows = [_build_row(each, in_force, form if is_sent else {}, refused or {}) for each in controls]
    named = {each.name for each in controls}
    others = [
        f"{field}: {said}" if field else said
        for field, said in (refused or {}).items()
        if is_sent and not any(_is_about(field, name) for name in named)
    ]
    own = "set" if tenant is None else "tenant"
    changed = sum(each.source == own for each in rows)
    return SettingsCard(
        id_, group.name or "general", group.description, rows, changed, "; ".join(others) or None
    )


def _build_row(
    control: SettingControl, in_force: EffectiveSettings, form: Mapping[str, str], refused: Mapping[str, str]
) -> SettingRow:
    value = in_force.values[control.name]
    errors = [
        _locate_error(field, control.name, said)
        for field, said in refused.items()
        if _is_about(field, control.name)
    ]
    lines: list[Mapping[str, Any]] = []
    if control.kind == "prices":
        lines = [*(control.read_value(form) if form else value), *({} for _ in range(EMPTY_PRICE_LINES))]
    return SettingRow(
        control,
        form.get(control.name, control.format_value(value)),
        form.get(f"was.{control.name}", control.format_value(value)),
        in_force.sources[control.name],
        _format_setting(in_force.below[control.name]),
        lines,
        "; ".join(errors) or None,
    )


def _is_about(field: str, name: str) -> bool:
    return field == name or field.startswith(f"{name}.")


def _locate_error(field: str, name: str, problem: str) -> str:
    """Return a problem with the value of the setting `name`, for display.

    If `field` names a part of a list of prices, the text begins with its line: `line 2, input: ...`.
    """
    match field.removeprefix(name).strip(".").split("."):
        case [number, *parts] if number.isdecimal():
            return f"line {int(number) + 1}, {' '.join(parts)}: {problem}"
    return problem


def _is_changed(control: SettingControl, form: Mapping[str, str]) -> bool:
    was = form.get(f"was.{control.name}", "")
    if control.kind == "prices":
        try:
            return _drop_empty_parts(control.read_value(form)) != _drop_empty_parts(json.loads(was))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidBody(f"was.{control.name}", "is not a list of prices; reload the page") from error
    return control.name in form and form[control.name] != was


def _drop_empty_parts(prices: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{part: value for part, value in each.items() if value is not None} for each in prices]


def _format_setting(value: Any) -> str:
    match value:
        case None:
            return "not set"
        case True:
            return "on"
        case False:
            return "off"
        case str():
            return value
        case float() if value.is_integer():
            return f"{value:.0f}"
        case list():
            return "; ".join(_format_price(each) for each in value) or "none"
    return json.dumps(value, ensure_ascii=False)


def _format_price(price: Mapping[str, Any]) -> str:
    figures = (f"{part} {value:g}" for part, value in price.items() if isinstance(value, int | float))
    return f"{price.get('model')} ({', '.join(figures)})"


def _build_tenant_query(tenant: str | None) -> str:
    return f"?{urlencode({'tenant': tenant})}" if tenant else ""


def _build_group_path(tenant: str | None, group: str) -> str:
    return f"/settings{_build_tenant_query(tenant)}#{group}"
