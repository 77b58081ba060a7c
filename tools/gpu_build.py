"""Builds what `tools/gpu_check.sh pack` has packed, by the packed commands: no CMake, no packages.

Usage: gpu_build.py COMMANDS ROOT      ROOT holds the sources and deps/
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import time

LIBRARIES = {"libsodium.so": "libsodium.so.23", "libpcre2-8.so": "libpcre2-8.so.0", "libutf8proc.so": "libutf8proc.so.2",
             "libedit.so": "libedit.so.2"}


def adapted(line, root):
    """The command as this machine runs it: no compiler cache, its own CUDA libraries, the packed other ones."""
    line = line.replace("@ROOT@", root).replace("ccache ", "").replace("/usr/bin/cmake -E rm", "rm")
    line = re.sub(r"/usr/lib/x86_64-linux-gnu/librt\.a", "-lrt", line)
    line = re.sub(r"/usr/local/cuda/lib/libcudart_static\.a", "-lcudart_static", line)
    line = line.replace("-L/usr/local/cuda/targets/x86_64-linux/lib", "-L/usr/local/cuda/lib64")
    return re.sub(r"/usr/lib/x86_64-linux-gnu/(lib[\w.+-]+)",
                  lambda found: f"{root}/deps/lib/{LIBRARIES.get(found[1], found[1])}", line)


def made_by(line):
    return re.search(r" -o (\S+)", line)[1]


def compiled(line, root):
    """Runs one compilation; warnings were errors where the code was written, this compiler may know others."""
    os.makedirs(os.path.dirname(made_by(line)), exist_ok=True)
    if "nvcc" in line:
        line = line.replace("-Werror all-warnings", "").replace(" -c ", f" -I{root}/deps/include -c ")
    else:
        line = line.replace(" -c ", f" -isystem {root}/deps/include -w -Wno-error -c ")
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    return "" if done.returncode == 0 else made_by(line) + "\n" + (done.stdout + done.stderr)[:2000]


def main():
    with open(sys.argv[1], encoding="utf-8") as lines:
        commands = [adapted(line.strip(), sys.argv[2]) for line in lines]
    root, begin = sys.argv[2], time.time()
    os.environ["PATH"] += ":/usr/local/cuda/bin"
    os.makedirs(f"{root}/build-cuda", exist_ok=True)
    os.chdir(f"{root}/build-cuda")
    compiles = [line for line in commands if " -c " in line]
    compiles.sort(key=lambda line: "nvcc" not in line)  # the slow ones first
    with concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 1) + 2) as pool:
        failures = [text for text in pool.map(lambda line: compiled(line, root), compiles) if text]
    if failures:
        sys.exit("\n".join(failures))
    for library in sorted(os.listdir(f"{root}/deps/lib")):
        told = subprocess.run(["objdump", "-p", f"{root}/deps/lib/{library}"], capture_output=True, text=True).stdout
        name = re.search(r"SONAME\s+(\S+)", told)  # what a program asks for: libfmt.so.9
        if name and not os.path.exists(f"{root}/deps/lib/{name[1]}"):
            os.symlink(library, f"{root}/deps/lib/{name[1]}")
    for line in commands:
        if " -c " in line or ("ranlib" not in line and "/usr/bin/c++" not in line):
            continue
        line = re.sub(r"&& cd \S+ && \S*cmake .*$", "&& :", line)  # listing tests is not for here
        for path in re.findall(r"rm -f (\S+)", line) + ([made_by(line)] if " -o " in line else []):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        done = subprocess.run(line, shell=True, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(line[:300] + "\n" + (done.stdout + done.stderr)[-2000:])
    print(f"built in {time.time() - begin:.0f} s")


main()
