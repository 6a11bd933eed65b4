"""Maps of fields: from values to a picture, by a raster of our own.

Results that depend only on the grid and the view (the source values of each pixel, coastlines, graticule, frame) are
computed once and cached; a map is then a sparse gather, a color table and a few lines of text.
```text
  projection   places to pixels and back                     colours    tables of colours, even to the eye
  sampling     which values of a grid a pixel is made of     scale      a color bar: places of values, ticks, units
  ink          lines drawn smoothly, kept as a mask          lettering  text with exponents
  coast        Natural Earth's coastlines and borders        seen       what of the globe is seen, on how many pixels
  isolines     lines of equal value, and their labels        themes     colors of the page: dark, light
  styles       the table `styles.yaml` and a user's own      looks      the style of one field, as a recipe has it
  page         title, color bar, degrees around a map        ranges     which recipes have one range of colors
  picture      all of it; sheet: many beside one another
```
Only `ink`, `isolines`, `lettering`, `page`, `picture` and `sheet` need Pillow.
"""
