"""The inputs of products: queries of the pool, decoded fields, and what a run waits for."""
