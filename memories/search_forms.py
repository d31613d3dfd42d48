"""The forms of the search statement, by how much there is to search."""

# Of so many memories every vector is compared, and of so many every word counted.
EXACT_UP_TO, ALL_WORDS_UP_TO = 2_000, 5_000

WHOLE, MIDDLE, SCOPED, LARGE, WIDE, HUGE = "whole", "middle", "scoped", "large", "wide", "huge"
