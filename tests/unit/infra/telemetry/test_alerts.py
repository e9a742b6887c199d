"""Alert rules, run by promtool: each fires on series with faults, and none fires on series without faults."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ALERTS = Path(__file__).parents[4] / "infra" / "monitoring" / "alerts.yml"

WRONG = {
    'up{job="mnemon"}': "0x60",
    "mnemon_ready": "0x60",
    'mnemon_consumer_pending{consumer="persist"}': "2000+100x60",
    'mnemon_consumer_ack_pending{consumer="persist"}': "0x60",
    'mnemon_consumer_readers{consumer="persist"}': "0x60",
    'mnemon_consumer_oldest_seconds{consumer="persist"}': "400x60",
    'mnemon_consumer_paused{consumer="persist"}': "1x60",
    'mnemon_faults{fault="missing", consumer="persist"}': "1x60",
    'mnemon_faults{fault="stalled", consumer="persist"}': "1x60",
    'mnemon_faults{fault="standstill", consumer="persist"}': "1x60",
    'mnemon_faults{fault="failing", consumer="persist"}': "1x60",
    'mnemon_faults{fault="event_loop", instance="a"}': "1x60",
    'mnemon_faults{fault="disk", instance="a"}': "1x60",
    'mnemon_faults{fault="model", instance="a"}': "1x60",
    "mnemon_log_position": "9x30 5x30",
    'mnemon_stream_messages{stream="DEAD"}': "0x50 3x10",
    'mnemon_requests_total{verb="context", outcome="ok"}': "0+10x60",
    'mnemon_requests_total{verb="context", outcome="internal"}': "0+1x60",
    'mnemon_degraded_answers_total{verb="context", part="relevant"}': "0+5x60",
    'mnemon_request_seconds_bucket{verb="context", le="1"}': "0x60",
    'mnemon_request_seconds_bucket{verb="context", le="2.5"}': "0+10x60",
    'mnemon_request_seconds_bucket{verb="context", le="+Inf"}': "0+10x60",
    'mnemon_model_calls_total{provider="openai", outcome="unavailable"}': "0+3x60",
    'mnemon_model_calls_total{provider="openai", outcome="answered"}': "0+1x60",
    'mnemon_models_failing{instance="a", kind="refused"}': "1x60",
    'mnemon_dead_letters_total{consumer="extract", reason="refused"}': "0+1x60",
    'mnemon_embedding_calls_total{outcome="unavailable"}': "0+3x60",
    "mnemon_budget_used_ratio": "0.9x60",
}

WELL = {
    'up{job="mnemon"}': "1x60",
    "mnemon_ready": "1x60",
    'mnemon_consumer_running{consumer="retrieve"}': "1x60",
    'mnemon_consumer_pending{consumer="persist"}': "20x60",
    'mnemon_consumer_ack_pending{consumer="persist"}': "10x60",
    'mnemon_consumer_readers{consumer="persist"}': "2x60",
    'mnemon_consumer_oldest_seconds{consumer="persist"}': "0.2x60",
    'mnemon_consumer_paused{consumer="persist"}': "0x60",
    'mnemon_faults{fault="server", consumer=""}': "0x60",
    "mnemon_storage_used_ratio": "0.5x60",
    "mnemon_log_position": "0+10x60",
    'mnemon_stream_messages{stream="DEAD"}': "7x60",
    'mnemon_requests_total{verb="context", outcome="ok"}': "0+1000x60",
    'mnemon_requests_total{verb="context", outcome="internal"}': "0+1x60",
    'mnemon_degraded_answers_total{verb="context", part="relevant"}': "0+5x60",
    'mnemon_request_seconds_bucket{verb="context", le="1"}': "0+1000x60",
    'mnemon_request_seconds_bucket{verb="context", le="+Inf"}': "0+1000x60",
    'mnemon_model_calls_total{provider="openai", outcome="unavailable"}': "0+1x60",
    'mnemon_model_calls_total{provider="openai", outcome="answered"}': "0+3x60",
    'mnemon_models_failing{instance="a", kind="refused"}': "0x60",
    'mnemon_models_failing{instance="a", kind="unavailable"}': "1x60",
    'mnemon_dead_letters_total{consumer="persist", reason="refused"}': "0+1x60",
    'mnemon_embedding_calls_total{outcome="answered"}': "0+3x60",
    "mnemon_budget_used_ratio": "0.5x60",
}


def names() -> list[str]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


STORAGE = {"mnemon_storage_used_ratio": "0.96x60", 'mnemon_consumer_running{consumer="retrieve"}': "1x60"}
LOG = {'mnemon_faults{fault="log"}': "1x60", 'mnemon_consumer_running{consumer="retrieve"}': "1x60"}


@pytest.mark.parametrize(
    ("series", "firing"),
    [
        (WRONG, names()),
        (STORAGE, ["MnemonDiskNearlyFull"]),
        (LOG, ["MnemonLogReplaced"]),
        (WELL, []),
    ],
    ids=["wrong", "storage", "log", "well"],
)
def test_alerts_fire_on_faults_only(series: dict[str, str], firing: list[str], tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool: apt-get install prometheus")
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in firing]
    asked = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": "30m",
        "exp_samples": expected,
    }
    tests = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "30s",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [asked],
            }
        ],
    }
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(tests))
    ran = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
