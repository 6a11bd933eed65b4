"""Maps of fields: from values to a picture, by a raster of our own.

What depends on the grid and the view alone (which values a pixel is made of, coastlines, graticule, frame) is worked
out once and kept; a map is then a sparse gather, a table of colours and a few lines of text.
```text
  projection   places to pixels and back                     colours    tables of colours, even to the eye
  sampling     which values of a grid a pixel is made of     scale      ends, ticks and units of a colour bar
  ink          lines drawn smoothly, kept as a mask          lettering  text with exponents
  coast        Natural Earth's coastlines                    seen       what of the globe is seen, on how many pixels
  picture      all of it; sheet: many beside one another
```
Only `ink`, `lettering`, `picture` and `sheet` need Pillow.
"""
