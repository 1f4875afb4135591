# Pomona: every command a developer needs. `make setup` is idempotent; the others call it.

PYTEST_ARGS ?=
BIN := .venv/bin

.PHONY: help setup demo test matrix matrix-types matrix-workers faults bench lint format lock app app-mac clean

help:
	@echo "make demo     three virtual nodes on this machine, the demo model, the window"
	@echo "make test     lint, types, every test (headless); PYTEST_ARGS='-k split' picks some"
	@echo "make matrix   every model type of mlx-lm in stages, against the whole model; writes docs/support-matrix.md"
	@echo "make faults   everything that goes wrong, done to real workers; prints a table of what was noticed when"
	@echo "make bench    planning and its truth, the API and the token loop beside mlx-lm; BENCH_ARGS='--rounds 5 --only demo 8' picks some"
	@echo "make app      the self-contained app for this kind of machine, into dist, and a try of it"
	@echo "make app-mac  the light app for Macs, into dist/light; builds on any machine"
	@echo "make lint     ruff and mypy alone"
	@echo "make format   lets ruff sort imports and lay out the code"
	@echo "make setup    installs what the lock names into .venv (PYTHON=... picks the Python)"
	@echo "make lock     renews the locks (LOCK_ARGS=--upgrade for newer versions)"
	@echo "make clean    removes what the others made in this folder"

setup:
	@sh packaging/bootstrap.sh setup

demo: setup
	@$(BIN)/pomona demo

# Two files of tests at a time: most tests wait for processes that start.
test: lint
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -n 2 --dist loadfile $(PYTEST_ARGS)

# Two halves side by side, because most of a test is one process that computes or waits. The first writes the page.
matrix: setup
	@$(MAKE) -j2 --no-print-directory matrix-types matrix-workers

matrix-types:
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -m matrix tests/matrix $(PYTEST_ARGS)

matrix-workers:
	@sh packaging/bootstrap.sh clients
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -m matrix --ignore tests/matrix $(PYTEST_ARGS)

faults: setup
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -m "matrix or not matrix" tests/faults $(PYTEST_ARGS)

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m tests.bench.planning
	$(BIN)/python -m tests.bench.truth
	$(BIN)/python -m tests.bench.layout
	$(BIN)/python -m tests.bench.live_updates
	$(BIN)/python -m tests.bench.peer_copy
	$(BIN)/python -m tests.bench.loop
	$(BIN)/python -m tests.bench.over_http
	$(BIN)/python -m tests.bench $(BENCH_ARGS)

format: setup
	$(BIN)/ruff check --fix --select I,RUF022
	$(BIN)/ruff format

lock:
	@sh packaging/bootstrap.sh lock $(LOCK_ARGS)

app: setup
	@sh packaging/bootstrap.sh app
	@$(BIN)/python packaging/try_app.py

app-mac:
	@sh packaging/bootstrap.sh app-mac

clean:
	rm -rf .venv .tools .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
