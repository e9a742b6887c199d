"""Message for a tenant that is out of budget."""

import typer


def show_out_of_budget(tenant: str, usd: float, usd_per_day: float) -> None:
    """Show that a tenant has spent its budget of the day, in US dollars."""
    spent = f"{usd:,.4f} US$ of {usd_per_day:,g} spent today"
    typer.secho(f"out of budget {tenant}: {spent}; background work waits until tomorrow (UTC)", fg="yellow")
