"""Compounds, recognised in misread structural drawings by the surroundings of their atoms."""

import re
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from classex_bayes.typing import FloatArray
from studies.corpus.packages import Packages
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.projections import discriminants, ridged
from studies.corpus.shared_data import PUBCHEM, pubchem

N_CLASSES = 12_000
N_OTHERS = 3_000  # compounds that the discriminant analysis is trained on
N_BUCKETS = 256
N_AXES = 96
SEED = 1865

_TOKEN = re.compile(r"\[([^\]]+)\]|(Br|Cl|[BCNOPSFI])|([-=#:/\\])|(\d|%\d\d)|(.)")
_BRACKET = re.compile(r"\d*([A-Z][a-z]?)@*(?:H\d?)?([+-]*\d*)")
_ORDERS = {"=": 2, "#": 3}


@dataclass(frozen=True)
class Molecule:
    """Atoms except for hydrogen, by element and charge, and bonds as (atom, atom, order)."""

    atoms: list[str]
    bonds: list[tuple[int, int, int]]


def molecule(smiles: str) -> Molecule:
    """Parse a SMILES string without aromatic letters; stereochemistry and isotopes are ignored.

    >>> molecule("C[C@H](O)C=O").bonds
    [(0, 1, 1), (1, 2, 1), (1, 3, 1), (3, 4, 2)]
    """
    atoms: list[str] = []
    bonds: list[tuple[int, int, int]] = []
    branches: list[int] = []
    rings: dict[str, tuple[int, int]] = {}
    last, order = -1, 1
    for bracket, element, bond, ring, mark in _TOKEN.findall(smiles):
        if bracket or element:
            parts = _BRACKET.match(bracket)
            atoms.append("".join(parts.groups()) if parts else element)
            if last >= 0:
                bonds.append((last, len(atoms) - 1, order))
            last, order = len(atoms) - 1, 1
        elif bond:
            order = _ORDERS.get(bond, 1)
        elif ring and ring in rings:
            other, opened = rings.pop(ring)
            bonds.append((other, last, max(order, opened)))
            order = 1
        elif ring:
            rings[ring] = (last, order)
            order = 1
        elif mark == "(":
            branches.append(last)
        elif mark == ")":
            last = branches.pop()
    return Molecule(atoms, bonds)


def misread(drawing: Molecule, rng: np.random.Generator) -> Molecule:
    """Draw the reading of a drawing, with wrong atoms and with wrong or overlooked bonds.

    The rate of errors differs between drawings and is log-normal.
    """
    rate = min(rng.lognormal(np.log(0.05), 0.8), 0.5)
    wrong = rng.random(len(drawing.atoms)) < rate
    atoms = [
        str(rng.choice(["C", "N", "O", "F", "S", "Cl"])) if changed else atom
        for atom, changed in zip(drawing.atoms, wrong, strict=True)
    ]
    wrong = rng.random(len(drawing.bonds)) < rate
    bonds = [
        (first, second, int(rng.integers(0, 4)) if changed else order)
        for (first, second, order), changed in zip(drawing.bonds, wrong, strict=True)
    ]
    return Molecule(atoms, [bond for bond in bonds if bond[2]])


def surrounding_codes(drawing: Molecule) -> list[int]:
    """Hashes of atoms with their surroundings up to 0, 1 and 2 bonds."""
    neighbours: list[list[tuple[int, int]]] = [[] for _ in drawing.atoms]
    for first, second, order in drawing.bonds:
        neighbours[first].append((order, second))
        neighbours[second].append((order, first))
    labels = [crc32(atom.encode()) for atom in drawing.atoms]
    hashes = list(labels)
    for _ in range(2):
        labels = [
            crc32(repr((label, sorted((order, labels[i]) for order, i in near))).encode())
            for label, near in zip(labels, neighbours, strict=True)
        ]
        hashes += labels
    return hashes


def surroundings(drawing: Molecule) -> FloatArray:
    """Counts of the hashes of `surrounding_codes` in buckets."""
    codes = np.array(surrounding_codes(drawing)) % N_BUCKETS
    return np.bincount(codes, minlength=N_BUCKETS).astype(float)


def compounds(packages: Packages, rng: np.random.Generator) -> list[Molecule]:
    """Return the molecules of the table in random order, one for each connectivity."""
    smiles: dict[str, str] = {}
    for text, key, *_ in pubchem(packages):
        if "." not in text:  # one molecule, no salt or mixture
            smiles.setdefault(key[:14], text)  # this part of an InChIKey is the connectivity
    drawings = map(molecule, shuffled(smiles.values(), rng))
    return [drawing for drawing in drawings if 6 <= len(drawing.atoms) <= 60]


def drawings(packages: Packages) -> Population:
    """Compounds of PubChem with two misread drawings each."""
    rng = np.random.default_rng(SEED)
    molecules = compounds(packages, rng)
    classes, others = molecules[:N_CLASSES], molecules[N_CLASSES : N_CLASSES + N_OTHERS]

    def features(graphs: list[Molecule]) -> FloatArray:
        return np.sqrt([surroundings(graph) for graph in graphs])

    templates = features(others)
    errors = features([misread(graph, rng) for graph in others]) - templates
    axes = discriminants(templates, ridged(np.cov(errors.T), 0.1), N_AXES)
    y = np.repeat(np.arange(N_CLASSES), 2)
    return Population(
        gallery=features(classes) @ axes,
        probes=features([misread(classes[i], rng) for i in y]) @ axes,
        y=y,
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="molecule-drawings",
        kind="molecules",
        summary="compounds from simulated misreadings of a drawing; discriminant axes",
        about="Classes are 12,000 compounds of PubChem, chosen at random among those that are one "
        "molecule of 6 to 60 atoms besides hydrogen. Salts, mixtures and stereochemistry are left "
        "out, so stereoisomers are one class; other isomers are classes of their own. The template "
        "is the structure. Test instances are two simulated readings of a drawing of each. About "
        "5% of the atoms and bonds are wrong or overlooked; the rate differs log-normally between "
        "drawings. The compounds are real, the errors are drawn at random. A wrong "
        "answer names another compound, most often one that differs in a few atoms.",
        classifier="Features are square roots of the counts of atoms with their surroundings up to "
        "0, 1 and 2 bonds, hashed into 256 buckets. They are projected on the 96 best axes of a "
        "linear discriminant analysis, trained on readings of 3,000 other compounds. Scores are "
        "squared Euclidean distances. A few pairs of compounds have equal features.",
        packages=(PUBCHEM,),
        make=drawings,
    ),
)
