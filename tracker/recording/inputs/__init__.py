"""The inputs of an analysis: choices made before they load, and loading."""
