"""The mathematics the analyses share: pure functions on arrays."""
