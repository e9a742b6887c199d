# The commands of the project. Each line also works in a shell without `just`; only `uv` is needed.

# List the recipes
[private]
default:
    @just --list --unsorted

# Start the whole stack, embedded where no server is configured
up *arguments:
    uv run mnemon up {{ arguments }}

# Run the demo, in half a minute
demo *arguments:
    uv run mnemon demo {{ arguments }}

# Run the tests, without the long ones
test *arguments:
    uv run pytest {{ arguments }}

# Run all tests, with kills, full disks, clusters, browsers and benches
test-all *arguments:
    uv run pytest -m 'long or not long' {{ arguments }}

# Kill processes at random under load: --kills 200 --seed 1
chaos *arguments:
    uv run python -m tests.support.chaos.run {{ arguments }}

# Send the gateway drawn requests: so many for each operation, besides those at the bounds of each field; a seed
fuzz-gateway cases="100" seed="0":
    GATEWAY_CASES={{ cases }} GATEWAY_SEED={{ seed }} uv run pytest -n 0 -m long tests/e2e/clients/test_gateway_document.py

# Check the code with ruff
lint:
    uv run ruff check
    uv run ruff format --check

# Apply the fixes of ruff: imports, format, and more
fix:
    uv run ruff check --fix
    uv run ruff format

# Check all types
types:
    uv run mypy

# Check that imports run one way
imports:
    uv run lint-imports

# Write schemas, AsyncAPI, OpenAPI, docs/contracts.md and docs/settings.md from the contracts
contracts:
    uv run python -m mnemon_contracts.export
    uv run python -m mnemon.gateway.openapi

# Write the TypeScript client's types from the contracts, and test it; needs Node and npm
typescript:
    npm --prefix producers/typescript ci
    npm --prefix producers/typescript run generate
    npm --prefix producers/typescript test

# Bring the configured database to the newest revision
migrate *arguments:
    uv run mnemon migrate {{ arguments }}

# Measure against a bare loop: publish, ingest, search, recall and others
bench *arguments:
    uv run mnemon bench {{ arguments }}

# Fit the weights of the ranking on folders of conversations with questions: DATA [DATA ...] --write
fit-ranking *arguments:
    uv run python -m mnemon_bench.quality.ranking_fit {{ arguments }}

# Fit the weights that tell answerable questions, on folders of conversations: DATA [DATA ...] --write
fit-answerability *arguments:
    uv run python -m mnemon_bench.quality.answerability_fit {{ arguments }}

# Measure recall of facts with and without links, on folders of conversations with questions: DATA [DATA ...]
measure-links *arguments:
    uv run python -m mnemon_bench.quality.link_recall {{ arguments }}

# Measure recall of facts, on the questions about invented users that mnemon contains
measure-facts:
    uv run python -m mnemon_bench.quality.fact_recall

# Measure recall of follow-up questions with and without the messages before them: [DATA ...]
measure-follow-ups *arguments:
    uv run python -m mnemon_bench.quality.follow_ups {{ arguments }}

# Account for every event of the log, and compare the database with it
audit *arguments:
    uv run mnemon audit {{ arguments }}

# Show streams, lag, versions and health of a deployment
status *arguments:
    uv run mnemon status {{ arguments }}

# Run all checks, as CI does, but install nothing
check:
    .ci/run --without-install
