"""What does a write cost? Single saves and bulk requests against a raw COPY of the same rows, in one run.

    .venv/bin/python benchmarks/writes.py [--memories 10000]

Requests go to the web server over loopback. `COPY` loads a dump of the rows that the API wrote back into the same
tables, with all their indexes. `until embedded` counts until the worker has stored the last memory's vector, which it
gets from an embeddings API that is part of the benchmark; the COPY beside it includes the vectors. The last two lines
compare inserting vectors with and without the index that search scans.
"""

import argparse
import os
import random
from collections.abc import Sequence
from time import perf_counter, sleep
from typing import Any

from bench import Server, api_key, fresh_console, load_average, print_table, start_worker, write_result
from embedding_server import EmbeddingServer

TABLES = ("memories_memory", "memories_chunk")
WITH_VECTORS = (*TABLES, "memories_embedding")


def drafts(number: int) -> list[dict[str, Any]]:
    rnd = random.Random(3)
    words = [f"word{int(rnd.random() ** 3 * 20_000)}" for _ in range(50_000)]
    return [
        {
            "content": " ".join(rnd.sample(words, 20)),
            "category": rnd.choice(["fact", "event", "preference"]),
            "importance": rnd.randint(1, 10),
            "tags": rnd.sample(["vip", "billing", "export"], rnd.randint(0, 2)),
        }
        for _ in range(number)
    ]


def columns(table: str) -> str:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
            [table],
        )
        return str(cursor.fetchone()[0])


def raw_copy(instance_id: Any, tables: Sequence[str] = TABLES) -> float:
    """Dump the instance's rows, delete them, and time putting them back."""
    from django.db import connection, transaction

    dumps = {}
    with connection.cursor() as cursor:
        for table in tables:
            rows = f"SELECT {columns(table)} FROM {table} WHERE instance_id = '{instance_id}'"
            with cursor.copy(f"COPY ({rows}) TO STDOUT (FORMAT binary)") as copy:
                dumps[table] = b"".join(bytes(part) for part in copy)
        cursor.execute("DELETE FROM memories_memory WHERE instance_id = %s", [instance_id])
        for table in tables:
            cursor.execute(f"VACUUM ANALYZE {table}")
        start = perf_counter()
        with transaction.atomic():
            for table, dump in dumps.items():
                with cursor.copy(f"COPY {table} ({columns(table)}) FROM STDIN (FORMAT binary)") as copy:
                    copy.write(dump)
        return perf_counter() - start


def vector_inserts(instance_id: Any, number: int, rounds: int = 3) -> tuple[float, float]:
    """Seconds to insert the vectors with the index that search scans, and without it: the best of some rounds."""
    from django.db import connection

    with_index, without = [], []
    insert_vectors(instance_id, number)  # extends the table, which later rounds reuse
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef('embedding_scan'::regclass)")
        (create,) = cursor.fetchone()
        for _ in range(rounds):
            with_index.append(insert_vectors(instance_id, number))
            cursor.execute("DROP INDEX embedding_scan")
            without.append(insert_vectors(instance_id, number))
            cursor.execute(create)
    return min(with_index), min(without)


def insert_vectors(instance_id: Any, number: int) -> float:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memories_embedding WHERE instance_id = %s", [instance_id])
        cursor.execute("VACUUM memories_embedding")
        start = perf_counter()
        cursor.execute(
            "INSERT INTO memories_embedding (instance_id, chunk_id, generation, memory_id, live, vector)"
            " SELECT instance_id, id, 1, memory_id, true, (SELECT l2_normalize(array_agg(random() - 0.5)::vector(1536))"
            " FROM generate_series(1, 1536))::halfvec(1536) FROM memories_chunk WHERE instance_id = %s LIMIT %s",
            [instance_id, number],
        )
        return perf_counter() - start


def save_in_bulk(server: Server, slug: str, memories: Sequence[dict[str, Any]]) -> float:
    start = perf_counter()
    for first in range(0, len(memories), 1000):
        server.request("POST", "/memories/bulk", {"instanceId": slug, "memories": memories[first : first + 1000]})
    return perf_counter() - start


def until_embedded(
    server: Server, embeddings: EmbeddingServer, memories: Sequence[dict[str, Any]]
) -> tuple[float, float]:
    """Rows per second until the worker has embedded them, and of a COPY of the same rows with their vectors."""
    from accounts.access import SHELL
    from instances.store import InstanceDraft, create_instance

    instance = create_instance(SHELL, InstanceDraft(slug="embedded", openai_key="sk-benchmark-0123456789"))
    embeddings.make_up(["warm", *(draft["content"] for draft in memories)])
    start_worker()
    save_in_bulk(server, "embedded", [{"content": "warm"}])
    wait_until_embedded(instance.id)
    start = perf_counter()
    save_in_bulk(server, "embedded", memories)
    wait_until_embedded(instance.id)
    number = len(memories)
    return number / (perf_counter() - start), (number + 1) / raw_copy(instance.id, WITH_VECTORS)


def wait_until_embedded(instance_id: Any, seconds: float = 300) -> None:
    from memories.models import Memory

    start = perf_counter()
    while Memory.objects.filter(instance_id=instance_id).exclude(embedding="ready").exists():
        if perf_counter() - start > seconds:
            raise RuntimeError(f"The worker was not done within {seconds:.0f} s.")
        sleep(0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    options = parser.parse_args()
    embeddings = EmbeddingServer()
    os.environ |= {"OPENAI_BASE_URL": embeddings.url, "OPENAI_API_KEY": ""}
    fresh_console()

    from accounts.access import SHELL
    from instances.store import InstanceDraft, create_instance

    load = [load_average()]
    instance = create_instance(SHELL, InstanceDraft(slug="writes"))
    server = Server(api_key())
    singles = drafts(300)
    start = perf_counter()
    for draft in singles:
        server.request("POST", "/memories", {"instanceId": "writes", **draft})
    single = len(singles) / (perf_counter() - start)
    everything = drafts(options.memories)
    bulk = len(everything) / save_in_bulk(server, "writes", everything)
    copied = (len(everything) + len(singles)) / raw_copy(instance.id)
    embedded, copied_with_vectors = until_embedded(server, embeddings, everything)
    with_index, without_index = (options.memories / took for took in vector_inserts(instance.id, options.memories))
    rows = [
        {"what": "single saves", "per_second": single, "ratio": single / copied},
        {"what": "bulk of 1,000", "per_second": bulk, "ratio": bulk / copied},
        {"what": "raw COPY of the same rows", "per_second": copied, "ratio": 1.0},
        {"what": "bulk of 1,000, until embedded", "per_second": embedded, "ratio": embedded / copied_with_vectors},
        {"what": "raw COPY, with vectors", "per_second": copied_with_vectors, "ratio": 1.0},
        {"what": "vectors, with the index", "per_second": with_index, "ratio": with_index / without_index},
        {"what": "vectors, without it", "per_second": without_index, "ratio": 1.0},
    ]
    print_table(["", "rows/s", "× compared"], [list(row.values()) for row in rows])
    load.append(load_average())
    write_result("writes", rows, memories=options.memories, load_before_and_after=load)


if __name__ == "__main__":
    main()
