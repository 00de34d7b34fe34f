# One door for chores. Set-up is shell by necessity; all other logic is Rust.
CARGO ?= cargo
.PHONY: run test lint web docs bench fuzz test-lab rule

run: ## set up, build, check this machine
	scripts/run.sh

test: ## set up and run all tests
	scripts/test.sh

lint: ## format, clippy, dependencies
	scripts/lint.sh

web: ## build the report's program and style from web/ into the binary's assets, and test them
	scripts/setup.sh test
	scripts/web.sh build
	$(CARGO) build --release --locked --package memtide
	scripts/web.sh test

docs: ## write docs/ and README's screens anew from the code
	BLESS=1 $(CARGO) test --quiet --package memtide-report
	BLESS=1 $(CARGO) test --quiet --package memtide --test it pages

bench: ## the sampler against raw pread of the same files; a long log against one search of it; the page of a week
	$(CARGO) bench --package memtide-probe --bench host_sample
	$(CARGO) bench --package memtide-import --bench big_log
	$(CARGO) bench --package memtide --bench page

fuzz: ## each fuzz target for SECONDS_EACH (default 300); needs cargo-fuzz and a nightly toolchain
	scripts/fuzz.sh

test-lab: ## play a scenario in a virtual machine; needs qemu-system-x86 and e2fsprogs
	scripts/kernel.sh
	$(CARGO) test --package memtide --test it -- --ignored lab::

rule: ## scaffold a rule: make rule NAME=id-of-the-pathology
	scripts/rule.sh "$(NAME)"
