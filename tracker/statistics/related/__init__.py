"""Related models: near-copies that share errors beyond abilities and difficulties, and families of models."""
