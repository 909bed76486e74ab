"""DSPy: a retriever of predictions, and the retrieval model behind `dspy.Retrieve`."""

import pytest

dspy = pytest.importorskip("dspy", reason="dspy is not installed")

from cento.dspy import CentoContext, CentoRetriever, CentoRM


def test_a_retriever_gives_predictions(server):
    found = CentoRetriever(server, k=3)("what moves the sea")
    hits = server.search("what moves the sea", k=3)
    assert isinstance(found, dspy.Prediction)
    assert (found.passages, found.ids) == ([hit.text for hit in hits], [hit.id for hit in hits])
    assert len(CentoRetriever(server)("moon", k=1).passages) == 1


def test_dspy_retrieves_with_it(server):
    with dspy.context(rm=CentoRM(server, k=2)):
        assert dspy.Retrieve(k=2)("what moves the sea").passages == [
            hit.text for hit in server.search("what moves the sea", k=2)
        ]


def test_a_module_of_dspy_reads_a_context(server):
    class Answer(dspy.Module):
        def __init__(self):
            super().__init__()
            self.context = CentoContext(server, budget=60)
            self.answer = dspy.Predict("context, question -> answer")

        def forward(self, question):
            return self.answer(context=self.context(question).context, question=question)

    found = CentoContext(server, budget=60)("what moves the sea")
    assert found.n_tokens <= 60 and found.passages == [found.context] and found.citations
    with dspy.context(lm=dspy.utils.DummyLM([{"answer": "the moon"}])):
        assert Answer()("what moves the sea").answer == "the moon"
