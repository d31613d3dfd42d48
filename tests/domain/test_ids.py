from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memoryconsole.ids import first_id_at, parse_id, time_of, uuid7, uuid7_at

MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def test_ids_are_version_7_and_grow() -> None:
    ids = [uuid7() for _ in range(5000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 5000
    assert {(id.version, id.variant) for id in ids} == {(7, "specified in RFC 4122")}


def test_an_id_knows_its_time() -> None:
    assert abs(time_of(uuid7()) - datetime.now(UTC)) < timedelta(seconds=5)


@given(MOMENTS, MOMENTS)
def test_ids_sort_like_the_moments_they_are_made_for(a: datetime, b: datetime) -> None:
    if a != b:
        assert (uuid7_at(a) < uuid7_at(b)) == (a < b)


@given(MOMENTS)
def test_the_first_id_of_a_moment_is_between_those_made_then_and_before(moment: datetime) -> None:
    assert uuid7_at(moment - timedelta(microseconds=1)) < first_id_at(moment) <= uuid7_at(moment)


def test_what_is_no_id_is_none() -> None:
    assert parse_id("nonsense") is None
    assert parse_id(None) is None
    assert parse_id("\x00") is None
    id = uuid7()
    assert parse_id(str(id)) == id
