"""A run as one picture: a page of its own, which asks nobody for anything and runs no script.

`clock` lays time along the page, `folding` says how tasks share its height, `canvas` writes SVG, `drawing` draws,
`page` puts picture, chain and table together. Names and values come from outside: all text goes through
`canvas.escape`, and the page forbids whatever might slip through (its Content-Security-Policy allows one style, by its
hash).
"""
