"""Archives of a store: catalogue and measurements in one file, to be taken in again as they were."""
