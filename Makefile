# Everything that the project does, with nothing hidden behind it. `make help` lists it.
# Needs Python >= 3.11 with venv, make and a C++20 compiler; everything else comes into .venv from PyPI.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PIP_INSTALL := $(PIP) install --quiet
# The build sees the tools of .venv and the user's compiler, not the one that Python was built with.
BUILD_ENVIRONMENT = PATH="$(CURDIR)/$(BIN):$$PATH" \
  CXX="$${CXX:-$$(command -v c++ || command -v g++ || command -v clang++)}"

NATIVE_SOURCES := $(wildcard emulator/native/*) $(wildcard emulator/native/*/*) emulator/probes.py emulator/op_classes.py
CXX_FILES := $(wildcard emulator/native/*.cpp emulator/native/*.hpp emulator/native/*/*.cpp emulator/native/*/*.hpp)
C_FILES := $(wildcard guest_programs/*/*.c guest_programs/include/*.[ch] tests/qemu_plugin/*.c tests/conformance/*.c \
  tests/conformance/perf_event/*.[ch] tests/conformance/perf_event/*/*.c tests/instructions/runner/*.[ch] tests/scale/*.c)

.PHONY: help demo test lint format guests golden additions bench corpus fuzz instructions kernels units silicon wheel venv clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*##  *\(.*\)/\1\t\2/p' Makefile | expand -t 12

# --- the virtual environment, in three steps; each leaves a stamp ---

$(VENV)/.tools: pyproject.toml .ci/requirements.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11: use make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; p = sysconfig.get_path("include"); \
	  sys.exit(None if os.path.exists(p + "/Python.h") else f"{p}/Python.h is missing: install python3-dev")'
	@[ -n "$${CXX:-$$(command -v c++ || command -v g++ || command -v clang++)}" ] \
	  || { echo "no C++ compiler: install g++ or clang++" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python .ci/requirements.py build > $(VENV)/build.txt
	$(PIP_INSTALL) -r $(VENV)/build.txt
	@# now the backend can name cmake and ninja, if they are missing
	$(BIN)/python .ci/requirements.py build > $(VENV)/build.txt
	$(BIN)/python .ci/requirements.py run > $(VENV)/run.txt
	$(PIP_INSTALL) -r $(VENV)/build.txt -r $(VENV)/run.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(NATIVE_SOURCES)
	$(BUILD_ENVIRONMENT) $(PIP_INSTALL) --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.tools
	$(BIN)/python .ci/requirements.py dev > $(VENV)/dev.txt
	$(PIP_INSTALL) -r $(VENV)/dev.txt
	@touch $@

venv: $(VENV)/.installed $(VENV)/.dev  ## build and install into .venv

# --- what it is for ---

DEMO := compression

demo: $(VENV)/.installed  ## count and profile a bundled program on both ISAs
	@mkdir -p build/demo
	$(BIN)/perfemu stat guest_programs/$(DEMO)/aarch64.elf
	$(BIN)/perfemu record -g -c 10000 -o build/demo/aarch64.data guest_programs/$(DEMO)/aarch64.elf
	$(BIN)/perfemu report --stdio -g none -i build/demo/aarch64.data
	$(BIN)/perfemu stat guest_programs/$(DEMO)/x86_64.elf
	$(BIN)/perfemu record -g -c 10000 -o build/demo/x86_64.data guest_programs/$(DEMO)/x86_64.elf
	$(BIN)/perfemu report --stdio -g none -i build/demo/x86_64.data
	@echo 'The profiles are in build/demo: perfemu report -i FILE shows call chains; perf report -i FILE reads them, too.'

PROCESSES := logical

test: venv  ## build, run the tests, on all processors (PROCESSES=N: N at once), lint
	@# files in their order: those of tests/unit, which are short, last
	@# also where PYTHONDONTWRITEBYTECODE is set: else each command that a test runs compiles what it imports
	$(BIN)/python -m compileall -q emulator pmu perfcore perfemu
	$(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder
	$(MAKE) lint

lint: $(VENV)/.dev $(VENV)/.installed  ## ruff, mypy --strict, the import contract, C++ format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES) $(C_FILES)

format: $(VENV)/.dev  ## let the formatters rewrite what lint complains of
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES) $(C_FILES)

guests: $(VENV)/.tools  ## rebuild the guest programs (cross compilers needed) and compare with the hashes
	$(BIN)/python guest_programs/build.py

golden: venv  ## rewrite the golden files; read the diff
	REWRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden

bench: venv  ## speed, as ratios within one run
	$(BIN)/python tests/bench

corpus: venv  ## all of the real programs in tests/corpus, also those that are too slow for every test run
	CORPUS=all $(BIN)/python -m pytest tests/corpus tests/conformance/test_accesses.py tests/conformance/test_postgresql.py \
	  tests/conformance/test_programs.py

additions: venv  ## what CONTRIBUTING.md says is added in one file, added; with the native half built anew
	ADDITIONS=all $(BIN)/python -m pytest tests/unit/contributing/test_additions.py

SECONDS := 600

fuzz: venv  ## random system calls, uses of perf events and BPF, bare-metal images, accesses to devices, then changed checkpoints, each for SECONDS (it says how to repeat what it finds)
	$(BIN)/python tests/fuzz $(SECONDS)
	$(BIN)/python tests/fuzz $(SECONDS) --perf
	$(BIN)/python tests/fuzz $(SECONDS) --boards
	$(BIN)/python tests/fuzz $(SECONDS) --devices
	$(BIN)/python tests/fuzz $(SECONDS) --checkpoints

kernels: venv  ## Debian's kernels on the boards, and other long proofs: what every test run leaves out
	KERNELS=all $(BIN)/python -m pytest tests/end_to_end/test_activity_monitors.py tests/end_to_end/test_board_kernels.py \
		tests/end_to_end/test_board_pc_kernels.py tests/end_to_end/test_board_spe.py \
		tests/end_to_end/test_board_branches.py tests/end_to_end/test_board_debug_store.py \
		tests/end_to_end/test_board_ibs.py tests/end_to_end/test_board_intel_pt.py \
		tests/end_to_end/test_guest_linux.py \
		tests/end_to_end/test_linux_command.py tests/end_to_end/test_linux_command_pc.py \
		tests/interop/test_perf_on_a_board.py tests/interop/test_perf_on_a_pc.py \
		tests/interop/test_perf_test_on_a_board.py tests/interop/test_perf_in_virtual_machines.py \
		tests/interop/test_bolt_reads_branches.py \
		tests/interop/test_autofdo_reads_branches.py tests/counts/test_go_call_stacks.py \
		tests/unit/board/test_host_memory.py \
		tests/conformance/test_perf_event.py tests/conformance/test_bpf.py tests/conformance/test_perf_calls.py \
		tests/conformance/test_rr.py tests/conformance/test_perf_test_as_guest.py \
		tests/conformance/test_perf_commands_as_guest.py tests/counts/test_multiplexing.py

units: venv  ## traces and samples of whole programs, each against all that has retired: hours
	UNITS=all $(BIN)/python -m pytest -s tests/scale

INPUTS := 20000

instructions: venv  ## every instruction form on INPUTS inputs each, against this processor and QEMU
	INSTRUCTION_INPUTS=$(INPUTS) $(BIN)/python -m pytest tests/instructions

CORE :=

silicon: venv  ## time loops on this x86-64 host and on our core for it (CORE=NAME: on that one)
	$(BIN)/python -m tests.silicon $(CORE)

wheel: $(VENV)/.tools  ## build a wheel into dist/
	$(BUILD_ENVIRONMENT) $(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .

clean:  ## remove what was built, .venv included
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
