"""Do deep pages of a list take longer than the first? Lists one instance that has half of all memories.

    .venv/bin/python benchmarks/listing.py [--memories 1000000]

Every ratio is to the first page in the same run. The console's page and the API's answer are rendered in this process.
`statements` is how many SQL statements that took.
"""

import argparse
from typing import Any

from bench import api_key, fresh_console, median_ms, print_table, write_result

FILL = """
INSERT INTO memories_memory (instance_id, id, key, content, summary, category, role, importance, confidence, tags,
    pinned, visibility, owner, source, source_message_ids, conversation_position, channel, evidence, status,
    supersede_reason, review, embedding, embedding_error, content_hash, access_count, last_seen_at, created_at,
    updated_at)
SELECT %(instance)s,
    (lpad(to_hex(1700000000000 + n), 12, '0') || '7000' || '8' || substr(md5(n::text), 1, 15))::uuid,
    '', 'Memory number ' || n || ': ' || repeat(md5(n::text) || ' ', 4), '',
    (ARRAY['general', 'preference', 'fact', 'event', 'relationship', 'decision'])[1 + n %% 6], 'context', 1 + n %% 10,
    1, CASE WHEN n %% 50 = 0 THEN '{vip}'::varchar[] ELSE '{}' END, n %% 97 = 0, 'instance', '', 'api', '{}', 0, '',
    '{}', 'active', '', 'approved', 'pending', '', sha256(n::text::bytea), 0, now(), now(), now()
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
"""


def fill(memories: int) -> None:
    """Create one instance with half of the memories, and twenty that share the rest."""
    from django.db import connection

    from accounts.access import SHELL
    from instances.store import InstanceDraft, create_instance
    from memories.jobs import fold_counts, mark_milestones

    half, share = memories // 2, memories // 40
    sizes = [("big", half), *((f"small-{n}", share) for n in range(20))]
    first = 1
    for slug, size in sizes:
        instance = create_instance(SHELL, InstanceDraft(slug=slug))
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"instance": instance.id, "first": first, "last": first + size - 1})
        first += size
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE memories_memory")
    fold_counts(timestamp=0)
    mark_milestones(timestamp=0)


def measure(total: int, times: int) -> list[dict[str, object]]:
    from django.db import connection
    from django.test import Client

    from accounts.models import User

    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.create_superuser("bench", "-"), "django.contrib.auth.backends.ModelBackend")
    api_client = Client(headers={"host": "localhost", "authorization": f"Bearer {api_key()}"})
    rows: list[dict[str, object]] = []

    def add(what: str, url: str, client: Client, baseline: float | None) -> float:
        def get() -> object:
            response = client.get(url)
            assert response.status_code == 200, response.content[:500]
            return response

        statements: list[str] = []

        def counted(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            statements.append(sql)
            return execute(sql, params, many, context)

        get()
        with connection.execute_wrapper(counted):
            get()
        median, p95 = median_ms(get, times)
        ratio = median / baseline if baseline else 1.0
        rows.append({"what": what, "median_ms": median, "p95_ms": p95, "ratio": ratio, "statements": len(statements)})
        return median

    for name, query in (
        ("page", ""),
        ("page, one category", "&category=fact"),
        ("page, by importance", "&sort=importance"),
    ):
        pages = (total // 6 if "category" in query else total) // 25
        base = add(f"{name}: 1", f"/memory?instance=big{query}", client, None)
        for number in (10, 400, pages // 4, pages // 2, pages - 3, pages):
            add(f"{name}: {number:,} typed", f"/memory?instance=big{query}&page={number}", client, base)
        for number in (400, pages // 2):
            html = client.get(f"/memory?instance=big{query}&page={number}").content.decode()
            url = html.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
            add(f"{name}: {number + 1:,} by link", f"/memory{url}", client, base)
    base = add("API: first", "/api/v1/memories?instanceId=big&limit=50", api_client, None)
    add("API: offset 10,000", "/api/v1/memories?instanceId=big&limit=50&offset=10000", api_client, base)
    for depth in (0.25, 0.5, 0.99):
        add(
            f"API: cursor at {depth:.0%}",
            f"/api/v1/memories?instanceId=big&limit=50&cursor={cursor_at(total, depth)}",
            api_client,
            base,
        )
    return rows


def cursor_at(total: int, depth: float) -> str:
    from memories.models import Memory
    from memories.paging import name_of_list, write_cursor

    rows = Memory.objects.filter(instance__slug="big").order_by("-id").values_list("instance_id", "id")
    instance_id, id = rows[int(total * depth)]
    return write_cursor(name_of_list("memories", instance_id, {}), (id,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    fresh_console()
    print(f"Filling {options.memories:,} memories …")
    fill(options.memories)
    rows = measure(options.memories // 2, options.times)
    print_table(["", "median ms", "p95 ms", "× first", "statements"], [list(row.values()) for row in rows])
    write_result("listing", rows, memories=options.memories)


if __name__ == "__main__":
    main()
