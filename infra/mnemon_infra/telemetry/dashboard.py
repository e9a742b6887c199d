"""Writer of the Grafana dashboard: `python -m mnemon_infra.telemetry.dashboard` writes its file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mnemon_infra.telemetry.panels import ROWS, Panel, PanelKind

FILE: Final = Path(__file__).parents[2] / "monitoring" / "grafana" / "mnemon.json"

_WIDTH: Final = 24
_HEIGHTS: Final = {"stat": 4, "timeseries": 8}
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def build_dashboard() -> dict[str, Any]:
    """Return the dashboard in Grafana's format."""
    return {
        "uid": "mnemon",
        "title": "mnemon",
        "tags": ["mnemon"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
            ]
        },
        "panels": list(_place_panels()),
    }


def _place_panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, panels in ROWS:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": _WIDTH, "h": 1},
        }
        top += 1
        left = height = 0
        for panel in panels:
            if left + panel.width > _WIDTH:
                left, top = 0, top + height
            height = _HEIGHTS[panel.kind]
            number += 1
            place = {"x": left, "y": top, "w": panel.width, "h": height}
            yield _draw_panel(panel) | {"id": number, "gridPos": place}
            left += panel.width
        top += height


def _draw_panel(panel: Panel) -> dict[str, Any]:
    stacking = {"mode": "normal" if panel.stacked else "none"}
    custom = {"fillOpacity": 10, "showPoints": "never", "stacking": stacking}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": _DATASOURCE,
        "targets": [
            {"refId": chr(ord("A") + place), "expr": query, "legendFormat": name, "datasource": _DATASOURCE}
            for place, (query, name) in enumerate(panel.queries)
        ],
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                **({"custom": custom} if panel.kind == "timeseries" else {}),
            },
            "overrides": [],
        },
        "options": _OPTIONS[panel.kind],
    }


_OPTIONS: Final[dict[PanelKind, dict[str, Any]]] = {
    "stat": {"graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}},
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
}


def format_dashboard() -> str:
    """Return the text of the dashboard's file."""
    return json.dumps(build_dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(format_dashboard(), encoding="utf-8")
