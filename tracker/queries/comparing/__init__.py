"""Load what comparisons of models need besides means: trials of prompts, and variances of differences."""
