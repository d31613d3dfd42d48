"""How fast is search, and does its vector list miss anything? At several sizes, without a filter and with each.

    .venv/bin/python benchmarks/search.py [--sizes 1000,10000,100000] [--times 30] [--hard]

Each size is one instance; all are in the same database. Words follow a power law. A vector is the sum of a topic, a
place within the topic in few dimensions, and noise, in proportions that make neighbours as hard to find as among 40,000
sentences embedded by MiniLM. With `--hard` there are no places: memories of a topic differ only by noise, which is as
strong as the topic.

`raw ms` is the search statement alone, prepared, for the same words and the same vector. `HTTP ms` is the whole answer
to `GET /api/v1/memories?search=` by the web server over loopback, which has seen every question before and has cached
its vector. The two take turns, so that other load affects both alike. The vectors of these questions resemble no
memory, which is hardest for an index; other questions are answered a fifth to a third faster.

`recall@20` compares the vector list with an exact scan: the share of its first 20 that are as near as the 20th of the
scan. (Some vectors are equal, and either of two equal ones is right.)
"""

import argparse
from statistics import median
from time import perf_counter
from typing import Any

from bench import Server, analyze, api_key, fresh_console, percentile_95, print_table, write_result
from peer.words import questions

TOPICS, DIRECTIONS, PLACES = 200, 48, 4000
# How long the place and the noise of a vector are; its topic has length 1.
PLACE, NOISE = 1.0, 1.2
WARM_UP = 8

MATERIAL = """
CREATE TABLE bench_vector AS
SELECT kind, n, l2_normalize(array_agg(x ORDER BY d)::vector(1536)) AS v
FROM (
    SELECT kind, n, d, CASE WHEN d <= 384 THEN random() - 0.5 ELSE 0 END AS x
    FROM (VALUES ('topic', %(topics)s::int), ('direction', %(directions)s)) AS k (kind, most),
         generate_series(1, most) AS n, generate_series(1, 1536) AS d
) AS drawn GROUP BY kind, n
"""
# A vector has two places, because there are so many pairs that hardly any is drawn twice.
MATERIAL_PLACES = """
INSERT INTO bench_vector
SELECT 'place', n, l2_normalize(sum(v * array_fill(random_normal()::real, ARRAY[1536])::vector))
    * array_fill((%(place)s / sqrt(2))::real, ARRAY[1536])::vector
FROM bench_vector AS direction (kind, k, v), generate_series(1, %(places)s) AS n WHERE kind = 'direction' GROUP BY n
"""
# Each vector has noise of its own. A vector of 384 numbers between -0.5 and 0.5 is about 5.66 long.
DRAWN = """
CREATE FUNCTION bench_drawn() RETURNS vector VOLATILE LANGUAGE plpgsql AS $$
DECLARE
    topic int := 1 + floor(power(random(), 2) * {topics});
    place int := 1 + floor(random() * {places});
    other int := 1 + floor(random() * {places});
    noise real[] := array(SELECT (random() - 0.5) * {noise} / 5.66 FROM generate_series(1, 384));
BEGIN
    RETURN (
        SELECT l2_normalize(sum(v) + (noise || array_fill(0::real, ARRAY[1152]))::vector)
        FROM bench_vector WHERE (kind, n) IN (('topic', topic), ('place', place), ('place', other))
    );
END $$
"""

# The same words as those of `peer.words`.
WORD = """
CREATE FUNCTION bench_word(n int) RETURNS text IMMUTABLE LANGUAGE sql AS
$$ SELECT translate(substr(md5(n::text), 1, 7), '0123456789', 'ghijklmnop') $$
"""

MEMORIES = """
INSERT INTO memories_memory (instance_id, id, key, content, summary, category, role, importance, confidence, tags,
    pinned, visibility, owner, source, conversation_position, source_message_ids, channel, evidence, status,
    supersede_reason, review, embedding, embedding_error, content_hash, access_count, last_seen_at, created_at,
    updated_at, occurred_at)
SELECT %(instance)s,
    (lpad(to_hex(1700000000000 + %(first)s::bigint + n), 12, '0') || '70008' || substr(md5(n::text), 1, 15))::uuid,
    '',
    (SELECT string_agg(bench_word(floor(power(random(), 3) * 20000)::int), ' ') FROM generate_series(1, 12 + n %% 3)),
    '', (ARRAY['general', 'preference', 'fact', 'event', 'relationship', 'decision'])[1 + n %% 6],
    (ARRAY['context', 'lesson', 'reference'])[1 + n %% 3], 1 + n %% 10, 1,
    CASE WHEN n %% 50 = 0 THEN '{vip}'::varchar[] ELSE '{}' END, n %% 97 = 0, 'instance',
    CASE WHEN n %% 20 = 0 THEN 'user' || n %% 400 ELSE '' END, (ARRAY['api', 'manual'])[1 + n %% 2], 0, '{}', '', '{}',
    'active', '', 'approved', 'ready', '', sha256(n::text::bytea), 0, now(), now(), now(),
    now() - n * interval '1 minute'
FROM generate_series(1, %(size)s::bigint) AS n
"""
CHUNKS = """
INSERT INTO memories_chunk (instance_id, id, memory_id, position, live, language, who, content, about,
    text_hash, length)
SELECT instance_id, id, id, 0, true, 'english', owner, content, '', content_hash, 13
FROM memories_memory WHERE instance_id = %(instance)s
"""
VECTORS = """
INSERT INTO memories_embedding (instance_id, chunk_id, generation, memory_id, live, vector)
SELECT instance_id, id, 1, memory_id, true, bench_drawn()::halfvec(1536)
FROM memories_chunk WHERE instance_id = %(instance)s
"""
EXACT = """
SELECT e.vector <=> %(vector)s::halfvec(1536)
FROM memories_embedding e
WHERE e.instance_id = %(instance)s AND e.generation = 1 AND e.memory_id IN ({allowed})
ORDER BY 1 LIMIT 20
"""
FILTERS: list[dict[str, Any]] = [
    {},
    {"category": "fact"},
    {"role": "lesson"},
    {"tag": ["vip"]},
    {"owner": "user20"},
    {"pinned": True},
    {"min_importance": 9},
    {"source": "manual"},
]


def make_material(*, hard: bool = False) -> None:
    """Create the words and vectors that instances are filled from."""
    from django.db import connection

    place, noise = (0.0, 1.0) if hard else (PLACE, NOISE)
    parameters = {"topics": TOPICS, "directions": DIRECTIONS, "places": PLACES, "place": place}
    with connection.cursor() as cursor:
        cursor.execute(WORD)
        cursor.execute(MATERIAL, parameters)
        cursor.execute(MATERIAL_PLACES, parameters)
        cursor.execute(DRAWN.format(topics=TOPICS, places=PLACES, noise=noise))
        cursor.execute("CREATE INDEX ON bench_vector (kind, n)")
        cursor.execute("VACUUM ANALYZE bench_vector")


def fill(size: int, *, has_vectors: bool = True) -> Any:
    from django.db import connection

    from accounts.access import SHELL, open_instance
    from instances.models import Instance
    from instances.store import InstanceDraft, create_instance
    from memories.jobs import fold_counts

    instance = create_instance(SHELL, InstanceDraft(slug=f"size-{size}", embedder="offline"))
    Instance.objects.filter(id=instance.id).update(embedding_model="offline-hash-1")
    parameters = {"instance": instance.id, "size": size, "first": size}
    with connection.cursor() as cursor:
        for statement in (MEMORIES, CHUNKS, VECTORS) if has_vectors else (MEMORIES, CHUNKS):
            cursor.execute(statement, parameters)
    analyze()
    fold_counts(timestamp=0)
    prepare_large(open_instance(SHELL, instance.slug))
    return open_instance(SHELL, instance.slug)


def prepare_large(scope: Any) -> None:
    """Do what the worker's jobs do for large instances."""
    from memories.jobs import build_vector_indexes
    from memories.listing import lengths
    from memories.search.sizes import ALL_WORDS_UP_TO

    if lengths(scope).all > ALL_WORDS_UP_TO:
        from memories.search.word_frequencies import count_words

        count_words(scope)
        build_vector_indexes(timestamp=0)


def drawn_vectors(number: int) -> list[list[float]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
        cursor.execute("SELECT bench_drawn()::real[] FROM generate_series(1, %s)", [number])
        return [row for (row,) in cursor.fetchall()]


def recall(scope: Any, conditions: dict[str, Any]) -> float:
    from django.db import connection

    from memories.filters import Filters, as_sql, matching
    from memories.search.hybrid import find
    from memories.search.query import Query
    from memoryconsole.postgres.halfvec import HalfVector

    filters = Filters(**conditions)
    parameters: dict[str, Any] = {"instance": scope.instance.id}
    statement = EXACT.format(allowed=as_sql(matching(scope, filters).values("id"), parameters))
    found = wanted = 0
    for vector in drawn_vectors(20):
        hits, _ = find(scope, Query("x"), filters, "vector", vector, 20, 0)
        with connection.cursor() as cursor:
            cursor.execute(statement, {**parameters, "vector": HalfVector.of(vector)})
            exact = [distance for (distance,) in cursor.fetchall()]
        found += sum(1 - (hit.found.similarity or 0) <= exact[-1] + 1e-9 for hit in hits) if exact else 0
        wanted += len(exact)
    return found / wanted if wanted else 1.0


def measure(scope: Any, conditions: dict[str, Any], texts: list[str], server: Server) -> dict[str, Any]:
    from memories.embedding.offline import embed
    from memories.filters import Filters

    query = {"instanceId": scope.instance.slug} | {
        {"min_importance": "minImportance"}.get(name, name): value for name, value in conditions.items()
    }
    raw_ms, http_ms = [], []
    for number, text in enumerate(texts[:WARM_UP] + texts):
        milliseconds = statement_ms(scope, text, Filters(**conditions), embed(text))
        start = perf_counter()
        server.request("GET", "/memories", {**query, "search": text})
        if number >= WARM_UP:
            http_ms.append((perf_counter() - start) * 1000)
            raw_ms.append(milliseconds)
    raw, http = median(raw_ms), median(http_ms)
    return {
        "raw_ms": raw,
        "raw_p95_ms": percentile_95(raw_ms),
        "http_ms": http,
        "http_p95_ms": percentile_95(http_ms),
        "over_raw_ms": http - raw,
        "over_raw": http / raw,
        "recall@20": recall(scope, conditions),
    }


def statement_ms(scope: Any, text: str, filters: Any, vector: list[float]) -> float:
    from django.db import connection, transaction

    from memories.search.planning import build_statement, prepare_transaction
    from memories.search.query import read_query

    with transaction.atomic(), connection.cursor() as cursor:
        sizes = prepare_transaction(scope, cursor)
        sql, parameters = build_statement(scope, read_query(text), filters, "hybrid", vector, sizes)
        start = perf_counter()
        cursor.execute(sql, {**parameters, "limit": 20, "offset": 0})
        cursor.fetchall()
        return (perf_counter() - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,3000,10000,100000")
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--hard", action="store_true")
    options = parser.parse_args()
    fresh_console()
    make_material(hard=options.hard)
    texts = questions(options.times)
    scopes = []
    for size in map(int, options.sizes.split(",")):
        start = perf_counter()
        scopes.append((size, fill(size)))
        depth = scopes[-1][1].instance.indexed_depth
        candidates = f"; its index is asked for {depth:,} candidates" if depth else ""
        print(f"Filled {size:,} in {perf_counter() - start:.0f} s{candidates}", flush=True)
    server = Server(api_key())
    for text in texts:
        server.request("GET", "/memories", {"instanceId": scopes[0][1].instance.slug, "search": text, "mode": "vector"})
    rows: list[dict[str, Any]] = []
    for size, scope in scopes:
        for conditions in FILTERS:
            name = next(iter(conditions), "everything")
            rows.append({"memories": size, "filter": name, **measure(scope, conditions, texts, server)})
    smallest = rows[0]["http_ms"]
    for row in rows:
        row["times_smallest"] = row["http_ms"] / smallest
    head = ["memories", "filter", "raw ms", "p95", "HTTP ms", "p95", "over raw", "× raw", "recall@20", "× smallest"]
    print_table(head, [list(row.values()) for row in rows])
    write_result("search-hard" if options.hard else "search", rows, times=options.times)


if __name__ == "__main__":
    main()
