"""Feedback on a ranking that is not known (any more) is refused with advice that works, also behind a replica."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import toprank as tr
from tests.serve.starting import items, model, running
from toprank.serve.following import Follower
from toprank.serve.service import Service


def test_clicks_on_a_forgotten_ranking_are_learned_when_the_documents_are_sent_again(tmp_path: Path) -> None:
    listed = items(1)
    with running(tmp_path, model(tr.PDGD)) as server:
        page = server.post("/v1/rank", {"items": listed, "explore": True})
        shown = [item["id"] for item in page["items"]]
        told = {"event_id": "a", "ranking_id": page["ranking_id"], "clicks": shown[1:2]}
        weights = server.post("/v1/feedback", told) and server.get("/v1/model")["weights"]
    other = tmp_path / "other"
    other.mkdir()
    with running(other, model(tr.PDGD)) as server:  # it never heard of the ranking
        refused = server.post("/v1/feedback", told, 404)
        assert "send the documents again" in refused["error"]
        assert "1800 s and 256 MB at most, and a restart forgets them" in refused["error"]
        again = {"event_id": "a", "items": listed, "clicks": shown[1:2]}
        assert '"explore": true' in server.post("/v1/feedback", again, 422)["error"]
        assert "shown" in server.post("/v1/feedback", again | {"explore": True}, 422)["error"]
        assert "shown" in server.post("/v1/feedback", again | {"shown": shown}, 422)["error"]
        server.post("/v1/feedback", again | {"explore": True, "shown": [*shown, "d99"]}, 422)
        sent = again | {"explore": True, "shown": shown}
        assert server.post("/v1/feedback", sent)["status"] == "learned"
        assert server.get("/v1/model")["weights"] == weights  # as if it had been known
        assert server.post("/v1/feedback", sent)["status"] == "duplicate"


def test_labels_on_a_forgotten_ranking_are_learned_when_the_documents_are_sent_again(tmp_path: Path) -> None:
    with running(tmp_path, model(), seconds=1e-9) as server:
        name = server.post("/v1/rank", {"items": items(1)})["ranking_id"]
        told: dict[str, Any] = {"event_id": "a", "ranking_id": name, "labels": {"d1": 1}}
        assert "send the documents again" in server.post("/v1/feedback", told, 404)["error"]
        assert server.post("/v1/feedback", {**told, "ranking_id": None, "items": items(1)})["status"] == "learned"


def test_rankings_of_a_replica_are_told_from_forgotten_ones(tmp_path: Path) -> None:
    with running(tmp_path, model()) as leader:
        service = Service(Follower(leader.url, None))
        with running(tmp_path, None, service=service) as replica:
            name = replica.post("/v1/rank", {"items": items(1)})["ranking_id"]
            assert service.waiting.nbytes == 0  # it is of no use there
            told = {"event_id": "a", "ranking_id": name, "labels": {"d1": 1}}
            refused = leader.post("/v1/feedback", told, 404)
            assert "a replica made this ranking" in refused["error"]
            assert "send the documents again" in refused["error"]
            for ranking in (name, "unknown"):
                refused = replica.post("/v1/feedback", told | {"ranking_id": ranking}, 409)
                assert f"this server follows {leader.url} and does not learn" in refused["error"]
                assert "with items instead of the ranking_id" in refused["error"]
            sent = {"event_id": "a", "items": items(1), "labels": {"d1": 1}}
            assert leader.post("/v1/feedback", sent)["status"] == "learned"
            replica.post("/v1/model:rollback", {"version": 0}, 409)
