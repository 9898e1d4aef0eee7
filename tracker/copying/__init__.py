"""From one store into another: any pair of engines, checked row by row."""
