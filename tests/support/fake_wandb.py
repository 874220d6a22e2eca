"""A W&B server on this machine that plays the answers which the client of wandb 0.31 asks for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def server(answers: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yields (its URL, the operations it was asked for); answers: {operation: data, or a function of the variables}."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *parts: Any) -> None:
            """Silent."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            self._send(self._answer(json.loads(body)) if self.path == "/graphql" else {})

        def _answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
            words = question["query"].replace("(", " ").split()
            kind = next(word for word in words if word in ("query", "mutation"))
            name = question.get("operationName") or words[words.index(kind) + 1]
            asked.append(name)
            given = answers[name]
            return {"data": given(question.get("variables") or {}) if callable(given) else given}

        def _send(self, value: Mapping[str, Any]) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_port}", asked
    finally:
        http.shutdown()
        http.server_close()


def project(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Answers of a project of these runs: {id, group, job_type, config, summary, history}."""
    histories = {run["id"]: run["history"] for run in runs}

    def listed(variables: Mapping[str, Any]) -> dict[str, Any]:
        wanted = json.loads(variables["filters"])["group"]
        edges = [{"node": _node(run), "cursor": run["id"]} for run in runs if run["group"] == wanted]
        page = {"edges": edges, "pageInfo": {"endCursor": None, "hasNextPage": False}}
        return {"project": {"internalId": "1", "runCount": len(edges), "readOnly": False, "runs": page}}

    def history(variables: Mapping[str, Any]) -> dict[str, Any]:
        rows = histories[variables["run"]][variables["minStep"] : variables["maxStep"]]
        return {"project": {"run": {"history": [json.dumps(row) for row in rows]}}}

    def parquet(variables: Mapping[str, Any]) -> dict[str, Any]:
        live = [{"_step": at} for at in range(len(histories[variables["runName"]]))]
        return {"project": {"run": {"parquetHistory": {"parquetUrls": [], "liveData": live}}}}

    def keys(variables: Mapping[str, Any]) -> dict[str, Any]:
        return {"project": {"run": {"historyKeys": _keys(histories[variables.get("run") or variables["name"]])}}}

    viewer = {"id": "u", "entity": "e", "username": "e", "email": "e@x", "flags": "{}", "teams": {"edges": []}}
    return {
        "Viewer": {"viewer": viewer},
        "ServerFeaturesQuery": {"serverInfo": {"features": []}},
        "Runs": listed,
        "HistoryPage": history,
        "RunParquetHistory": parquet,
        "RunHistoryKeys": keys,
        "GetDefaultEntity": {"viewer": {"id": "u", "entity": "e"}},
    }


def _node(run: Mapping[str, Any]) -> dict[str, Any]:
    config = {key: {"value": value, "desc": None} for key, value in run["config"].items()}
    return {
        "id": run["id"], "name": run["id"], "projectId": "1", "tags": [], "displayName": run["id"], "sweepName": None,
        "state": "finished", "config": json.dumps(config), "group": run["group"], "jobType": run["job_type"],
        "commit": None, "readOnly": False, "createdAt": "2026-01-01T00:00:00Z", "heartbeatAt": "2026-01-01T00:00:00Z",
        "description": "", "notes": "", "systemMetrics": "{}", "summaryMetrics": json.dumps(run["summary"]),
        "historyLineCount": len(run["history"]), "user": {"name": "e", "username": "e"},
        "historyKeys": _keys(run["history"]),
    }  # fmt: skip


def _keys(history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    counts = {name: {"typeCounts": [], "monotonic": False} for row in history for name in row}
    return {"sets": [], "keys": counts, "lastStep": len(history) - 1}
