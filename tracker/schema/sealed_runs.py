"""Tables of sealed runs, whose scores and answers are in files outside the store."""

from datetime import datetime

from tracker.schema.table import BigInt, Double, Instant, Table, column, now


class SealedRun(Table, table=True):
    """A run whose scores and answers are in sealed files."""

    __tablename__ = "sealed_run"
    __table_args__ = ({"comment": "A run whose scores and answers are in Parquet files outside the store"},)
    run_id: int = column("the run", key=True, to="run.id", cascade=True)
    address: str = column("the folder of the files, or its address such as s3://bucket/folder")
    digest: str = column("SHA-256 of the manifest in the folder, which has the SHA-256 of the other files")
    checksum: str = column("run.checksum of the scores in the files")
    answer_checksum: str = column("checksum of the answers in the files; all zeros without any")
    n_answers: int = column("how many rows of answer are in the files", kind=BigInt)
    rows_in_store: bool = column("whether the rows are in score and answer as well, to be read")
    sealed: datetime = column("when it was sealed, UTC", kind=Instant, default_factory=now)


class SealedMetric(Table, table=True):
    """What the scores of a sealed run under a metric are, without reading its files."""

    __tablename__ = "sealed_metric"
    __table_args__ = ({"comment": "Number and mean of the scores of a sealed run under a metric"},)
    run_id: int = column("the run", key=True, to="run.id", cascade=True)
    metric_id: int = column("the metric", key=True, to="metric.id", cascade=True)
    n_scores: int = column("how many rows of score are in the files", kind=BigInt)
    mean: float = column("their mean, as avg(value) of the database", kind=Double)
