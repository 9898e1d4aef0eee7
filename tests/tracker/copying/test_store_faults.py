"""The check of a store that doctor, backups and merges share."""

from __future__ import annotations

import warnings

import sqlalchemy as sa

from tracker.copying.store_faults import find_store_faults


def test_the_transaction_goes_on_after_the_check_and_nothing_is_warned(filled: sa.Engine) -> None:
    with filled.connect() as connection, warnings.catch_warnings():
        warnings.simplefilter("error")
        faults = {fault.about for fault in find_store_faults(connection)}
        assert faults == {"scores"}, "the fixture stores scores without the checksums of their runs"
        assert connection.in_transaction()
        assert connection.scalar(sa.text("SELECT count(*) FROM benchmark")) == 1
