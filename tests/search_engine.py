"""A stand-in for Elasticsearch with its learning-to-rank plugin: what docs/from-logs.md and `push` ask of it."""

import json
import random
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

WORDS = ("garden", "lamp", "solar", "shoes", "red", "tea", "green", "chair", "oak", "bike")


def judgements(queries=60, documents=12):
    """Queries and grades of a shop that does not exist."""
    rng = random.Random(0)
    names = {str(q): " ".join(["garden", *rng.sample(WORDS[1:], 2)]) for q in range(1, queries + 1)}
    grades = [0] * (documents // 2) + [1] * (documents // 3) + [2] * (documents - documents // 2 - documents // 3)
    judged = {}
    for q in names:
        chosen = sorted(rng.sample(range(10, 60), documents))
        judged[q] = dict(zip((f"p{n}" for n in chosen), rng.sample(grades, documents), strict=True))
    return names, judged


class Engine:
    """Answers as the plugin's documentation says; a request that it does not describe is an error."""

    def __init__(self):
        self.store, self.features, self.models, self.log = False, None, {}, []
        self.bodies, self.headers, self.wrong = {}, [], False
        names, self.judged = judgements()
        self.query = {words: q for q, words in reversed(names.items())}

    def answer(self, method, path, body):
        self.log.append((method, path))
        if (method, path) == ("PUT", "/_ltr") and body is None:
            self.store = True
            return {"acknowledged": True}
        if method == "GET":
            return self.bodies[path]
        self.bodies["/_ltr"] = {}
        if (method, path) == ("POST", "/_ltr/_featureset/products") and self.store:
            self.bodies[path] = {"_source": {"featureset": body["featureset"]}}
            self.features = [one["name"] for one in body["featureset"]["features"]]
            assert all(one["template_language"] == "mustache" for one in body["featureset"]["features"])
            return {"result": "created"}
        if (method, path) == ("POST", "/_ltr/_featureset/products/_createmodel") and self.features:
            model = body["model"]
            weights = json.loads(model["model"]["definition"])
            assert model["model"]["type"] == "model/linear"
            assert set(weights) <= set(self.features)
            self.models[model["name"]] = weights
            self.bodies[f"/_ltr/_model/{model['name']}"] = {"_source": {"model": model}}
            return {"result": "created"}
        if (method, path) == ("POST", "/products/_search"):
            if "match_all" in body["query"]:
                return {"hits": {"hits": [{"_id": f"p{number}"} for number in range(10, 60)]}}
            if "bool" in body["query"] and "should" in body["query"]["bool"]:
                return self.scored(body)
            return self.logged(body) if "ext" in body else self.rescored(body)
        raise LookupError(f"{method} {path}")

    def values(self, words, document):
        """The features of a document, which say something about its grade; now and then one does not match."""
        grade = next((g[document] for g in self.judged.values() if document in g), 0)
        grade = self.judged.get(self.query.get(words, ""), {}).get(document, grade)
        rng = random.Random(f"{words} {document}")
        row = [rng.gammavariate(2, 2) + 2 * grade, rng.gammavariate(2, 1) + grade, 400 * rng.random(), rng.random()]
        row[3] = 0.05 * (row[3] + grade)
        return {n: v for n, v in zip(self.features, row, strict=True) if n != "click_rate" or v > 0.002}

    def logged(self, body):
        wanted, sltr = (part.popitem()[1] for part in map(dict, body["query"]["bool"]["filter"]))
        spec = body["ext"]["ltr_log"]["log_specs"]
        assert sltr["featureset"] == "products"
        assert spec["named_query"] == sltr["_name"]
        hits = []
        for document in wanted["_id"]:
            found = self.values(sltr["params"]["keywords"], document)
            log = [{"name": n, **({"value": found[n]} if n in found else {})} for n in self.features]
            hits.append({"_id": document, "fields": {"_ltrlog": [{spec["name"]: log}]}})
        assert len(hits) <= body["size"]
        return {"hits": {"hits": hits}}

    def scored(self, body):
        """Scores in float32, in the order of the definition; something else where the engine is `wrong`."""
        sltr = body["query"]["bool"]["should"][0]["sltr"]
        hits = []
        for document in body["query"]["bool"]["filter"][0]["terms"]["_id"]:
            values, score = self.values(sltr["params"]["keywords"], document), np.float32(self.wrong)
            for name, weight in self.models[sltr["model"]].items():
                score += np.float32(weight) * np.float32(values.get(name, 0.0))
            hits.append({"_id": document, "_score": float(score)})
        return {"hits": {"hits": hits}}

    def rescored(self, body):
        inner = body["rescore"]["query"]["rescore_query"]["sltr"]
        assert body["rescore"]["window_size"] >= body["from"] + body["size"]
        weights, words = self.models[inner["model"]], inner["params"]["keywords"]
        assert words in body["query"]["match"].values()
        scored = []
        for number in range(10, 60):
            values = self.values(words, f"p{number}")
            score = sum(weights.get(name, 0.0) * value for name, value in values.items())
            scored.append({"_id": f"p{number}", "_score": score})
        return {"hits": {"hits": sorted(scored, key=lambda hit: -hit["_score"])[: body["size"]]}}


@contextmanager
def search_engine():
    """Serve on a free port of this machine; yield the engine and its address."""
    engine = Engine()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self):
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                body = json.loads(sent) if sent else None
                engine.headers.append(self.headers.get("Authorization"))
                found, status = engine.answer(self.command, self.path, body), 200
            except KeyError as error:
                found, status = {"found": False, "path": str(error)}, 404 if self.command == "GET" else 400
            except Exception as error:  # told to the client, which must fail on it
                found, status = {"error": repr(error)}, 400
            content = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = handle_any  # noqa: N815 - the names that http.server calls

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield engine, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
