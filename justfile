# Every habit of the project. Without `just`, each line works when pasted: only `uv` is needed.

# List what there is
[private]
default:
    @just --list --unsorted

# Start the whole stack, embedded where no server is configured
up *arguments:
    uv run mnemon up {{ arguments }}

# Show what it does, in half a minute
demo *arguments:
    uv run mnemon demo {{ arguments }}

# Run the tests, without those of minutes
test *arguments:
    uv run pytest {{ arguments }}

# Run all tests, with kills, clusters and benches
test-all *arguments:
    uv run pytest -m 'long or not long' {{ arguments }}

# Kill everything at random while many users talk: --kills 200 --seed 1
chaos *arguments:
    uv run python -m tests.support.chaos.run {{ arguments }}

# Look for mistakes and untidy code
lint:
    uv run ruff check
    uv run ruff format --check

# Mend what ruff can mend: imports, format, and more
fix:
    uv run ruff check --fix
    uv run ruff format

# Check all types
types:
    uv run mypy

# Check that imports run one way
imports:
    uv run lint-imports

# Write schemas and the bot author's page anew from the contracts
contracts:
    uv run python -m mnemon_contracts.export

# Bring the configured database to the newest revision
migrate *arguments:
    uv run mnemon migrate {{ arguments }}

# Measure beside a bare loop, such as publish, ingest, search or recall
bench *arguments:
    uv run mnemon bench {{ arguments }}

# Account for every event of the log, and compare the database with it
audit *arguments:
    uv run mnemon audit {{ arguments }}

# Tell how a deployment is doing: streams, lag, versions, health
status *arguments:
    uv run mnemon status {{ arguments }}

# Run all checks, as CI does, but install nothing
check:
    .ci/run --without-install
