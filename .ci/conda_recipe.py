"""Write the conda recipe of a release from pyproject.toml and the release's source archive.

    python .ci/conda_recipe.py dist/classex_bayes-0.1.0.tar.gz > recipe.yaml

The package of conda has the shell, its files and plots, since conda has no extras.
"""

import hashlib
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ["files", "cli", "plots"]
WITH = {"arviz-plots": ["matplotlib-base"]}  # what the extra of a dependency stands for

RECIPE = """\
schema_version: 1

context:
  version: "{version}"
  python_min: "{python}"

package:
  name: {name}
  version: ${{{{ version }}}}

source:
  url: {repository}/releases/download/v${{{{ version }}}}/classex_bayes-${{{{ version }}}}.tar.gz
  sha256: {sha256}

build:
  number: 0
  noarch: python
  script: ${{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation
  python:
    entry_points:
      - {script}

requirements:
  host:
    - python ${{{{ python_min }}}}.*
    - pip
    - {build}
  run:
    - python >=${{{{ python_min }}}}
{run}

tests:
  - python:
      imports:
        - classex_bayes
      pip_check: true
      python_version: ${{{{ python_min }}}}.*
  - script:
      - classex-bayes --version

about:
  homepage: {repository}
  summary: {description}
  license: {license}
  license_file: LICENSE

extra:
  recipe-maintainers: []  # accounts of those who look after it
"""


def conda_names(requirement: str) -> list[str]:
    """Requirements of conda that stand for one of pip."""
    name, extra, limits = re.fullmatch(r"([\w-]+)(\[.+\])?(.*)", requirement).groups()
    return [f"{name} {limits}".strip(), *(WITH[name] if extra else [])]


def main(archive: Path) -> None:
    """Print the recipe."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    needed = list(project["dependencies"])
    for extra in EXTRAS:
        needed += project["optional-dependencies"][extra]
    own = project["name"]
    run = [line for each in needed if not each.startswith(own) for line in conda_names(each)]
    ((command, function),) = project["scripts"].items()
    print(
        RECIPE.format(
            name=own,
            version=archive.name.removeprefix("classex_bayes-").removesuffix(".tar.gz"),
            python=project["requires-python"].removeprefix(">="),
            repository=project["urls"]["Repository"],
            sha256=hashlib.sha256(archive.read_bytes()).hexdigest(),
            script=f"{command} = {function}",
            build=conda_names(settings["build-system"]["requires"][0])[0],
            run="\n".join(f"    - {line}" for line in run),
            description=project["description"],
            license=project["license"],
        ),
        end="",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
