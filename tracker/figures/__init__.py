"""Figures: colours, axes and charts that the report, the analyses and Python share."""
