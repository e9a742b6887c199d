"""How many examples the tests with hypothesis try: a profile for all of them, and less of it for slow tests.

`pytest --hypothesis-profile complete` tries as many as the long runs of `.ci/run`, and
`--hypothesis-profile thorough --timeout 0` twenty times as many as that. Only `thorough` draws others each
time: a failure of the other two comes from a change, and comes again.
"""

from typing import Final

from hypothesis import settings

_COMPLETE: Final = 250
"""Examples of a test that takes a millisecond or two for each."""


def load_profiles() -> None:
    """Register the profiles, and load the usual one. No example has a deadline: machines are busy."""
    settings.register_profile("usual", max_examples=_COMPLETE // 5, deadline=None, derandomize=True)
    settings.register_profile("complete", max_examples=_COMPLETE, deadline=None, derandomize=True)
    settings.register_profile("thorough", max_examples=20 * _COMPLETE, deadline=None)
    settings.load_profile("usual")


def scale_examples(complete: int) -> int:
    """Return the number of examples of a slow test in the profile that is loaded.

    Args:
        complete: its number in the complete profile.
    """
    profile = settings.get_current_profile_name()
    return complete * settings.get_profile(profile).max_examples // _COMPLETE
