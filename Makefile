# make figures [PROFILE=smoke|laptop|desk|paper] [CLAIMS=...] [EXECUTOR=slurm] | test | coverage | site | lab | outputs |
#      bench | lint | clean
# An active conda or virtual environment that has this checkout installed is used as it is; otherwise .venv is made.

PROFILE ?= smoke
EXECUTOR ?= local
BASE_PYTHON ?= $(shell command -v python3.11 || command -v python3)
ACTIVE := $(shell if [ -n "$$VIRTUAL_ENV$$CONDA_PREFIX" ]; then python -c "import ledger.paths, sys; \
	print(sys.executable if str(ledger.paths.ROOT) == '$(CURDIR)' else '')" 2>/dev/null; fi)
PYTHON := $(or $(ACTIVE),$(CURDIR)/.venv/bin/python)
READY := $(if $(ACTIVE),,.venv/ready)

.PHONY: figures test coverage site lab outputs bench bench-jax lint clean

# CLAIMS: only these; ARGS: for Snakemake, such as --default-resources slurm_partition=gpu slurm_account=me.
figures: $(READY)
	@"$(PYTHON)" -m ledger.cli figures --profile $(PROFILE) $(addprefix --claim ,$(CLAIMS)) -- \
		--executor $(EXECUTOR) $(ARGS)

# One thread per test process: two side by side on shared cores otherwise wait for each other. Three processes for two
# cores: one of them mostly waits for the scheduler's jobs. A process with nothing left takes tests from the end of
# another's. Notebooks are compared with their stored outputs, and write
# their records aside: two_runs.py compares those with `make figures`.
test: export OMP_NUM_THREADS = 1
test: $(READY)
	"$(PYTHON)" -m pytest tests -n 3 --dist worksteal
	rm -rf logs/nbval
	OVERPARAM_FIGURES="$(CURDIR)/logs/nbval" "$(PYTHON)" -m pytest --nbval notebooks \
		-n 2 --dist loadfile --nbval-kernel-name python3 --nbval-cell-timeout 120 -p no:cacheprovider
	"$(PYTHON)" -m pytest tests/determinism/two_runs.py -q

# Lines and branches of lib/ that the tests and all notebooks run, together.
coverage: export COVERAGE_PROCESS_START = $(CURDIR)/pyproject.toml
coverage: export COVERAGE_FILE = $(CURDIR)/logs/coverage/data
coverage: $(READY)
	rm -rf logs/coverage && mkdir -p logs/coverage
	$(MAKE) test
	"$(PYTHON)" -m coverage combine --quiet && "$(PYTHON)" -m coverage report

# The notebooks, verdicts and reference as pages, from the committed records; site/_build/html/index.html is the first.
site: $(READY)
	@"$(PYTHON)" -m ledger.cli site

# Copies of the notebooks in lab/, which is nobody's but the user's: nothing else writes to what was edited there.
lab: $(READY)
	@"$(PYTHON)" -m ledger.cli lab $(ARGS)

# Run the notebooks in place at smoke size, to renew the outputs that are committed with them.
outputs: $(READY)
	"$(PYTHON)" -m ledger.cli outputs

# Hot paths against their peers, on a quiet machine, into benchmarks/results/; the peer neural-tangents needs an environment of its own.
bench: $(READY)
	for script in curvature empirical_ntk gpu imports kernels notebooks sweep two_layer; do \
		OMP_NUM_THREADS=1 "$(PYTHON)" benchmarks/$$script.py || exit 1; done

bench-jax:
	"$(BASE_PYTHON)" -m venv --clear benchmarks/.jax
	benchmarks/.jax/bin/python -m pip install --quiet jax==0.4.25 jaxlib==0.4.25 "numpy<2" "scipy<1.14" \
		neural-tangents==0.6.5

lint: $(READY)
	"$(PYTHON)" -m ruff check . && "$(PYTHON)" -m ruff format --check .

clean:
	rm -rf figures/smoke figures/custom logs .snakemake site/_build

# A .venv that came here with a copy of the checkout runs the code of the original, and is made anew.
ifneq ($(shell cat .venv/ready 2>/dev/null),$(CURDIR))
.PHONY: .venv/ready
endif
.venv/ready: requirements.lock pyproject.toml
	"$(BASE_PYTHON)" -m venv --clear .venv
	.venv/bin/python -m pip install --quiet -r requirements.lock
	.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@echo "$(CURDIR)" > $@
