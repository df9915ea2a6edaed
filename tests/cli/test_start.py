"""What the command loads, its help, and processes of its own."""

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import ANSWERED
from typer.main import get_command

import classex_bayes
from classex_bayes import cli
from classex_bayes.bayes import sampling

VERBS = get_command(cli.app).commands


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_shows_examples_that_it_would_run(name, run, tmp_path):
    code, out, err = run(name, "--help")
    examples = VERBS[name].epilog.split("\n\n")[1:]
    assert code == 0 and "Examples:" in out and examples and not set("╭─│") & set(out + err)
    for example in examples:
        program, verb, *words = shlex.split(example)
        for word in words:  # files of these names
            if Path(word).suffix in {".npz", ".npy", ".csv", ".h5", ".parquet"}:
                (tmp_path / word).touch()
        assert program == "classex-bayes" and VERBS[verb].make_context(verb, words)


def test_version(run):
    assert run("--version") == (0, f"classex-bayes {classex_bayes.__version__}\n", "")


# Processes of their own


def test_the_command_without_its_extra_says_what_to_install(process):
    run = process(before="import sys; sys.modules['typer'] = None")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("error: ") and 'pip install "classex-bayes[cli]"' in run.stderr


def test_an_interruption_of_the_start_is_no_traceback(process):
    stop = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())"
    )
    run = process(before=stop)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [(["nowhere.npz", "--k", "9"], "numpy"), (["--help"], "rich numpy")],
)
def test_errors_and_help_load_nothing_heavy(arguments, heavy, process):
    watch = (
        "import atexit, os, sys\n"
        f"def check():\n    if set({heavy.split()}) & set(sys.modules): os._exit(99)\n"
        "atexit.register(check)"
    )
    run = process("extrapolate", *arguments, before=watch)
    assert run.returncode == (0 if "--help" in arguments else 2)
    assert run.stderr.startswith("" if "--help" in arguments else "error: nowhere.npz: ")


def test_a_folder_is_no_file(run, tmp_path):
    (tmp_path / "scores.zarr").mkdir()
    code, _, err = run("diagnose", tmp_path)
    assert code == 2 and "folder" in err and str(tmp_path) in err
    assert "scores.zarr" in run("diagnose", "scores.zarr")[2]


WITHOUT_EXTRAS = """
import sys
sys.modules.update(dict.fromkeys(["h5netcdf", "h5py", "jinja2", "matplotlib"]))
"""


@pytest.mark.nightly
def test_an_answer_needs_no_extra_and_others_say_which(tmp_path, process):
    np.savez(tmp_path / "r.npz", ranks=np.arange(90) % 9 + 1, y=np.arange(90) % 30, n_classes=30)
    fit = ["r.npz", "--k", "99", "--draws", "50", "--chains", "2", "-q"]

    def run(*arguments):
        return process(*arguments, before=WITHOUT_EXTRAS)

    answer = run("compare", *fit, "--bounds")
    assert answer.returncode in ANSWERED and "MomentBounds" in answer.stdout, answer.stderr
    for verb, extra in {"extrapolate": "files,plots", "report": "report"}.items():
        refused = run(verb, *fit, "--out", "results")
        assert refused.returncode == 2 and f'"classex-bayes[{extra}]"' in refused.stderr
    no_netcdf = WITHOUT_EXTRAS.replace(', "jinja2", "matplotlib"', "")
    refused = process("report", *fit, before=no_netcdf)  # before it fits
    assert refused.returncode == 2 and '"classex-bayes[files,plots]"' in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["r.npz"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["plot_accuracy", "plots.plot_det"])
def test_a_plot_without_its_extra_says_what_to_install(name):
    code = f"{WITHOUT_EXTRAS}from classex_bayes import *\nimport classex_bayes as cb\n"
    code += f"try:\n    cb.{name}()\n"
    code += "except ImportError as error:\n    print(error)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert '"classex-bayes[plots]"' in found.stdout


@pytest.mark.nightly
def test_shells_complete_verbs_settings_and_choices(process):
    def completed(words):
        return process(
            _CLASSEX_BAYES_COMPLETE="complete_bash",
            COMP_WORDS=f"classex-bayes {words}",
            COMP_CWORD=str(len(words.split(" "))),
        ).stdout.split()

    assert completed("ex") == ["extrapolate"]
    assert completed("open-set --thr") == ["--threshold"]
    assert completed("extrapolate --distance c") == ["cosine"]


@pytest.mark.nightly
def test_a_reader_that_is_gone_ends_the_program_in_silence(two, tmp_path):
    command = [sys.executable, "-W", "error", "-m", "classex_bayes", "diagnose", "s.npz", "--json"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    found = subprocess.run(
        command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, env=buffered, check=False
    )
    os.close(writer)
    assert found.returncode == 141 and b"rror" not in found.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="of Linux")
def test_a_full_disk_for_the_answer_is_an_exit_code():
    version = [sys.executable, "-m", "classex_bayes", "--version"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(version, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1 and b"Traceback" not in ended.stderr


def test_streams_that_are_closed_or_without_letters(tmp_path, monkeypatch):
    few = {"ranks": np.arange(90) % 9 + 1, "y": np.arange(90) % 30}
    np.savez(tmp_path / "nämé.npz", **few, n_classes=30)
    letters = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(letters, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", None)
    options = [str(tmp_path / "nämé.npz"), "--k", "60", "--draws", "100", "--chains", "2"]
    options += ["--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["classex-bayes", "extrapolate", *options])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code in ANSWERED
    assert rb"n\xe4m\xe9.png" in letters.getvalue()


# Writes nowhere but in its working folder and where numba keeps what it compiles, for all tests
# the same place: without that an answer takes a quarter of a minute.
READ_ONLY = """
import os, sys

places = [os.getcwd(), os.devnull, sys.argv.pop(1)]

def refuse(event, arguments):
    if event not in ("open", "os.mkdir") or not isinstance(arguments[0], str):
        return
    path = os.path.abspath(arguments[0])
    writes = event == "os.mkdir" or (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes and not path.startswith(tuple(places)):
        raise OSError(30, "Read-only file system", path)

sys.addaudithook(refuse)
"""


@pytest.mark.slow
def test_a_first_answer_in_a_read_only_home_and_another_locale(
    run, process, strict, tmp_path, computed_once, monkeypatch
):
    monkeypatch.setattr(sampling, "sample_by_nutpie", computed_once)
    names = np.array(["ä", "b", "c"])
    lines = ["ä,b,c,y", *(f"{i % 5},{i % 3}.5,{i % 2},{names[i % 3]}" for i in range(12))]
    (tmp_path / "a.csv").write_bytes("\r\n".join(lines).encode())
    options = ["extrapolate", "a.csv", "--k", "9", "--draws", "50", "--chains", "2", "--out", "."]
    options += ["--json", "--quiet"]
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), os.devnull)
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    compiled = os.environ.get("NUMBA_CACHE_DIR") or str(Path(classex_bayes.__file__).parent)
    places = nowhere | locale | {"TMPDIR": str(tmp_path)}
    found = process(compiled, *options, before=READ_ONLY, **places)
    assert found.stderr == ""
    assert {"a.nc", "a.png"} <= {path.name for path in tmp_path.iterdir()}
    code, out, _ = run(*options)
    assert code == found.returncode == 3 and strict(out) == strict(found.stdout)
