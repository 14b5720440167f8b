# Two commands matter: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
UV := $(BIN)/python -m uv pip install --quiet --python $(BIN)/python --link-mode copy \
  --compile-bytecode
OUT ?= demo-out
PACKAGES := api common migrations service solver workers benchmarks deploy examples .ci
# of each fuzz; drawn anew each time. Each may take 2 s
EXAMPLES ?= 2000
FUZZ := tests/api/test_spec_fuzz.py tests/api/test_table_fuzz.py \
  tests/api/test_array_fuzz.py tests/solver/test_mesh_fuzz.py \
  tests/service/test_raw_fuzz.py
# all of them, also those that run with every other test, the soak at its full length
FAULTS := -m "" tests/faults tests/service/test_deployed.py \
  tests/workers/test_dask.py::test_child_dies_with_a_killed_worker

.PHONY: demo test serve lint bench faults fuzz kills scan test-dashboard test-pages \
  test-slow test-extras mutants coverage docs vendor setup system clean

# containers often set it; then each of some thousand processes compiles every module
demo test test-dashboard test-pages test-slow test-extras: export PYTHONDONTWRITEBYTECODE =

demo: setup
	$(BIN)/python examples/tohoku2011/demo.py --out $(OUT)

test: setup lint
	@# three processes on two cores: threads of BLAS would only wait for each other
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 3 --durations=10

serve: setup
	$(BIN)/afterslip serve

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml $(PACKAGES)

faults: setup
	@# the page follows the record also where a test has failed
	AFTERSLIP_FAULTS_JSON=benchmarks/faults-2core.json $(BIN)/pytest $(FAULTS); \
	  status=$$?; $(BIN)/python tests/faults/measured.py; exit $$status

# N processes are killed at random moments; SEED repeats a run
kills: setup
	AFTERSLIP_KILLS=$(or $(N),200) AFTERSLIP_KILLS_SEED=$(SEED) \
	  AFTERSLIP_KILLS_JSON=benchmarks/kills-2core.json \
	  $(BIN)/pytest -s -m faults tests/faults/test_kills.py; \
	  status=$$?; $(BIN)/python tests/faults/measured.py; exit $$status

fuzz: setup
	EXAMPLES=$(EXAMPLES) $(BIN)/pytest -o timeout=$$((300 + 2 * $(EXAMPLES))) $(FUZZ)
	$(BIN)/pytest -m slow tests/service/test_contract.py

bench: setup
	$(BIN)/afterslip bench service
	$(BIN)/afterslip bench curve

test-extras: setup
	$(BIN)/python .ci/extras.py

# db, engine, store or inversion; a sample of COUNT, or what MINUTES are enough for
mutants: setup
	$(BIN)/python .ci/mutants.py $(or $(PACKAGE),engine) --count $(or $(COUNT),100) \
	  --seed $(or $(SEED),1) --minutes $(or $(MINUTES),60) --floor $(or $(FLOOR),0)

# of all packages, or of PACKAGE; each takes longer than its tests
coverage: setup
	$(BIN)/python .ci/covered.py $(PACKAGE)

# the pages of docs/ as a site in build/site; a link that leads nowhere is an error
docs: setup
	$(BIN)/python .ci/reference.py build/reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m uv run --quiet --no-project --isolated \
	  --python $(BIN)/python --with-requirements .ci/site.lock mkdocs build --quiet
	@echo 'python -m http.server --bind 127.0.0.1 --directory build/site 8000'

scan: setup
	$(BIN)/python .ci/scan.py

# the page in a real browser, and a client in TypeScript
test-dashboard: setup
	$(BIN)/pytest -q -n 2 --dist loadgroup -m slow tests/dashboard \
	  tests/service/test_typescript_client.py

# what the pages of the docs say to type, generated clients, and exports as their
# readers read them: longer than CI may take
test-pages: setup
	$(BIN)/pytest -n 2 --dist loadfile -m slow tests/test_docs_pages.py \
	  tests/service/test_docs_commands.py tests/e2e/test_docs_python.py \
	  tests/service/test_generated_client.py \
	  tests/e2e/test_docs_waves.py tests/e2e/test_export_readers.py \
	  tests/e2e/test_example_notebooks.py tests/e2e/test_added_rheology.py

# what takes minutes, but for the page: much longer than CI may take
test-slow: setup
	$(BIN)/pytest -n 2 --dist loadfile -m "slow and not faults and not gpu" \
	  --ignore tests/dashboard

# the page's libraries as modules; it is in the repository, so that only who changes
# a version needs npm
VENDORED := service/afterslip_service/dashboard/vendor
vendor:
	cd service/vendor && npm ci && npm run build
	cp service/vendor/node_modules/world-atlas/land-50m.json $(VENDORED)
	cd service/vendor/node_modules && for name in zarrita @zarrita/storage fzstd \
	  ml-matrix ml-array-max ml-array-min ml-array-rescale is-any-array jsfive pako yaml \
	  @codemirror/* @lezer/* @marijn/find-cluster-break crelt style-mod w3c-keyname \
	  jspdf svg2pdf.js fflate fast-png iobuffer @babel/runtime cssesc \
	  font-family-papandreou specificity svgpath world-atlas; do \
	  echo; echo "== $$name"; cat $$name/LICENSE*; done > $(CURDIR)/$(VENDORED)/licences.txt

setup: system $(STAMP)

# gmsh's wheel needs a few of the system's graphics libraries even without a screen
system:
	@sh deploy/system-libraries.sh

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("afterslip needs Python 3.11 or newer, this is %s: set PYTHON=..." % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@# uv takes a third of pip's time, but does not read the mirrors of a pip.conf
	awk '/^uv==/,!/\\$$/' requirements.lock >$(VENV)/uv.txt
	$(PIP) -r $(VENV)/uv.txt
	$(UV) -r requirements.lock || $(PIP) -r requirements.lock
	$(PIP) --no-deps -e .
	touch $@

clean:
	rm -rf $(VENV) $(OUT)
