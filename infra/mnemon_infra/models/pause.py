"""Messages about errors of a provider after which a request can be repeated, by HTTP status."""


def describe_pause(provider: str, status: int) -> str:
    """Return the message that a request can be repeated later, with the reason that the status gives."""
    match status:
        case 429:
            why = "limits the rate of requests"
        case 529:
            why = "is overloaded"
        case _:
            why = "could not handle a request now"
    return f"{provider} {why} (HTTP {status}): repeat later"


def describe_failure(provider: str, status: int) -> str:
    """Return the message that a provider failed, with what to do next."""
    return f"{provider} failed (HTTP {status}): repeat later, or check the server"
