"""Draws the latest results as SVG, next to them.

    .venv/bin/python benchmarks/plot.py

Needs nothing but the result files; a benchmark without a result has no chart.
"""

import json
from collections.abc import Callable, Sequence
from itertools import groupby, product
from typing import Any

import svg
from bench import RESULTS
from svg import Bar, Chart

Row = dict[str, Any]
OURS = "memory console"
MACHINE = "{cpu}, {cores} cores, PostgreSQL {postgresql}, pgvector {pgvector}, {at}"


def latest(name: str) -> Row:
    """The newest result of a benchmark, or nothing."""
    found = sorted(RESULTS.glob(f"{name}-20*.json"))
    return json.loads(found[-1].read_text()) if found else {}


def description(result: Row, what: str, figures: Sequence[str]) -> str:
    machine = MACHINE.format(**result["machine"], at=result["at"][:10])
    return f"{what} {'; '.join(figures)}. Measured on {machine}."


def grouped(rows: Sequence[Row], key: Callable[[Row], str], bar: Callable[[Row], Bar]) -> dict[str, list[Bar]]:
    return {name: [bar(row) for row in part] for name, part in groupby(rows, key)}


def latency(result: Row, rows: Sequence[Row], title: str, what: str, name: str, figure: str) -> str:
    names = sorted({row[name] for row in rows}, key=lambda each: (each not in (OURS, "everything"), each))
    series = {each: [(row["memories"], row[figure]) for row in rows if row[name] == each] for each in names}
    figures = [f"{each}: " + ", ".join(f"{ms:.1f} ms at {n:,}" for n, ms in line) for each, line in series.items()]
    return svg.lines(
        Chart(title, description(result, what, figures), "memories in the scope (log)", "median, ms (log)"), series
    )


def bar_chart(result: Row, groups: dict[str, list[Bar]], title: str, what: str, unit: str = "") -> str:
    figures = [f"{name} {bar.name}: {bar.value:,.3g}".strip() for name, group in groups.items() for bar in group]
    return svg.bars(Chart(title, description(result, what, figures)), groups, unit)


def search_charts(result: Row) -> dict[str, str]:
    if "http_ms" not in result["rows"][0]:  # a result from before HTTP was measured
        return {}
    what = "Median time of a search over HTTP, less the time to embed the query, one line for each filter."
    return {"search": latency(result, result["rows"], "Search by size and filter", what, "filter", "http_ms")}


def recall_charts(result: Row) -> dict[str, str]:
    kinds = ("recall", "search")
    rows = [
        {"memories": row["memories"], "what": kind, "ms": row[f"{kind} p50"]}
        for kind in kinds
        for row in result["rows"]
    ]
    what = "Median time of a recall and of the search within it, over HTTP."
    return {"recall": latency(result, rows, "Recall and search by size", what, "what", "ms")}


def writes_charts(result: Row) -> dict[str, str]:
    rows = {"": [Bar(row["what"], row["per_second"], "COPY" not in row["what"]) for row in result["rows"]]}
    return {"writes": bar_chart(result, rows, "Writing: rows per second", "Rows written per second.", "/s")}


def listing_charts(result: Row) -> dict[str, str]:
    def bar(row: Row) -> Bar:
        return Bar(row["what"].partition(": ")[2], row["median_ms"], True)

    groups = grouped(result["rows"], lambda row: str(row["what"]).partition(": ")[0], bar)
    what = f"Median time of a page of a list among {result['memories']:,} memories, by its depth."
    return {"listing": bar_chart(result, groups, "Lists: time by depth", what, "ms")}


def peers_charts(result: Row) -> dict[str, str]:
    charts: dict[str, str] = {}
    for mode, category in product(("hybrid", "vector"), ("", "decision")):
        rows = [row for row in result["rows"] if (row["mode"], row["category"]) == (mode, category)]
        if rows:
            where = "one category of one tenant" if category else "one tenant"
            title = f"Search within {where}, {'words and vectors' if mode == 'hybrid' else 'vectors alone'}"
            what = "Median time of a search, embedding excluded, by how many memories the tenant has."
            name = f"peers-{mode}{'-filtered' if category else ''}"
            charts[name] = latency(result, rows, title, what, "system", "p50_ms")

    found = [row for row in result["rows"] if row["mode"] == "vector" or row["system"].startswith("mem0")]
    found.sort(key=lambda row: (row["memories"], row["category"], row["system"] != OURS, row["system"]))
    groups = compared(found, _searched_scope, "exact@20")
    what = "How many of the 20 nearest by exact cosine within the tenant an answer contains, as a share."
    charts["peers-recall"] = bar_chart(result, groups, "Share of the 20 exact neighbours found", what)
    groups = compared(result["adds"], lambda row: _batch(row["batch"]), "per_second")
    what = "Rows added per second to a full store, until they are part of its indexes."
    return charts | {"peers-adds": bar_chart(result, groups, "Adds per second", what, "/s")}


def compared(rows: Sequence[Row], key: Callable[[Row], str], figure: str) -> dict[str, list[Bar]]:
    return grouped(rows, key, lambda row: Bar(row["system"], row[figure], row["system"] == OURS))


def peers_quality_charts(result: Row) -> dict[str, str]:
    groups = compared(result["rows"], lambda row: str(row["set"]), "recall@10")
    what = "Recall at 10 on retrieval sets, in percent, with the same vectors."
    return {"peers-quality": bar_chart(result, groups, "Recall@10 on retrieval sets", what, "%")}


def _searched_scope(row: Row) -> str:
    return f"{row['memories']:,} memories{', one category' if row['category'] else ''}"


def _batch(size: int) -> str:
    return "one by one" if size == 1 else f"in batches of {size}"


def quality_charts(results: Sequence[Row]) -> dict[str, str]:
    both = [row | {"embedder": result["embedder"]} for result in results for row in result["rows"]]
    rows = [row for row in both if row["queries"] == "all"]
    rows.sort(key=lambda row: (row["set"], row["mode"], row["embedder"] == "offline"))

    def bar(row: Row) -> Bar:
        vectors = "offline embedder" if row["embedder"] == "offline" else "model"
        return Bar(f"{row['mode']}, {vectors}", row["recall@10"], row["mode"] == "hybrid")

    groups = grouped(rows, lambda row: str(row["set"]), bar)
    what = "Recall at 10 in percent through the HTTP API."
    return {"quality": bar_chart(results[-1], groups, "Recall@10 on retrieval sets", what, "%")}


def main() -> None:
    charts: dict[str, str] = {}
    for name, draw in {
        "search": search_charts,
        "recall": recall_charts,
        "writes": writes_charts,
        "listing": listing_charts,
        "peers": peers_charts,
        "peers-quality": peers_quality_charts,
    }.items():
        if result := latest(name):
            charts |= draw(result)
    # The stem ends with the date. Sorted by name, so the newest result of each kind overwrites the others.
    newest = {path.stem[:-11]: json.loads(path.read_text()) for path in sorted(RESULTS.glob("quality-*.json"))}
    if newest:
        charts |= quality_charts(list(newest.values()))
    for name, chart in charts.items():
        (RESULTS / f"{name}.svg").write_text(chart)
        print(f"Drawn: benchmarks/results/{name}.svg")


if __name__ == "__main__":
    main()
