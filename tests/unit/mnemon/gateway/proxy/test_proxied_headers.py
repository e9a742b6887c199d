"""Headers that pass through the proxy."""

from starlette.datastructures import Headers

from mnemon.gateway.proxy.upstreams import Upstreams, select_request_headers, select_response_headers

SENT = Headers(
    {
        "Authorization": "Bearer mnemon_1",
        "X-Api-Key": "mnemon_1",
        "Mnemon-User": "anna",
        "Host": "gateway",
        "Content-Length": "3",
        "Accept-Encoding": "gzip",
        "OpenAI-Organization": "org",
    }
)


def test_key_of_mnemon_does_not_reach_the_provider() -> None:
    upstream = Upstreams().openai._replace(key="sk-1")
    assert select_request_headers(SENT, upstream, has_own_key=False) == [
        ("openai-organization", "org"),
        ("authorization", "Bearer sk-1"),
        ("accept-encoding", "identity"),
    ]
    keyless = Upstreams().anthropic
    assert "mnemon_1" not in str(select_request_headers(SENT, keyless, has_own_key=False))


def test_own_key_of_the_client_passes() -> None:
    own = Headers({"Authorization": "Bearer sk-own", "Mnemon-Key": "mnemon_1"})
    upstream = Upstreams().openai._replace(key="sk-1")
    assert select_request_headers(own, upstream, has_own_key=True) == [
        ("authorization", "Bearer sk-own"),
        ("accept-encoding", "identity"),
    ]


def test_headers_of_one_connection_do_not_pass() -> None:
    received = [(b"Transfer-Encoding", b"chunked"), (b"X-Request-Id", b"r-1"), (b"Date", b"now")]
    assert select_response_headers(received) == [(b"x-request-id", b"r-1")]
