"""Numbers with their units in sentences."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 memory` and `4,429 memories`; without `many` the plural has an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size_of(number: int) -> str:
    """`10 MB`; in bytes if it is not a whole number of a larger unit."""
    for unit, power in (("GB", 30), ("MB", 20), ("kB", 10)):
        if number and number % 2**power == 0:
            return f"{number >> power:,} {unit}"
    return counted(number, "byte")
