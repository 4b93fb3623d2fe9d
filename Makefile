# A small front for Meson and Ninja: every target installs what it needs (as root) or names it (as anybody else).
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=

build_packages = gcc libc6-dev meson ninja-build pkg-config libseccomp-dev libjansson-dev libarchive-dev libpcre2-dev libssl-dev libyaml-dev
suites = unit scan review conformance cli escape errors tty completions fault session protect net property
test_packages = libcmocka-dev bats strace procps util-linux $(shell cat $(foreach s,$(suites),tests/$(s)/packages) 2>/dev/null)
check_packages = abigail-tools clang clang-format clang-tidy shellcheck mandoc python3

.PHONY: all run ready test test-vm test-container test-sanitized check bench bench-scan install clean image up-root up-sudoer up-locked shell-root down
all: $(BUILD)/hutch

$(BUILD)/build.ninja:
	@tools/need $(build_packages)
	@meson setup $(BUILD) --prefix=$(PREFIX) $(MESON_ARGS) >/dev/null

.PHONY: $(BUILD)/hutch
$(BUILD)/hutch: $(BUILD)/build.ninja
	@ninja -C $(BUILD) $(if $(VERBOSE),-v,--quiet)

run: all
	@echo '$$ hutch -d . --workspace ro -- sh -c "id -un; pwd; ls"'
	@$(BUILD)/hutch -d . --workspace ro -- sh -c "id -un; pwd; ls"

# What is needed and built for the tests, and for all of .ci/run.
ready: test_packages += $(check_packages) $(shell cat tests/vm/packages tests/container/packages)
ready test:
	@tools/need $(build_packages) $(test_packages)
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@meson setup --reconfigure $(BUILD) >/dev/null # what the tests are built with may have come since
	@$(MAKE) --no-print-directory all
	@$(if $(filter test,$@),tests/run)

# The VM suite takes most of an hour; with HUTCH_SHORT=1 ten minutes.
test-vm test-container: test-%:
	@tools/need $(build_packages) libcmocka-dev $(shell cat tests/$*/packages 2>/dev/null)
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@meson setup --reconfigure $(BUILD) >/dev/null # as above
	@$(MAKE) --no-print-directory all
	@tests/run $*

# The suites that read the most hostile bytes, under the address and undefined-behaviour sanitizers.
test-sanitized:
	@tools/need $(build_packages) libcmocka-dev $(shell cat tests/review/packages tests/session/packages 2>/dev/null)
	@[ -e $(BUILD)-sanitized/build.ninja ] || meson setup $(BUILD)-sanitized -Db_sanitize=address,undefined -Db_lundef=false -Dstatic_cli=false >/dev/null
	@ninja -C $(BUILD)-sanitized --quiet
	@HUTCH_BUILD=$(CURDIR)/$(BUILD)-sanitized tests/run unit review session

check:
	@tools/need $(build_packages) $(check_packages)
	@$(MAKE) --no-print-directory all
	@tests/check

bench:
	@tools/need $(build_packages) bubblewrap hyperfine
	@$(MAKE) --no-print-directory all
	@bench/run

bench-scan:
	@tools/need $(build_packages) libcmocka-dev shfmt
	@$(MAKE) --no-print-directory all
	@bench/scan

# Containers to try hutch in, by docker or podman; see tools/image/run.
image:
	@tools/image/run build

up-root up-sudoer up-locked: up-%:
	@tools/image/run up $*

shell-root:
	@tools/image/run shell root

down:
	@tools/image/run down

install: $(BUILD)/build.ninja
	@meson configure $(BUILD) --prefix=$(PREFIX) >/dev/null
	@ninja -C $(BUILD) --quiet
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --quiet

clean:
	rm -rf $(BUILD)
