# Builds, tests and benchmarks this checkout. `make` alone lists the targets. CARGO_TARGET_DIR sets the build directory.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# One target runs at a time: cargo and vite use all cores themselves, and a cheap check should fail before an expensive
# check starts.
.NOTPARALLEL:
.PHONY: help setup demo build deb release wheel web book check test test-long lint bench bench-monitor bench-calibration bench-accuracy bench-planner bench-accesslog bench-server-module bench-fleet bench-router bench-compare bench-ab bench-history bench-contest bench-reliability test-safety fmt clean tools rules

# The directory into which rustup installs cargo, for shells that do not have it in PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
PAGE := web/dist/report.html
# One of the files that python/document_types.py generates. It stands for all of them.
DATACLASSES := python/brimful/documents/__init__.py
# npm writes this file when an installation is complete.
MODULES := web/node_modules/.package-lock.json
WEB_SOURCES := $(shell find web \( -name node_modules -o -name dist -o -name test -o -name documents \) -prune -o -type f -print)

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## Install the Debian packages for building and testing (scripts/setup.sh)
	scripts/setup.sh test
	@test ! -t 1 || test -e .git/hooks/commit-msg || echo "To check your commit messages: ln -s ../../scripts/commit-msg .git/hooks/"

demo: tools $(PAGE) ## Build brimful quickly and survey the built-in reference server
	cargo build --locked --profile quick --package brimful-cli
	$(TARGET_DIR)/quick/brimful survey --demo

build: tools $(PAGE) ## Build the release binary
	cargo build --locked --release --package brimful-cli

deb: build ## Make a Debian package of the release build
	scripts/licences $(TARGET_DIR)/THIRD-PARTY.txt
	scripts/deb $(TARGET_DIR)/release/brimful $(TARGET_DIR)/THIRD-PARTY.txt $(TARGET_DIR)

release: ## Build all files of a release, for old systems too, reproducibly (scripts/release)
	scripts/release

wheel: $(PAGE) ## Make a wheel of the release build and the Python package (needs maturin)
	scripts/wheel --release --strip

web: $(PAGE) ## Build the report page, which the binary embeds

book: build ## Build the manual as a book, for reading without a network (needs mdbook)
	python3 scripts/book --brimful $(TARGET_DIR)/release/brimful --out $(TARGET_DIR)/book

check: lint ## Run the checks and the tests that need neither root nor servers (minutes after a build)
	cargo test --locked --workspace --lib --bins --exclude brimful-monitor --exclude brimful-testbed
	cargo test --locked --package brimful-report --package brimful-forecast --package brimful-stats --test it
	cd web && node --test test/schema.test.mjs

test: setup $(MODULES) $(PAGE) $(DATACLASSES) ## Run all checks and tests except the long ones, and list the failures
	scripts/test

test-long: setup $(PAGE) $(DATACLASSES) ## Run long tests: the wheel, fleets on Ray, short soaks, more random cases
	scripts/test-long

test-safety: setup $(PAGE) $(DATACLASSES) ## Test that results survive and other users cannot interfere (part of `make test`)
	cargo test --locked --workspace --test it safety::

lint: rules $(MODULES) $(PAGE) ## Check formatting, house rules, licences, types and clippy
	cd web && npm run check
	scripts/licences
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --offline --locked check bans licenses sources; \
	else echo "lint: SKIPPED: cargo deny (install it: cargo install --locked cargo-deny)"; fi
	cargo clippy --locked --workspace --all-targets -- -D warnings

bench: build ## Compare brimful with other load generators on this machine (bench/README.md)
	cargo build --locked --release --package brimful-bench-server
	python3 -m bench.side_by_side --build $(TARGET_DIR)/release $(BENCH)

bench-monitor: build ## Measure the cost of watching, compared with other monitors (bench/monitor/README.md)
	cargo build --locked --release --package brimful-bench-monitor
	python3 -m bench.monitor --build $(TARGET_DIR)/release $(BENCH)

bench-calibration: build ## Compare calibrated models with measurements (bench/calibration/README.md)
	python3 -m bench.calibration --build $(TARGET_DIR)/release $(BENCH)

bench-accuracy: build ## Survey servers of many kinds, and measure the prediction errors (bench/accuracy/README.md)
	python3 -m bench.accuracy --build $(TARGET_DIR)/release $(BENCH)

bench-planner: ## Time the planner's solvers and compare them with others (bench/planner/README.md)
	cargo build --locked --release --package brimful-bench-planner
	python3 -m bench.planner --build $(TARGET_DIR)/release $(BENCH)

bench-accesslog: build ## Time the reading of access logs, compared with GoAccess (bench/accesslog/README.md)
	cargo build --locked --release --package brimful-bench-accesslog
	python3 -m bench.accesslog --build $(TARGET_DIR)/release $(BENCH)

bench-server-module: build ## Measure the cost of the Server Module in nginx and Apache (bench/server_module/README.md)
	python3 -m bench.server_module --build $(TARGET_DIR)/release $(BENCH)

bench-fleet: build $(DATACLASSES) ## Measure the cost of a fleet, and how precisely its shards start (bench/fleet/README.md)
	python3 -m bench.fleet --build $(TARGET_DIR)/release $(BENCH)

bench-router: ## Measure the error of the test bed router's delays (bench/router/README.md)
	cargo build --locked --release --package brimful-bench-router
	$(TARGET_DIR)/release/brimful-bench-router $(BENCH)

bench-compare: ## Count the false alarms of compare on simulated pairs (bench/compare/README.md)
	cargo build --locked --release --package brimful-bench-compare
	$(TARGET_DIR)/release/brimful-bench-compare $(BENCH)

bench-ab: build ## Compare real servers that are equal, and others (bench/ab/README.md)
	python3 -m bench.ab --build $(TARGET_DIR)/release $(BENCH)

bench-history: build ## Compare the changes found by history with those of Apache Otava (bench/history/README.md)
	cargo build --locked --release --package brimful-stats --example change_points
	python3 -m bench.history --build $(TARGET_DIR)/release $(BENCH)

bench-contest: build ## Rank web frameworks by the cases of two public contests (bench/contest/README.md)
	python3 -m bench.contest --build $(TARGET_DIR)/release $(BENCH)

bench-reliability: build $(DATACLASSES) ## Run the long reliability tests (bench/reliability/README.md)
	bench/reliability/run $(TARGET_DIR)/release

tools:
	scripts/setup.sh build

rules:
	scripts/check-words
	scripts/check-unsafe
	scripts/check-dependencies
	scripts/check-circles
	cargo fmt --all --check

fmt: ## Format the Rust sources
	cargo fmt --all

clean: ## Delete everything that was built or downloaded into the checkout
	cargo clean
	rm -rf web/dist web/node_modules web/src/documents python/brimful/documents

# Source archives of a release contain the page. As long as it is newer than its sources, Node is not needed.
$(PAGE): $(WEB_SOURCES)
	$(MAKE) $(MODULES)
	cd web && npm run build
	touch $@

$(DATACLASSES): python/document_types.py $(wildcard schema/*.json)
	python3 python/document_types.py

$(MODULES): web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	touch $@
