"""A workflow's file: read, validated, and turned into tasks and their order."""
