"""Asks a running `cento serve` as the clients of other makers do, each as its documentation shows it.

clients.py URL: the address of a server of the notes of the tests, without a path. clients.py mcp COMMAND ARGUMENT...:
the same tools over pipes. Says `ok NAME` for each client; a check that does not hold ends it.
"""

import asyncio
import json
import sys


def openai_client(url):
    import numpy as np
    from openai import BadRequestError, OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    models = [model.id for model in client.models.list()]
    assert models == ["tiny"], models
    answer = client.embeddings.create(model="tiny", input=["the tide", "bread"])  # asks for base64
    plain = client.embeddings.create(model="tiny", input=["the tide", "bread"], encoding_format="float")
    assert (np.float32([one.embedding for one in answer.data]) == np.float32([one.embedding for one in plain.data])).all()
    assert answer.usage.prompt_tokens > 0 and answer.model == "tiny"
    short = client.embeddings.create(model="tiny", input="the tide", dimensions=8).data[0].embedding
    assert len(short) == 8 and abs(sum(value * value for value in short) - 1) < 1e-6
    store = client.vector_stores.list().data[0]
    assert (store.id, store.file_counts.total) == ("cento", 3), store
    found = client.vector_stores.search("cento", query="what moves the sea", max_num_results=2).data
    assert len(found) == 2 and found[0].content[0].text and found[0].file_id.startswith("notes/")
    try:
        client.embeddings.create(model="tiny", input=[])
    except BadRequestError as error:
        assert error.code == "request", error
    else:
        raise AssertionError("no text is an error")


def langchain(url):
    from langchain_openai import OpenAIEmbeddings

    embeddings = OpenAIEmbeddings(base_url=f"{url}/v1", api_key="none")  # its defaults: tokens of cl100k, base64
    documents = embeddings.embed_documents(["the tide rises", "bread is flour"] * 600)
    assert len(documents) == 1200 and documents[0] == documents[2] != documents[1]
    query = embeddings.embed_query("the tide rises")
    assert max(abs(a - b) for a, b in zip(query, documents[0])) < 1e-6


def cohere_client(url):
    import cohere

    client = cohere.ClientV2(api_key="none", base_url=url)
    answer = client.rerank(model="tiny", query="the tide", documents=["bread is flour", "the tide", "stars"], top_n=2)
    assert [one.index for one in answer.results][0] == 1 and len(answer.results) == 2
    assert answer.results[0].relevance_score > 0.99
    client = cohere.Client(api_key="none", base_url=url)
    answer = client.rerank(model="tiny", query="stars", documents=["bread", "stars"], return_documents=True)
    assert answer.results[0].index == 1 and answer.results[0].document.text == "stars"


def huggingface(url):
    from huggingface_hub import InferenceClient

    one = InferenceClient(f"{url}/embed").feature_extraction("the tide")
    several = InferenceClient(url).feature_extraction(["the tide", "bread"], truncate=True, prompt_name="query")
    assert one.shape[0] == 1 and several.shape == (2, one.shape[1])


async def model_context(server):
    from mcp import Client

    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["context", "search", "fetch", "status"]
        assert all(tool.annotations.read_only_hint for tool in tools)

        async def call(name, **arguments):
            result = await client.call_tool(name, arguments)
            assert not result.is_error and len(result.content) == 1 and result.structured_content is None, result
            return result.content[0].text

        found = json.loads(await call("search", query="what moves the sea"))["results"]
        assert {"id", "title", "url", "text"} <= found[0].keys()
        fetched = json.loads(await call("fetch", id=found[0]["id"]))
        assert fetched["text"] and {"id", "title", "text", "url", "metadata"} <= fetched.keys()
        context = await call("context", question="what moves the sea", budget_tokens=300)
        assert "generation 1" in context
        assert json.loads(await call("status"))["collections"][0]["documents"] == 3
        wrong = await client.call_tool("fetch", {"id": "notes/nothing.md"})
        assert wrong.is_error and "unknown_document" in wrong.content[0].text, wrong


def main():
    if sys.argv[1] == "mcp":
        from mcp import StdioServerParameters

        asyncio.run(model_context(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])))
        print("ok mcp over pipes")
        return
    url = sys.argv[1]
    for client in [openai_client, langchain, cohere_client, huggingface]:
        client(url)
        print("ok", client.__name__)
    asyncio.run(model_context(f"{url}/mcp"))
    print("ok mcp over http")


main()
