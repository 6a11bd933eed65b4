//! What objects mean: attributes, schemas, keys, selectors, versions, errors, and the indexes over them.
