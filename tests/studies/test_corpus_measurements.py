"""Populations of places, orbits, stars, molecules and genes against textbook formulas."""

from collections import Counter

import numpy as np
import pytest

from studies.corpus import airports, molecules, orbits, sequences, stars, substances
from studies.corpus.molecules import Molecule, molecule

PLACES = np.random.default_rng(8).uniform([-80, -180, 0], [80, 180, 3000], (2000, 3))


def great_circle(first, second):
    """Distances in km by the law of cosines."""
    a, b = np.radians(first[:, :2]).T, np.radians(second[:, :2]).T
    cosine = np.sin(a[0]) * np.sin(b[0]) + np.cos(a[0]) * np.cos(b[0]) * np.cos(a[1] - b[1])
    return airports.EARTH * np.arccos(np.clip(cosine, -1, 1))


def test_coordinates_keep_distances():
    points = airports.coordinates(PLACES)
    chord = airports.DRIFT * np.linalg.norm(points[1:, :3] - points[:-1, :3], axis=1)
    distance = 2 * airports.EARTH * np.arcsin(chord / (2 * airports.EARTH))
    np.testing.assert_allclose(distance, great_circle(PLACES[1:], PLACES[:-1]), rtol=1e-6)
    np.testing.assert_allclose(points[:, 3] * airports.PRESSURE, PLACES[:, 2])


def test_landings_drift_log_normally():
    landed = airports.landed(PLACES, np.random.default_rng(9))
    drift = np.log(great_circle(PLACES, landed) / airports.DRIFT)
    assert np.median(drift) == pytest.approx(0, abs=0.1)
    assert np.std(drift) == pytest.approx(1.3, abs=0.1)
    assert np.std(landed[:, 2] - PLACES[:, 2]) == pytest.approx(airports.PRESSURE, rel=0.1)


ORBIT_RNG = np.random.default_rng(6)


ELEMENTS = np.column_stack(
    [ORBIT_RNG.uniform(1, 50, 200), ORBIT_RNG.beta(1, 2, 200), ORBIT_RNG.uniform(0, 3, 200)]
    + [ORBIT_RNG.uniform(0, 2 * np.pi, 200) for _ in range(3)]
)


POSITION, VELOCITY = orbits.states(ELEMENTS)


def test_energy_and_momentum_are_those_of_the_ellipse():
    a, e, inclination, node = ELEMENTS[:, :4].T
    distance = np.linalg.norm(POSITION, axis=1)
    np.testing.assert_allclose((VELOCITY**2).sum(1) / 2 - 1 / distance, -1 / (2 * a), rtol=1e-6)
    momentum = np.cross(POSITION, VELOCITY)
    parameter = a * (1 - e**2)
    np.testing.assert_allclose((momentum**2).sum(1), parameter, rtol=1e-6)
    np.testing.assert_allclose(momentum[:, 2] / np.sqrt(parameter), np.cos(inclination))
    # The line of nodes lies in the plane of the orbit.
    np.testing.assert_allclose(
        momentum[:, 0] * np.cos(node) + momentum[:, 1] * np.sin(node), 0, atol=1e-6
    )


def test_the_position_moves_with_the_velocity():
    step = 1e-5
    later = ELEMENTS + step * np.eye(6)[5]  # mean anomaly grows by 1 / a^1.5 in a unit of time
    speed = (orbits.states(later)[0] - POSITION) / (step * ELEMENTS[:, :1] ** 1.5)
    calm = ELEMENTS[:, 1] < 0.8
    np.testing.assert_allclose(speed[calm], VELOCITY[calm], atol=1e-4)


def test_shapes_do_not_depend_on_the_place_on_the_orbit():
    later = ELEMENTS + 2 * np.eye(6)[5]
    shapes = orbits.shapes(POSITION, VELOCITY)
    np.testing.assert_allclose(shapes, orbits.shapes(*orbits.states(later)), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(shapes[:, 3:6], axis=1), ELEMENTS[:, 1], atol=1e-6)


def test_observed_states_keep_the_direction():
    far, velocity = orbits.observed(POSITION, VELOCITY, np.random.default_rng(7))
    np.testing.assert_allclose(np.cross(far, POSITION), 0, atol=1e-9 * 50**2)
    error = np.abs(np.log(np.linalg.norm(far, axis=1) / np.linalg.norm(POSITION, axis=1)))
    assert np.median(error) == pytest.approx(0.015, abs=0.008)
    assert np.any(velocity != VELOCITY)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_angles_are_arccosines_of_products(rng):
    directions = rng.normal(size=(20, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    expected = np.degrees(np.arccos(directions @ directions[3]))
    np.testing.assert_allclose(stars.angles(directions[3], directions)[4:], expected[4:])


def test_directions_nearby_fill_a_disc_evenly(rng):
    centre = np.array([0.0, 0.6, 0.8])
    directions = stars.nearby(centre, 10.0, 4000, rng)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    angle = stars.angles(centre, directions)
    assert angle.max() <= 10
    assert np.mean(angle < 5) == pytest.approx(1 / 4, abs=0.03)
    np.testing.assert_allclose(directions.mean(0), centre, atol=0.01)


def test_rings_add_up_over_stars():
    total = stars.rings(np.array([2.0, 5.0]))
    np.testing.assert_allclose(total, stars.rings(np.array([2.0])) + stars.rings(np.array([5.0])))
    assert set(stars.RINGS[np.argsort(total)[-2:]]) == {2.0, 5.0}


def test_a_picture_shows_neighbours_that_stand_near(rng):
    centre = np.array([1.0, 0.0, 0.0])
    neighbour = np.array([np.cos(np.radians(2)), np.sin(np.radians(2)), 0])
    far = np.array([0.0, 0.0, 1.0])
    directions, magnitude = np.array([centre, neighbour, far]), np.array([1.0, 2.0, 2.0])
    pictures = [stars.picture(0, directions, magnitude, rng) for _ in range(200)]
    hits = np.mean([np.any(np.abs(distances - 2) < 0.3) for distances in pictures])
    assert 0.7 < hits < 0.98
    assert all(distances.max(initial=0) < stars.RADIUS for distances in pictures)


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


GENE = np.random.default_rng(2).integers(0, 4, 1500)


def test_words_are_counted_with_overlaps():
    letters = "".join("ACGT"[letter] for letter in GENE)
    expected = Counter(
        letters[i : i + sequences.LENGTH] for i in range(len(letters) - sequences.LENGTH + 1)
    )
    counts = sequences.words(GENE)
    assert sorted(counts[counts > 0]) == sorted(expected.values())
    assert len(counts) == 4**sequences.LENGTH


def test_records_leave_out_letters_that_stand_for_several_bases():
    ((title, letters),) = sequences.records(">a > b\nACN\nGT")
    assert title == "a > b"
    assert letters.tolist() == [0, 1, 2, 3]


def test_reads_keep_most_words_of_their_gene():
    rng = np.random.default_rng(3)
    own = sequences.words(GENE) > 0
    reads = [sequences.read(GENE, rng) for _ in range(100)]
    kept = [np.average(own, weights=sequences.words(letters)) for letters in reads]
    # A word of six letters survives an error rate of 4% with probability .78.
    assert np.median(kept) == pytest.approx(0.96**6 + 0.22 * own.mean(), abs=0.08)
    assert 600 < np.median([len(letters) for letters in reads]) < 1000
    assert all(letters.min() >= 0 and letters.max() <= 3 for letters in reads)


def test_only_substances_with_all_properties_remain(tmp_path):
    (tmp_path / "a.tsv").write_text("CAS\tTc\tPc\n50-00-0\t400\t7\n64-17-5\t514\t6\n71-43-2\t\t5\n")
    (tmp_path / "b.tsv").write_text("CAS\tTb\n64175\t351\n71432\t353\n50000\t-3\n")
    table = substances.table(tmp_path, (("a.tsv", ("Tc", "Pc")), ("b.tsv", ("Tb",))))
    assert table.index.tolist() == [64175]
    np.testing.assert_allclose(np.exp(table.to_numpy()), [[514, 6, 351]])
