"""The forms of the search statement, by how much there is to search."""

# Of so many memories every vector is compared, and of so many every word counted.
EXACT_UP_TO, ALL_WORDS_UP_TO = 2_000, 5_000

# Small, in between and large; and where filters leave few of them, some, or many.
WHOLE, MIDDLE, LARGE = "whole", "middle", "large"
SCOPED, SOME, WIDE = "scoped", "some", "wide"
