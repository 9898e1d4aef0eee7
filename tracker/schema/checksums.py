"""Table of the checksums of a store's content."""

from tracker.schema.table import BigInt, Table, column


class Checksum(Table, table=True):
    """The checksum of some rows of a table, as this program wrote them."""

    __table_args__ = (
        {
            "comment": "Checksums of what this program wrote; suffrage db check compares them",
            "sqlite_with_rowid": False,
        },
    )
    table_name: str = column("the table of the rows", key=True)
    key: int = column("what the rows belong to, such as the key of their run or finding", kind=BigInt, key=True)
    high: int = column("sum of the first 64-bit hashes of the rows, modulo 2^64, signed", kind=BigInt)
    low: int = column("sum of the second 64-bit hashes", kind=BigInt)
