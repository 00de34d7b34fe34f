# One door for chores. Set-up is shell by necessity; all other logic is Rust.
CARGO ?= cargo
.PHONY: run test lint web docs bench fuzz abuse test-heap test-lab test-users rule

run: ## set up, build, check this machine
	scripts/run.sh

test: ## set up and run all tests
	scripts/test.sh

lint: ## format, clippy, dependencies
	scripts/lint.sh

web: ## build the report's program and style from web/ into the binary's assets, and test them
	scripts/setup.sh test
	scripts/web.sh build
	$(CARGO) build --release --locked --package memtide --package memtide-answers --bins --examples
	scripts/web.sh test

docs: ## write docs/ and README's screens anew from the code
	BLESS=1 $(CARGO) test --quiet --package memtide-report --package memtide-lab
	BLESS=1 $(CARGO) test --quiet --package memtide --test it pages

bench: ## the sampler against raw pread of the same files; a long log against one search of it; the page of a week; a heap
	$(CARGO) bench --package memtide-probe --bench host_sample
	$(CARGO) bench --package memtide-import --bench big_log
	$(CARGO) bench --package memtide --bench page
	$(CARGO) bench --package memtide-heap --bench walk

fuzz: ## each fuzz target for SECONDS_EACH (default 300); needs cargo-fuzz and a nightly toolchain
	scripts/fuzz.sh

abuse: ## kill, fill, damage and stop recorders for an hour, and count what was lost; needs root (a tenth is in make test)
	scripts/abuse.sh

test-heap: ## prove the heap reader on the glibc of Debian 11, 12, 13 and sid; needs root, and 1.1 GB of cache
	scripts/setup.sh heap
	scripts/heap-versions.sh
	$(CARGO) test --release --locked --package memtide-heap -- --include-ignored
	$(CARGO) test --locked --package memtide --test it -- --include-ignored explain::

# A few minutes under emulation; LAB= plays all scenarios, which takes half an hour.
LAB ?= --scenario idle --scenario swap-cold --scenario cgroup-oom --scenario cgroup-high --scenario node-reclaim \
	--scenario read-cache --scenario write-plateau
# Whose fixes are carried out; CURE= tries those of all scenarios, which takes two hours.
CURE ?= cgroup-oom hugepages-idle jobs
test-lab: ## play scenarios in virtual machines, score what check finds, carry out fixes; needs qemu-system-x86 and e2fsprogs
	$(CARGO) build --release --locked --package memtide
	target/release/memtide lab kernel fetch
	target/release/memtide lab score $(LAB)
	target/release/memtide lab cure $(CURE)

test-users: ## let an ordinary user of a machine with systemd try what he can; needs root, and 350 MB of cache; ten minutes
	$(CARGO) test --release --locked --package memtide --test users -- --ignored

rule: ## scaffold a rule: make rule NAME=id-of-the-pathology
	scripts/rule.sh "$(NAME)"
