"""Recipes: read, validated, and expanded into the products that they define."""
