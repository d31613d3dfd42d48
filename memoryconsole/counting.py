"""Numbers of things in sentences."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 memory` and `4,429 memories`; without `many` the plural has an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
