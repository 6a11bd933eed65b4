"""Appearance of maps: colors, color bars and units, by parameter.

```text
  colours      tables of colours, even to the eye            styles     the table `styles.yaml` and a user's own
  scale        a color bar: places of values, ticks, units   looks      the style of one field, as a recipe has it
  themes       colors of the page: dark, light               ranges     which recipes have one range of colors
```
"""
