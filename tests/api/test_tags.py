"""GET /api/v1/tags"""

import pytest

from instances.models import Instance
from tests.api.calling import Caller, signed_in
from tests.factories import make_memory, make_user

URL = "/api/v1/tags?instanceId=support-bot"


def found(caller: Caller, query: str = "") -> list[tuple[str, int]]:
    return [(tag["tag"], tag["memories"]) for tag in caller.get(URL + query).json["tags"]]


def test_the_most_used_first(api: Caller, support: Instance, sales: Instance) -> None:
    for tags in (["tea", "office"], ["tea"], ["Travel", "tea"], ["office"], []):
        make_memory(support, tags=tags)
    make_memory(sales, tags=["secret"])
    assert found(api) == [("tea", 3), ("office", 2), ("Travel", 1)]
    assert found(api, "&limit=1") == [("tea", 3)]


@pytest.mark.parametrize(("prefix", "tags"), [("t", ["tea", "Travel"]), ("TE", ["tea"]), ("%25", ["%"]), ("x", [])])
def test_those_that_begin_so(api: Caller, support: Instance, prefix: str, tags: list[str]) -> None:
    make_memory(support, tags=["tea", "Travel", "office", "%"])
    assert sorted(tag for tag, _ in found(api, f"&prefix={prefix}")) == sorted(tags, key=str)


def test_tags_of_what_the_reader_may_not_see(support: Instance) -> None:
    make_memory(support, tags=["private"], visibility="private", owner="bob")
    assert found(signed_in(make_user("eve", support))) == []
    assert found(signed_in(make_user("bob", support))) == [("private", 1)]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", f"prefix={'x' * 65}", "prefix=%00"])
def test_bad_input(api: Caller, query: str) -> None:
    assert list(api.get(f"{URL}&{query}").errors) == [query.split("=")[0]]
