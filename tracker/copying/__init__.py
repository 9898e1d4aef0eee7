"""Copy a store into another one: any pair of engines, verified row by row."""
