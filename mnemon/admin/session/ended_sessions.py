"""Sessions that were ended before they expired."""

import time
from pathlib import Path

from mnemon.admin.session.tokens import open_admin_folder
from mnemon_infra.process.data_folder import replace_file


class EndedSessions:
    """Sessions that were ended before they expired, kept until they would have expired.

    The file at `path` keeps the sessions across restarts; None keeps them in this process only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._until: dict[str, float] = {}
        if path and path.exists():
            lines = (line.split() for line in path.read_text("ascii").splitlines())
            self._until = {id_: float(until) for id_, until in lines}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._until

    def add(self, id_: str, until: float) -> None:
        """Record that the session `id_` was ended.

        `until` is a time, in seconds since 1970, by which the session would have expired.

        Raises:
            OSError: the file cannot be written; the session is over only as long as this process runs.
        """
        now = time.time()
        self._until = {each: end for each, end in self._until.items() if end > now} | {id_: until}
        if self._path:
            text = "".join(f"{each} {until:.0f}\n" for each, until in self._until.items())
            replace_file(self._path, text)


def read_ended_sessions(data: Path) -> EndedSessions:
    """Return the ended sessions that the data folder `data` keeps."""
    return EndedSessions(open_admin_folder(data) / "ended")
