"""Local server with the rerank format of Jina, Cohere and vLLM, and with faults that a test sets."""

from mnemon_infra.config import Deployment
from tests.support.servers.embedding_server import KEY, Body, Endpoint, EndpointAnswer


def score_text(text: str) -> float:
    """Return the server's score of a text: the share of the letter `z` among its first ten characters."""
    return text[:10].count("z") / 10


def build_results(request: Body) -> list[Body]:
    """Return one result for each text in `documents` of a request, best first."""
    scores = enumerate(map(score_text, request["documents"]))
    results = [{"index": index, "relevance_score": score} for index, score in scores]
    return sorted(results, key=lambda result: -result["relevance_score"])


def build_tei_answer(request: Body) -> EndpointAnswer:
    """Return the answer of text-embeddings-inference, which has the field `texts` in place of `documents`."""
    if "texts" not in request:
        return EndpointAnswer(422, b"Failed to deserialize the JSON body: missing field `texts`")
    results = build_results({"documents": request["texts"]})
    return EndpointAnswer(
        200, [{"index": each["index"], "score": each["relevance_score"]} for each in results]
    )


class RerankerServer(Endpoint):
    """A server on a free port that scores texts by `score_text`."""

    path = "/v1/rerank"

    def build_answer(self, request: Body) -> EndpointAnswer:
        return EndpointAnswer(200, {"id": "1", "model": request["model"], "results": build_results(request)})

    @property
    def address(self) -> str:
        return f"{self.url}/rerank"

    @property
    def deployment(self) -> Deployment:
        return Deployment(reranker_url=self.address, reranker_api_key=KEY)
