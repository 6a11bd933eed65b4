"""Maps of fields: from values to a picture, by a raster of our own.

Results that depend only on the grid and the view (the source values of each pixel, coastlines, graticule, frame) are
computed once and cached; a map is then a sparse gather, a color table and a few lines of text.
```text
  projection   places to pixels and back                     lines      coastlines, borders, lines of equal value
  sampling     which values of a grid a pixel is made of     styling    colors, color bars and units, by parameter
  seen         what of the globe is seen, on how many pixels lettering  text with exponents
  page         title, color bar, degrees around a map        words      the texts of a map
  picture      all of it; sheet: many beside one another
```
Only `isolines`, `ink`, `lettering`, `page`, `picture` and `sheet` need Pillow.
"""
