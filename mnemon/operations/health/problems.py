"""Problems of a deployment, from the state of its servers: sentences on what an operator has to fix."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mnemon.operations.health import failing_models
from mnemon.operations.health.language_models import ModelsState
from mnemon.operations.health.state import BrokerState, DatabaseState, FolderState
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.presence import StreamsMissing
from mnemon_infra.database.migration import SchemaTooNew, is_known_revision
from mnemon_infra.durables import DURABLES
from mnemon_infra.health.fault import (
    MOST_USED,
    Fault,
    describe_disk,
    describe_known_pause,
    describe_missing,
    describe_standstill,
    describe_storage,
    describe_unread,
)
from mnemon_infra.process.free_space import format_megabytes, read_disk_space

MISSING: Final = "is missing"
"""Value in `BrokerState.drift` for a part that the server lacks."""


def list_problems(
    broker: BrokerState,
    database: DatabaseState,
    folder: FolderState | None,
    models: ModelsState | None,
    faults: Sequence[Fault],
) -> list[str]:
    """Return the problems that an operator has to fix; `faults` are those of `list_consumer_faults`."""
    found = list_folder_problems(folder)
    if broker.error:
        found.append(broker.error)
    if database.error:
        found.append(f"the database cannot be used: {database.error}")
    elif database.revision and not is_known_revision(database.revision):
        found.append(str(SchemaTooNew(database.schema_name, database.revision)))
    elif database.revision != database.head:
        at = f"at revision {database.revision}" if database.revision else "missing"
        found.append(
            f"schema {database.schema_name} is {at}, but this version needs {database.head}: run `mnemon"
            " migrate`"
        )
    if models and models.error:
        found.append(f"the work of language models cannot be read: {models.error}")
    if models:
        found += failing_models.describe_problems(models.failing, models.given_up)
    if broker.error is None and LOG not in broker.streams:
        # Leave out the rest of the drift: `mnemon provision` would also create a new log.
        found.append(str(StreamsMissing([LOG])))
    else:
        found += [
            f"{what} {how}: run `mnemon provision`"
            for what, how in broker.drift.items()
            if what not in _list_missing(broker)
        ]
    if broker.storage_used_ratio is not None and broker.storage_used_ratio > MOST_USED:
        found.append(str(describe_storage(broker.storage_used_ratio)))
    return [*found, *map(str, faults)]


def list_folder_problems(folder: FolderState | None) -> list[str]:
    """Return the problem of a folder whose disk is full or nearly full; an empty list without a problem."""
    if folder is None or not folder.is_nearly_full:
        return []
    if not folder.is_full:
        return [str(describe_disk(folder.path, read_disk_space(Path(folder.path))))]
    problem = (
        f"the disk of {folder.path} is full: only {format_megabytes(folder.free_bytes)} are free. Messages of"
        " bots are refused with an error. Free space on the disk; mnemon then continues automatically"
    )
    return [problem]


def list_consumer_faults(broker: BrokerState) -> list[Fault]:
    """Return a fault for each durable that is missing, paused, not read, or at a standstill."""
    faults = [] if LOG not in broker.streams else [*map(describe_missing, _list_missing(broker).values())]
    for name, lag in broker.consumers.items():
        if lag.paused_until:
            by_dead_letters = lag.is_paused_by_dead_letters
            faults.append(
                describe_known_pause(lag.stream, name, lag.paused_until, by_dead_letters=by_dead_letters)
            )
        elif not lag.is_read:
            faults.append(describe_unread(name, DURABLES[name].consumer, lag.pending))
        elif lag.standstill_seconds:
            seconds = lag.standstill_seconds
            faults.append(describe_standstill(name, lag.applied_position, lag.waiting, seconds))
    return faults


def _list_missing(broker: BrokerState) -> dict[str, str]:
    """Return the names of the missing durables whose streams exist, by key of `broker.drift`."""
    of_durables = {f"consumer {each.name} of {each.stream}": each for each in DURABLES.values()}
    return {
        what: of_durables[what].name
        for what, how in broker.drift.items()
        if how == MISSING and what in of_durables and of_durables[what].stream in broker.streams
    }
