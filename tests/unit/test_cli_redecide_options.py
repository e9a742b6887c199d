"""What `--redecide` is given, before anything is asked of a server."""

import pytest
import typer

from mnemon.cli import redeciding


@pytest.mark.parametrize("given", ["nonsense", "policy.min_length=1"])
def test_what_decides_nothing_is_refused_with_an_example(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        redeciding._edit([given])
    assert ended.value.exit_code == 2
    assert "--redecide dedupe.update_threshold=0.8" in capsys.readouterr().err
