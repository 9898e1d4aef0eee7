"""Results in notebooks: as data frames, as HTML, as figures."""
