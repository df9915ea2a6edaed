"""Graphs of molecules against textbook chemistry."""

import numpy as np
import pytest

from studies.corpus import molecules
from studies.corpus.molecules import Molecule, molecule


def degrees(graph):
    orders = np.zeros(len(graph.atoms), int)
    for first, second, order in graph.bonds:
        orders[[first, second]] += order
    return orders.tolist()


def test_rings_branches_and_orders():
    caffeine = molecule("CN1C=NC2=C1C(=O)N(C(=O)N2C)C")
    assert "".join(sorted(caffeine.atoms)) == "CCCCCCCCNNNNOO"
    assert len(caffeine.bonds) == 15  # 14 atoms and two rings
    # Free valences are the ten hydrogens of C8H10N4O2.
    valence = {"C": 4, "N": 3, "O": 2}
    assert sum(valence[atom] for atom in caffeine.atoms) - sum(degrees(caffeine)) == 10


def test_brackets_name_element_and_charge():
    assert molecule("[13C@@H](C)([NH3+])C(=O)[O-]").atoms == ["C", "C", "N+", "C", "O", "O-"]
    assert molecule("Cl[Hg]C%10CCC%10").bonds[-1] == (2, 5, 1)


def test_surroundings_depend_on_the_graph_and_not_on_how_it_is_written():
    features = molecules.surroundings(molecule("OCC(=O)CN"))
    np.testing.assert_array_equal(features, molecules.surroundings(molecule("NCC(CO)=O")))
    assert features.sum() == 3 * 6
    assert np.any(features != molecules.surroundings(molecule("OCC(=O)NC")))


def test_misreadings_are_few_and_overlooked_bonds_are_gone():
    chain = Molecule(["C"] * 200, [(i, i + 1, 1) for i in range(199)])
    rng = np.random.default_rng(4)
    readings = [molecules.misread(chain, rng) for _ in range(300)]
    wrong = [np.mean([atom != "C" for atom in reading.atoms]) for reading in readings]
    assert np.median(wrong) == pytest.approx(0.05 * 5 / 6, abs=0.015)
    assert all(order in (1, 2, 3) for reading in readings for *_, order in reading.bonds)
    assert min(len(reading.bonds) for reading in readings) < 199
