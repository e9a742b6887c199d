"""Query part that lists tenants."""

from collections.abc import Callable

from sqlalchemy import CTE, ColumnElement, FromClause, select, true


def select_tenants(
    table: FromClause, is_wanted: Callable[[FromClause], ColumnElement[bool]] = lambda _: true()
) -> CTE:
    """Select the tenants that have a row for which `is_wanted` is true, with one index lookup for each."""
    others = table.alias("others")
    first = select(table.c.tenant).where(is_wanted(table)).order_by(table.c.tenant).limit(1)
    tenants = first.cte("tenants", recursive=True)
    following = (
        select(others.c.tenant)
        .where(is_wanted(others), others.c.tenant > tenants.c.tenant)
        .order_by(others.c.tenant)
        .limit(1)
        .lateral("following")
    )
    return tenants.union_all(select(following.c.tenant).select_from(tenants.join(following, true())))
