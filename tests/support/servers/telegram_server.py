"""Server with the methods of Telegram's Bot API that a polling bot needs, and one user of the bot."""

import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl

from tests.support.processes.stack import TIMEOUT

_BOT = {"id": 123, "is_bot": True, "first_name": "Mnemon", "username": "mnemon_bot"}


class Telegram:
    """The server, which runs for the duration of a `with` block; `says` sends a message of the user."""

    def __init__(self, user: int) -> None:
        self._user = user
        self._changed = threading.Condition()
        self._updates: list[dict[str, Any]] = []
        self._messages = 0
        self._sent: Queue[str] = Queue()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.telegram = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    async def says(self, text: str) -> str:
        """Send a message to the bot, and return the bot's next message.

        Raises:
            queue.Empty: the bot sent none within `TIMEOUT` seconds.
        """
        with self._changed:
            self._messages += 1
            command = [{"type": "bot_command", "offset": 0, "length": len(text.split()[0])}]
            entities = {"entities": command} if text.startswith("/") else {}
            message = self._message(self._user, text) | entities
            self._updates.append({"update_id": self._messages, "message": message})
            self._changed.notify_all()
        return await asyncio.to_thread(self._sent.get, timeout=TIMEOUT)

    def answered(self, method: str, given: dict[str, str]) -> object:
        """Return the `result` of a method of the Bot API; True for methods that have no effect here."""
        match method:
            case "getMe":
                return _BOT
            case "getUpdates":
                return self._new(int(given.get("offset", 0)), float(given.get("timeout", 0)))
            case "sendMessage":
                self._sent.put(given["text"])
                return self._message(_BOT["id"], given["text"])
        return True

    def _new(self, offset: int, timeout: float) -> list[dict[str, Any]]:
        """Return the updates from an offset on, and drop those before it.

        Wait at most `timeout` seconds for an update.
        """
        until = time.monotonic() + timeout
        with self._changed:
            self._updates = [update for update in self._updates if update["update_id"] >= offset]
            while not self._updates and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return list(self._updates)

    def _message(self, speaker: object, text: str) -> dict[str, Any]:
        chat = {"id": self._user, "type": "private", "first_name": "Anna"}
        sender = _BOT if speaker == _BOT["id"] else {"id": speaker, "is_bot": False, "first_name": "Anna"}
        return {
            "message_id": self._messages,
            "date": int(time.time()),
            "chat": chat,
            "from": sender,
            "text": text,
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        result = self.server.telegram.answered(self.path.rpartition("/")[2], dict(parse_qsl(body)))
        answer = json.dumps({"ok": True, "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_request(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    telegram: Telegram

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: a test may end a bot while the bot polls."""
