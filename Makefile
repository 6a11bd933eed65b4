# What one does with this repository. `make` alone lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
export VIRTUAL_ENV := $(VENV)
export PYO3_PYTHON := $(PY)
# Without it the extension would be linked against the library of one Python.
export PYO3_BUILD_EXTENSION_MODULE := 1
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export JUNCTURA_CACHE ?= $(CURDIR)/.tools/cache
# The cargo profile of what is built: `quick`, `release`, or `ci`, with which the suites share their crates.
PROFILE = $(or $(JUNCTURA_PROFILE),quick)
bench install-c soak wheel: PROFILE = $(or $(JUNCTURA_PROFILE),release)
PATH_BEFORE := $(PATH)
export PATH = $(VENV)/bin:$(CARGO_TARGET_DIR)/$(PROFILE):$(PATH_BEFORE)

# Parts of the house; what is not built yet is left out.
CLI := $(wildcard crates/junctura-cli/Cargo.toml)
PYTHON_CRATE := $(wildcard crates/junctura-python/Cargo.toml)
BENCHES := handover subscriptions pairs list looking bundles spill stuck hostile hostile_turns network python_speed python_store store store_scale store_packing store_commits store_load arrays products_transforms products_packing products products_wall products_files fields workflow simulations meshes intercept
SCRIPTS := $(shell find .ci c tools fuzz tests benches examples -type f \( -name '*.sh' -o -path .ci/run \) -not -path '*/target/*' 2>/dev/null)
# Each folder is type-checked by itself, since scripts of different folders may share names; in tests types are optional.
TYPED := $(if $(PYTHON_CRATE),$(wildcard python/junctura) $(patsubst %/,%/*.py,$(sort $(dir $(wildcard examples/*/*.py examples/story/*/*.py benches/*.py tools/*.py fortran/*.py crates/junctura-load/src/*/*.py tests/python/user/*.py)))))
TESTS := $(patsubst %/,%/*.py,$(sort $(dir $(wildcard tests/*.py tests/*/*.py))))
LAX := --allow-untyped-defs --allow-incomplete-defs --allow-untyped-calls --allow-any-generics --no-check-untyped-defs
# The Python extension is tested from Python; it does not link into a test program of Rust's.
TESTED := --workspace $(if $(PYTHON_CRATE),--exclude junctura-python)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: setup
setup: ## install what a build uses and is missing: a C compiler, crates, a small .venv
	@tools/setup.sh build

.PHONY: setup-dev
setup-dev: ## install what tests, linters, documentation and benchmarks use: Slurm, Chromium, 2.5 GiB of Python packages
	@tools/setup.sh dev

.PHONY: servers
servers:
	@tools/setup.sh servers

.PHONY: build
build: setup compile ## the command `junctura`, and the Python package into .venv

.PHONY: compile
compile:
ifneq ($(CLI),)
	@echo "build: junctura, and the Python package into .venv ($(PROFILE))"
	@cargo build --profile $(PROFILE) -p junctura-cli $(if $(PYTHON_CRATE),-p junctura-python)
endif
ifneq ($(PYTHON_CRATE),)
	@$(PY) tools/develop.py $(PROFILE)
endif
	@du -sk $(CARGO_TARGET_DIR) $(VENV) | awk '{ used[NR] = $$1 / 1048576 } \
	END { printf "build: disk used: target %.1f GiB, .venv %.1f GiB\n", used[1], used[2] }'

.PHONY: wheel
wheel: setup ## the wheel for pip, for CPython 3.11 and later, into dist; PYTHON=python3.10: the one for CPython 3.10
	@echo "wheel: Python package ($(PROFILE))"
	@# Suites use the library that `build-ci` has made: alone it would be compiled with other features.
	@[ $(PROFILE) = ci -a -e $(CARGO_TARGET_DIR)/ci/libjunctura_c.so ] || cargo build --profile $(PROFILE) -p junctura-c
	@rm -rf python/junctura/_c && tools/install_c.sh python/junctura/_c $(CARGO_TARGET_DIR)/$(PROFILE) relocatable
	@maturin build --profile $(PROFILE) --quiet --interpreter $(or $(PYTHON),$(PY)) --out $(or $(DIST),dist)
	@ls -t $(or $(DIST),dist)/junctura-*.whl | head -n 1 | sed 's/^/wheel: pip install /'

.PHONY: install-c
install-c: ## the C library, headers of C and C++, the Fortran module, files of pkg-config and CMake, the Catalyst implementation: make install-c PREFIX=$HOME/.local
	@[ -n "$(PREFIX)" ] || { echo "install-c: PREFIX is missing: make install-c PREFIX=\$$HOME/.local" >&2; exit 2; }
	@cargo build --profile $(PROFILE) -p junctura-c
	@tools/install_c.sh "$(PREFIX)" $(CARGO_TARGET_DIR)/$(PROFILE)
	@echo "install-c: gcc program.c \$$(PKG_CONFIG_PATH=$(PREFIX)/lib/pkgconfig pkg-config --cflags --libs junctura)"

.PHONY: header
header: setup-dev ## c/include/junctura.h, from the crate junctura-c
	@.tools/bin/cbindgen --quiet --config crates/junctura-c/cbindgen.toml --output c/include/junctura.h crates/junctura-c

.PHONY: fortran
fortran: ## fortran/junctura.f90, from fortran/parts and the header of C
	@python3 fortran/generate.py

.PHONY: check
check: setup-dev ## what one runs every few minutes: format, clippy, unit tests
	@echo "check: format"
	@cargo fmt --all --check
	@echo "check: clippy"
	@cargo clippy --quiet --profile ci --workspace --all-targets -- -D warnings
	@echo "check: unit tests"
	@cargo test --quiet --profile ci --workspace --lib --bins

.PHONY: lint
lint: setup-dev ## formatters, clippy, types, shell scripts, architecture
	@echo "lint: cargo fmt"
	@cargo fmt --all --check
	@cargo fmt --manifest-path fuzz/libfuzzer/Cargo.toml --check
	@cargo fmt --manifest-path benches/rivals/Cargo.toml --check
	@echo "lint: cargo clippy"
	@cargo clippy --profile ci --workspace --all-targets -- -D warnings
	@echo "lint: ruff"
	@ruff check --quiet .
	@ruff format --quiet --check .
	@echo "lint: mypy"
	@# Programs and tests at a time, each with what it remembers; the shell names the files of a folder when it is checked.
	@status=0; set -f; (for part in $(TYPED); do set +f; MYPYPATH=python:tests/link:tests/store \
	mypy --no-error-summary --cache-dir .mypy_cache/programs $$part || exit; done) & \
	(for part in $(TESTS); do set +f; MYPYPATH=python:tests:tests/c:tests/catalyst:tests/meshes:tests/e2e:tests/fdb:tests/link:tests/products:tests/python:tests/storm \
	mypy --no-error-summary --cache-dir .mypy_cache/tests $(LAX) $$part || exit; done) || status=$$?; wait $$! && exit $$status
	@if command -v shellcheck >/dev/null; then echo "lint: shellcheck"; shellcheck $(SCRIPTS); \
	else echo "lint: shellcheck is not here, shell scripts left out"; fi
	@cargo xtask tidy

.PHONY: compile-ci
compile-ci:
	@mkdir -p $(CARGO_TARGET_DIR)/ci
	@RUSTC_WRAPPER=$(CURDIR)/tools/rustc_tests.sh cargo build --profile ci --workspace --all-targets --message-format=json-render-diagnostics >$(CARGO_TARGET_DIR)/ci/built.json

.PHONY: build-ci
build-ci: compile-ci ## what tests run: all of it in the profile `ci`, and the Python package from it in .venv
	@tools/build_intercept.sh $(CARGO_TARGET_DIR)/ci strict
	@$(PY) tools/develop.py ci

.PHONY: reference
reference: ## the Rust reference; broken links and missing pages are errors
	@RUSTDOCFLAGS="-D warnings" cargo doc --profile ci --no-deps $(TESTED) --lib --features junctura/tokio

.PHONY: test
# In CI the suite `setup` installs the rest while Rust is compiled. It has no terminal on which sudo could ask for a password.
test: $(if $(CI),setup,setup-dev) ## everything that can fail: lint, all suites, the README; a table at the end
	@$(PY) tests/run.py

.PHONY: demo
demo: setup ## six members of a real forecast, and 21 products of their fields while they run; pictures in demo-out
	@# Python packages are downloaded while crates compile.
	@tools/setup.sh demo & packages=$$!; trap "kill $$packages 2>/dev/null || true" EXIT; $(MAKE) compile; wait $$packages
	@$(PY) examples/12_products/demo.py --out demo-out

.PHONY: figures
figures: setup-dev ## the figures that are made by computing for minutes: vorticity of the jet at T170, 30 maps; in figures
	@$(PY) tools/map_figures.py --out figures
	@OMP_NUM_THREADS=1 $(PY) examples/11_swell/figures.py --out figures

.PHONY: pictures
pictures: setup-dev compile ## the pictures of the guide that programs draw: maps, layouts, a timeline; in docs/pictures
	@$(PY) tools/guide_pictures.py

.PHONY: bench
bench: setup-dev servers build ## every benchmark, beside its rivals; figures in bench-out
	@benches/setup.sh
	@status=0; for bench in $(BENCHES); do echo "bench: $$bench"; \
	$(PY) benches/$$bench.py --out bench-out $(if $(QUICK),--quick) || status=1; done; \
	$(PY) benches/report.py --out bench-out >bench-out/report.md; echo "bench: bench-out/report.md"; exit $$status

.PHONY: flaky
flaky: ## a suite 20 times beside busy loops: make flaky SUITE=python TIMES=20
	@$(PY) tests/flaky.py $(SUITE) $(TIMES)

.PHONY: soak
soak: setup-dev servers build ## the long runs: tests named soak_*, every message of real files, ten minutes of storms (processes are killed, and servers), 200 runs of workflows in which a task comes to harm, five minutes of fuzzing a target
	@echo "soak: tests named soak_*"
	@JUNCTURA_SEEDS=all cargo test --release $(TESTED) --lib --bins --tests -- --ignored soak_
	@echo "soak: every message of the real files, into every format"
	@JUNCTURA_FILES=all $(PY) -m pytest -q tests/products/test_real_outputs.py tests/products/test_real_operations.py
	@echo "soak: processes, over TCP"
	@JUNCTURA_TEST_DETOUR=tcp $(PY) -m pytest -q tests/e2e tests/python
	@echo "soak: storms, with fresh seeds"
	@$(PY) tests/storm/soak.py
	@echo "soak: a million random calls of the C library"
	@cargo build --profile ci -p junctura-cli -p junctura-c
	@JUNCTURA_C_CALLS=1000000 $(PY) -m pytest -q --timeout 1800 tests/c -k 'random_calls_return or in_random_calls'
	@tools/asan_c.sh
	@echo "soak: runs of workflows, with fresh seeds"
	@$(PY) tests/workflow/run_storm.py --first $$(date +%s)
	@fuzz/run.sh 300

.PHONY: fuzz
fuzz: setup-dev ## fuzz each target for SECONDS (default 60)
	@fuzz/run.sh $(or $(SECONDS),60)

.PHONY: docs
docs: setup-dev compile ## the site: guide, reference of Python and of Rust; broken links are errors
	@echo "docs: site"
	@$(PY) tools/comparison.py --check
	@$(PY) -m sphinx -q -n -W --keep-going -d $(CARGO_TARGET_DIR)/site -b html docs site
	@echo "docs: cargo doc"
	@RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps $(TESTED) --features junctura/tokio
	@rm -rf site/rust && cp -r $(CARGO_TARGET_DIR)/doc site/rust
	@echo "docs: site/index.html"

.PHONY: clean
clean: ## remove what was built (not .venv, not .tools)
	@echo "clean: target dist demo-out bench-out figures site"
	@rm -rf target dist demo-out bench-out figures site
