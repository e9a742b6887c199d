"""The admin page of `mnemon up`: its process starts with the first request, and again after its death."""

import json
import re
from contextlib import suppress

import httpx
import psutil
import pytest

from tests.support.processes.stack import TIMEOUT, Up


def serving(stack: Up) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(stack.process.pid).children():
        with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            if "mnemon.admin" in child.cmdline():
                found.append(child)
    return found


@pytest.mark.long
async def test_login_link_works_once_over_restarts_of_the_process(shared: Up) -> None:
    assert shared.endpoints is not None
    address = shared.endpoints.http
    assert address == json.loads((shared.data / "endpoints.json").read_text())["http"]
    assert (shared.data / "admin" / "token").stat().st_mode & 0o777 == 0o600
    link = re.findall(r"admin page  (\S+)/login\?key=(\S+)", shared.log)[-1]
    assert link[0] == address
    assert serving(shared) == [], "nobody has looked yet"

    limits = httpx.Limits(max_keepalive_connections=0)
    assert address
    origin = {"origin": address}
    async with httpx.AsyncClient(base_url=address, timeout=TIMEOUT, limits=limits, headers=origin) as browser:
        answer = await browser.post("/login", data={"key": link[1]})
        assert answer.headers["location"] == "/"
        page = await browser.get("/")
        assert page.status_code == 200
        assert "Consumers" in page.text
        [process] = serving(shared)
        process.kill()
        assert (await browser.get("/")).status_code == 200, "the session holds"
        assert (await browser.post("/login", data={"key": link[1]})).status_code == 403
    assert serving(shared)[0].pid != process.pid
