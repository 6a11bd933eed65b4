"""Arrays as payloads: in NumPy, in chunks, and exchanged step by step."""
