"""Reasons for which a provider asks for a pause, by HTTP status."""


def describe_pause(status: int) -> str:
    """Return why the provider asks for a pause, as a phrase that follows its name."""
    match status:
        case 429:
            return "limits the rate of requests"
        case 529:
            return "is overloaded"
    return "could not handle a request now"
