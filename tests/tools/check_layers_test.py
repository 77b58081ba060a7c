"""check_layers.py sees each forbidden include, and lets the allowed ones pass. Each forbidden one is a planted control."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"


def check(files):
    """Exit code and lines of check_layers.py over a src/ folder that holds `files`: path -> text."""
    with tempfile.TemporaryDirectory() as folder:
        src = pathlib.Path(folder)
        for name, text in files.items():
            (src / name).parent.mkdir(parents=True, exist_ok=True)
            (src / name).write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, str(SCRIPT), folder], capture_output=True, text=True, check=False)
        return run.returncode, [line.removeprefix(folder + "/") for line in run.stdout.splitlines()]


class CheckLayers(unittest.TestCase):
    def refuses(self, files, place, *words):
        code, lines = check(files)
        self.assertEqual(code, 1, lines)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(place + ": "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])

    def test_own_folder_and_folders_further_right_are_allowed(self):
        text = '#include "engine/request.h"\n#include "model/model.h"\n#include "cache/pool.h"\n#include "base/log.h"\n#include <vector>\n'
        self.assertEqual(check({"engine/engine.cpp": text}), (0, []))

    def test_an_include_upwards_is_seen(self):
        self.refuses({"model/model.cpp": '#include "base/log.h"\n\n#include "engine/engine.h"\n'}, "model/model.cpp:3",
                     "model/", "engine/", "upwards")

    def test_an_include_sideways_is_seen(self):
        self.refuses({"model/model.h": '#include "cache/pool.h"\n'}, "model/model.h:1", "sideways")
        self.refuses({"text/tokenizer.cpp": '#include "ckpt/config.h"\n'}, "text/tokenizer.cpp:1", "sideways")

    def test_a_path_through_the_parent_folder_is_seen(self):
        self.refuses({"tensor/tensor.cpp": '#include "../base/check.h"\n'}, "tensor/tensor.cpp:1", "never with ../")
        self.refuses({"tensor/tensor.cpp": '#include "base/../engine/engine.h"\n'}, "tensor/tensor.cpp:1", "never with ../")

    def test_a_path_that_starts_beside_the_file_is_seen(self):
        self.refuses({"base/log.cpp": '#include "log.h"\n'}, "base/log.cpp:1", "start at src/")

    def test_angle_brackets_do_not_hide_an_include_upwards(self):
        self.refuses({"base/log.cpp": "#include <server/routes.h>\n"}, "base/log.cpp:1", "upwards")

    def test_spaces_and_cuda_files_do_not_hide_an_include_upwards(self):
        self.refuses({"ops/norm/rms_norm_cuda.cu": '  #  include   "model/model.h"\n'}, "ops/norm/rms_norm_cuda.cu:1", "upwards")

    def test_a_folder_nobody_listed_is_seen(self):
        self.refuses({"utils/strings.h": "#pragma once\n"}, "utils/strings.h:1", "LAYERS")

    def test_cuda_headers_stay_where_a_cpu_build_does_not_look(self):
        self.assertEqual(check({"device/cuda/stream.cpp": "#include <cuda_runtime.h>\n"}), (0, []))
        self.assertEqual(check({"ops/norm/rms_norm_cuda.cu": "#include <cub/cub.cuh>\n"}), (0, []))
        self.assertEqual(check({"ops/norm/rows.cuh": "#include <cooperative_groups.h>\n"}), (0, []))
        self.refuses({"ops/norm/rms_norm.cpp": "#include <cuda_runtime.h>\n"}, "ops/norm/rms_norm.cpp:1", "CUDA")

    def test_every_violation_is_reported_not_only_the_first(self):
        code, lines = check({"base/a.h": '#include "tensor/tensor.h"\n#include "engine/engine.h"\n', "ops/b.h": '#include "text/t.h"\n'})
        self.assertEqual((code, len(lines)), (1, 3))

    def test_a_comment_that_mentions_an_include_is_none(self):
        self.assertEqual(check({"base/a.h": '// #include "engine/engine.h"\n'}), (0, []))


if __name__ == "__main__":
    unittest.main()
