"""How many examples the tests with hypothesis try: a profile for all of them, and less of it for slow tests.

`pytest --hypothesis-profile thorough --timeout 0` tries twenty times as many.
"""

from typing import Final

from hypothesis import settings

USUAL: Final = 250
"""Examples of a test that takes a millisecond or two for each."""


def load_profiles() -> None:
    """Register the profiles, and load the usual one. No example has a deadline: machines are busy."""
    settings.register_profile("usual", max_examples=USUAL, deadline=None)
    settings.register_profile("thorough", max_examples=20 * USUAL, deadline=None)
    settings.load_profile("usual")


def scale_examples(usual: int) -> int:
    """Return the number of examples of a slow test in the profile that is loaded.

    Args:
        usual: its number in the usual profile.
    """
    profile = settings.get_current_profile_name()
    return usual * settings.get_profile(profile).max_examples // USUAL
