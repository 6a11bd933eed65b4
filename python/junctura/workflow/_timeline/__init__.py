"""A run as one picture on a self-contained page: no requests, no scripts.

`clock` maps time to the page, `folding` assigns its height to tasks, `canvas` writes SVG, `drawing` draws, `page`
combines picture, chain and table. Names and values are untrusted: all text is escaped by `canvas.escape`, and the
page's Content-Security-Policy, which allows one style by its hash, blocks everything else.
"""
