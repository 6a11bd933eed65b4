"""Lines on maps: coastlines, borders, lines of equal value, and the pixels that they touch.

```text
  coast        Natural Earth's coastlines and borders
  isolines     lines of equal value, and their labels
  ink          lines drawn smoothly, kept as a mask
```
"""
