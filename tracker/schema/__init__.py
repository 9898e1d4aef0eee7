"""The tables, in the order data flows: catalogue, measurements, findings, views."""
