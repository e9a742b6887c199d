"""Profiles with the number of examples of tests with hypothesis; slow tests use a share of this number.

`pytest --hypothesis-profile complete` tries as many examples as the long runs of `.ci/run`, and
`--hypothesis-profile thorough --timeout 0` twenty times as many. Only `thorough` draws other examples in each
run. With `usual` and `complete`, a failure comes from a change, and occurs again in the next run.
"""

from typing import Final

from hypothesis import HealthCheck, settings

_COMPLETE: Final = 250
"""Number of examples, in the profile `complete`, of a test that takes one or two milliseconds for each."""


def load_profiles() -> None:
    """Register the profiles, and load `usual`.

    No example has a deadline, and slow generation fails no test, because machines may be busy.
    """
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("usual", patient, max_examples=_COMPLETE // 5, derandomize=True)
    settings.register_profile("complete", patient, max_examples=_COMPLETE, derandomize=True)
    settings.register_profile("thorough", patient, max_examples=20 * _COMPLETE)
    settings.load_profile("usual")


def scale_examples(complete: int) -> int:
    """Return the number of examples of a slow test in the profile that is loaded.

    Args:
        complete: number of examples of the test in the profile `complete`.
    """
    profile = settings.get_current_profile_name()
    return complete * settings.get_profile(profile).max_examples // _COMPLETE
