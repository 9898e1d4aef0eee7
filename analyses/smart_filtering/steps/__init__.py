"""The steps of the filter, one module each; a module that defines `STEP` is a step."""
