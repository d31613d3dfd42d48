"""The forms of the search statement, named for how many memories they search."""

# Up to this many memories every vector is compared, and every occurrence of a word is counted.
EXACT_UP_TO, ALL_WORDS_UP_TO = 2_000, 5_000

# Without a filter: a small, a medium and a large instance. With one: it leaves few memories, some, or many.
WHOLE, MIDDLE, LARGE = "whole", "middle", "large"
SCOPED, SOME, WIDE = "scoped", "some", "wide"
