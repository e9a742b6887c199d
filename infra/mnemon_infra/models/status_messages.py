"""Error messages, by HTTP status, for failures of a provider after which a request can be repeated."""


def describe_temporary_failure(provider: str, status: int) -> str:
    """Return an error message with the reason that the HTTP status gives, and the next step."""
    match status:
        case 429:
            why = "limits the rate of requests"
        case 529:
            why = "is overloaded"
        case _:
            why = "could not handle a request now"
    return f"{provider} {why} (HTTP {status}): repeat the request later"


def describe_failure(provider: str, status: int) -> str:
    """Return an error message for a provider that failed, with the next step."""
    return f"{provider} failed (HTTP {status}): repeat the request later, or check the server"
