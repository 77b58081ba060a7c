# What a person types. Everything these targets make lies in build/, build-*/ and .venv/.
MODEL = models/rondo-demo
HOST = 127.0.0.1
PORT = 8080
ARGS =
CMAKE_ARGS =

.DEFAULT_GOAL := help
.PHONY: help serve build test check format format-check layers tidy clean

help:
	@echo 'make serve    install what is missing, build, and serve the bundled model on 127.0.0.1:8080'
	@echo '              (other values: MODEL=FOLDER HOST=ADDRESS PORT=N; more flags: ARGS="--parallel 2")'
	@echo 'make build    install what is missing and build build/rondo'
	@echo 'make test     build and run the tests (ctest --test-dir build)'
	@echo 'make check    what a change must pass: format, order of includes, clang-tidy, tests'
	@echo 'make format   clang-format our C++ files in place'
	@echo 'make clean    remove build/, build-*/ and .venv/'

serve: build
	@exec build/rondo serve $(MODEL) --host $(HOST) --port $(PORT) $(ARGS)

# Serving takes no test library, so the tests are configured only by `make test`, and stay configured after it.
build:
	@tools/install.sh build
	@test -f build/build.ninja || cmake --preset release -DBUILD_TESTING=OFF $(CMAKE_ARGS)
	@cmake --build build --target rondo

test:
	@tools/install.sh build test
	@cmake --preset release -DBUILD_TESTING=ON $(CMAKE_ARGS)
	@cmake --build build
	@ctest --test-dir build --output-on-failure

check: format-check layers tidy test

format:
	@tools/install.sh check
	@tools/sources.sh | xargs -0 clang-format-14 -i

format-check:
	@tools/install.sh check
	@tools/sources.sh | xargs -0 clang-format-14 --dry-run -Werror

layers:
	@tools/check_layers.py

tidy:
	@tools/install.sh build test check
	@cmake --preset release -DBUILD_TESTING=ON $(CMAKE_ARGS) >/dev/null
	@tools/tidy.sh build

clean:
	@rm -rf build build-asan build-tsan build-cuda build-fuzz .venv
