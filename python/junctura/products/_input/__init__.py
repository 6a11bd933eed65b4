"""The inputs of products: queries of the pool, decoded fields, and detection of missing inputs."""
