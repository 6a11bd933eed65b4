"""What broker and workers exchange: tasks, answers, and arrays in the broker's pool."""
